/* SPDX-License-Identifier: Apache-2.0
 * Names on the wire: paths, server lists, GUIDs, and which children are contenders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

#include "core/name.h"

static const struct zkl_naming mutex;

static void expect_fault(const char *path, const char *part)
{
    const char *fault = zkl_path_fault(path);
    if (!fault || !strstr(fault, part))
        fail_msg("\"%s\": %s", path, fault ? fault : "accepted");
}

/* Goal: paths that ZooKeeper takes are taken. Method: the shortest, nested, dotted, blank,
 * UTF-8, and the longest. */
TEST(good_paths_are_accepted)
{
    char longest[ZKL_PATH_MAX + 1];
    assert_null(zkl_path_fault("/a"));
    assert_null(zkl_path_fault("/locks/report/.hidden/..."));
    assert_null(zkl_path_fault("/with blank/lock-0000000001"));
    assert_null(zkl_path_fault("/zookeeperx"));
    assert_null(zkl_path_fault("/a/zookeeper"));
    assert_null(zkl_path_fault("/stra\xc3\x9f"
                               "e/\xe6\x97\xa5"));
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[ZKL_PATH_MAX] = '\0';
    assert_null(zkl_path_fault(longest));
}

/* Goal: each bad path is refused with what is wrong. Method: one of each kind. */
TEST(bad_paths_are_refused_with_the_reason)
{
    char too_long[ZKL_PATH_MAX + 2];
    expect_fault("", "empty");
    expect_fault("locks", "slash");
    expect_fault("/", "root node");
    expect_fault("/a/", "empty component");
    expect_fault("//a", "empty component");
    expect_fault("/a//b", "empty component");
    expect_fault("/.", "\".\"");
    expect_fault("/a/..", "\"..\"");
    expect_fault("/a/../b", "\"..\"");
    expect_fault("/a\tb", "control character");
    expect_fault("/a\x7f", "control character");
    expect_fault("/a\xc2\x85", "control character"); /* U+0085 */
    expect_fault("/zookeeper", "/zookeeper");
    expect_fault("/zookeeper/quota", "/zookeeper");
    memset(too_long, 'a', sizeof too_long);
    too_long[0] = '/';
    too_long[ZKL_PATH_MAX + 1] = '\0';
    expect_fault(too_long, "longer than");
}

/* Goal: what is no UTF-8, or what ZooKeeper refuses of it, is refused. Method: cut, overlong,
 * stray and forbidden sequences, also at the end of the text. */
TEST(bad_utf8_is_refused)
{
    expect_fault("/a\xff", "UTF-8");
    expect_fault("/a\x80", "UTF-8");
    expect_fault("/a\xc3", "UTF-8");
    expect_fault("/a\xc3/b", "UTF-8");
    expect_fault("/a\xe6\x97", "UTF-8");
    expect_fault("/a\xc0\xaf", "UTF-8");           /* an overlong slash */
    expect_fault("/a\xed\xa0\x80", "UTF-8");       /* a surrogate */
    expect_fault("/a\xee\x80\x80", "refuses");     /* private use */
    expect_fault("/a\xef\xbf\xb0", "refuses");     /* U+FFF0 */
    expect_fault("/a\xef\xbf\xbf", "refuses");     /* U+FFFF */
    expect_fault("/a\xf4\x8f\xbf\xbf", "refuses"); /* U+10FFFF, the last there is */
    expect_fault("/a\xf4\x90\x80\x80", "UTF-8");
    expect_fault("/a\xf0\x9f\x94\x92", "refuses"); /* above U+FFFF */
    assert_null(zkl_path_fault("/a\xef\xbf\xaf")); /* U+FFEF */
    assert_null(zkl_path_fault("/a\xed\x9f\xbf")); /* U+D7FF */
}

/* Goal: a GUID is a version 4 UUID as Java writes it. Method: known bytes; the bits of version
 * and variant are overwritten. */
TEST(a_guid_is_a_version_4_uuid)
{
    static const unsigned char zeros[16];
    unsigned char bytes[16];
    char guid[ZKL_GUID_LEN + 1];
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(0xf0 + i);
    zkl_guid_format(bytes, guid);
    assert_string_equal(guid, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff");
    zkl_guid_format(zeros, guid);
    assert_string_equal(guid, "00000000-0000-4000-8000-000000000000");
}

/* Goal: a node that may stay without a holder is recognized by its name, in both styles, and no
 * other is. */
TEST(a_retained_node_is_known_by_its_guid)
{
    static const struct zkl_naming namings[] = {
        {.role = ZKL_ROLE_LOCK},
        {.role = ZKL_ROLE_LOCK, .names = ZKL_NAMES_KAZOO},
        {.role = ZKL_ROLE_LOCK, .names = ZKL_NAMES_NAMED, .name = "x"}};
    static const char *const others[] = {
        "",
        "_c_",
        "lock-0000000008",
        "_c_00000000-0000-4000-8000-000000000000-lock-0000000008",
        "_c_00000000000040008000000000000000-lock-0000000008", /* go-zk's have no dashes */
        "_c_00000000000040800000000000000000-lock-0000000008",
        "00000000000040008000000000000000__lock__0000000008",
        "x-8-0000000008"};
    unsigned char bytes[16];
    char guid[ZKL_GUID_LEN + 1], name[ZKL_NODE_NAME_MAX + 1];
    memset(bytes, 0xff, sizeof bytes);
    zkl_guid_format(bytes, guid);
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        zkl_name_prefix(&namings[i], guid, name);
        assert_false(zkl_name_is_retained(name));
    }
    zkl_guid_mark_retained(guid);
    assert_string_equal(guid, "ffffffff-ffff-8fff-bfff-ffffffffffff");
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        zkl_name_prefix(&namings[i], guid, name);
        assert_true(zkl_name_is_retained(name));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(zkl_name_is_retained(others[i]));
}

/* Goal: prefixes are those of the peers, and the longest name fits. Method: the text of each naming;
 * the longest with the smallest number. */
TEST(a_node_name_is_its_peers)
{
#define GUID "00000000-0000-4000-8000-000000000000"
    static struct zkl_naming longest = {.names = ZKL_NAMES_NAMED};
    static const struct {
        struct zkl_naming naming;
        const char *prefix;
    } all[] = {
        {{.role = ZKL_ROLE_LOCK}, "_c_" GUID "-lock-"},
        {{.role = ZKL_ROLE_READ}, "_c_" GUID "-__READ__"},
        {{.role = ZKL_ROLE_WRITE}, "_c_" GUID "-__WRIT__"},
        {{.role = ZKL_ROLE_PERMIT}, "_c_" GUID "-lease-"},
        {{.names = ZKL_NAMES_KAZOO}, "00000000000040008000000000000000__lock__"},
        {{.role = ZKL_ROLE_READ, .names = ZKL_NAMES_KAZOO},
         "00000000000040008000000000000000__rlock__"},
        {{.role = ZKL_ROLE_WRITE, .names = ZKL_NAMES_KAZOO},
         "00000000000040008000000000000000__lock__"},
        {{.names = ZKL_NAMES_NAMED, .name = "report"}, "_c_" GUID "-report_lock_"},
    };
    char prefix[ZKL_NODE_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        zkl_name_prefix(&all[i].naming, GUID, prefix);
        assert_string_equal(prefix, all[i].prefix);
    }
    memset(longest.name, 'n', ZKL_LOCK_NAME_MAX);
    zkl_name_prefix(&longest, GUID, prefix);
    assert_int_equal(strlen(prefix) + strlen("-2147483648"), ZKL_NODE_NAME_MAX);
}

static void expect_number(const char *name, int32_t expected)
{
    struct zkl_node_name place = {.sequence = -7};
    if (!zkl_name_parse(name, &mutex, &place) || place.sequence != expected)
        fail_msg("\"%s\" is taken for %d", name, (int)place.sequence);
    assert_int_equal(strtol(zkl_name_digits(name, &mutex), NULL, 10), expected);
}

/* Goal: contenders of other libraries and other kinds are known for what they are. Method: a name
 * of each. */
TEST(peers_names_are_known)
{
    static const struct {
        const char *name;
        enum zkl_role role;
        enum zkl_peer peer;
        int32_t sequence;
    } all[] = {
        {"_c_" GUID "-__READ__0000000003", ZKL_ROLE_READ, ZKL_PEER_CURATOR, 3},
        {"_c_" GUID "-__WRIT__-000000003", ZKL_ROLE_WRITE, ZKL_PEER_CURATOR, -3},
        {"00000000000040008000000000000000__lock__0000000009", ZKL_ROLE_LOCK, ZKL_PEER_KAZOO, 9},
        {"00000000000040008000000000000000__rlock__0000000009", ZKL_ROLE_READ, ZKL_PEER_KAZOO, 9},
        {"x-0100d4a1b2c30000-0000000012", ZKL_ROLE_LOCK, ZKL_PEER_ZOOKEEPER, 12},
        {"x-72057594037927936-0000000012", ZKL_ROLE_LOCK, ZKL_PEER_ZOOKEEPER, 12},
        {"x--72057594037927936--000000012", ZKL_ROLE_LOCK, ZKL_PEER_ZOOKEEPER, -12},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct zkl_node_name place;
        assert_true(zkl_name_parse(all[i].name, &mutex, &place));
        assert_int_equal(place.role, all[i].role);
        assert_int_equal(place.peer, all[i].peer);
        assert_int_equal(place.sequence, all[i].sequence);
    }
    static const struct zkl_naming permit = {.role = ZKL_ROLE_PERMIT},
                                   report = {.names = ZKL_NAMES_NAMED, .name = "report"};
    struct zkl_node_name lease = {.peer = ZKL_PEER_KAZOO}, named = {.peer = ZKL_PEER_KAZOO};
    assert_true(zkl_name_parse("_c_" GUID "-lease-0000000001", &permit, &lease));
    assert_true(zkl_name_parse("_c_" GUID "-report_lock_0000000001", &report, &named));
    assert_int_equal(lease.peer, ZKL_PEER_CURATOR);
    assert_int_equal(named.peer, ZKL_PEER_CURATOR);
    assert_false(zkl_name_parse("_c_6ba7b8!0-9dad-11d1-80b4-00c04fd430c8-report_lock_0000000001",
                                &report, &named));
}

/* Goal: a named lock's name can always be separated from the rest of its node's. Method: names that
 * cannot; names that can. */
TEST(bad_lock_names_are_refused)
{
    static const char *const bad[] = {"", "a/b", "a_lock_b", "_lock_", "a\nb", "."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(zkl_lock_name_fault(bad[i]));
    assert_null(zkl_lock_name_fault("report"));
    assert_null(zkl_lock_name_fault("_lock"));
    assert_null(zkl_lock_name_fault("lock-"));
    static char longest[ZKL_LOCK_NAME_MAX + 2];
    memset(longest, 'n', ZKL_LOCK_NAME_MAX);
    assert_null(zkl_lock_name_fault(longest));
    longest[ZKL_LOCK_NAME_MAX] = 'n';
    assert_non_null(zkl_lock_name_fault(longest));
}

/* Goal: numbers are read with their sign, whatever their width. Method: the ends of the range,
 * 11 characters, names of other libraries. */
TEST(numbers_are_read_with_their_sign)
{
    expect_number("lock-0000000000", 0);
    expect_number("_c_00000000-0000-4000-8000-000000000000-lock-0000000007", 7);
    expect_number("lock-2147483647", INT32_MAX);
    expect_number("lock--2147483648", INT32_MIN);
    expect_number("lock--000000001", -1);
    expect_number("lock-7", 7);
    expect_number("x-lock-0000000012", 12);
    expect_number("lock-0000000001lock-0000000002", 2);
    expect_number("lock-x-lock--5", -5);
}

/* Goal: other children are no contenders. Method: no number, more than a number, too many
 * digits, beyond 32 bits, other recipes' names. */
TEST(other_children_are_foreign)
{
    static const char *const names[] = {"",
                                        "lock-",
                                        "lock--",
                                        "lock-+1",
                                        "lock- 1",
                                        "lock-1x",
                                        "lock-0000000001-",
                                        "lock-00000000001",
                                        "lock-2147483648",
                                        "lock--2147483649",
                                        "lock-9999999999",
                                        "lock-99999999999999999999",
                                        "lock---1",
                                        "readme",
                                        "LOCK-0000000001",
                                        "x-0000000001",
                                        "x-lock-",
                                        "x--1",
                                        "_c_-lease-0000000001",
                                        "report_lock_0000000001",
                                        "0000000001",
                                        "lock-0000000001lock-",
                                        "lock-1-lock"};
    struct zkl_node_name place;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (zkl_name_parse(names[i], &mutex, &place))
            fail_msg("\"%s\" is taken for %d", names[i], (int)place.sequence);
    }
}

/* Goal: the exhausted zone is where every number may be given twice, with 2^20 to spare. Method:
 * its edges. */
TEST(the_exhausted_zone_has_its_edges)
{
    assert_false(zkl_sequence_exhausted(0));
    assert_false(zkl_sequence_exhausted(ZKL_SEQUENCE_HARD - 1));
    assert_true(zkl_sequence_exhausted(ZKL_SEQUENCE_HARD));
    assert_true(zkl_sequence_exhausted(INT32_MAX));
    assert_true(zkl_sequence_exhausted(-1));
    assert_true(zkl_sequence_exhausted(INT32_MIN));
    assert_int_equal(INT32_MAX - ZKL_SEQUENCE_HARD + 1, 1 << 20);
}

static const char *recognised(const char *child, enum zkl_role role, int32_t sequence)
{
    static struct zkl_naming naming;
    struct zkl_node_name place;
    if (!zkl_name_recognise(child, &naming, &place))
        return NULL;
    assert_int_equal(place.role, role);
    assert_int_equal(place.sequence, sequence);
    assert_int_equal(naming.role, role);
    assert_true(zkl_name_parse(child, &naming, &place));
    return naming.names == ZKL_NAMES_NAMED ? naming.name : "";
}

/* Goal: a contender is known by its name alone, a named lock's with its name; what only looks like one
 * is not. */
TEST(contenders_are_recognised_by_their_names)
{
#define PREFIX "_c_01234567-89ab-4cde-8f01-23456789abcd-"
    char name[256];
    assert_string_equal(recognised(PREFIX "lock-0000000007", ZKL_ROLE_LOCK, 7), "");
    assert_string_equal(recognised(PREFIX "__READ__-000000007", ZKL_ROLE_READ, -7), "");
    assert_string_equal(recognised("ab__rlock__0000000007", ZKL_ROLE_READ, 7), "");
    assert_string_equal(recognised("x-12-0000000007", ZKL_ROLE_LOCK, 7), "");
    assert_string_equal(recognised(PREFIX "report_lock_0000000007", ZKL_ROLE_LOCK, 7), "report");
    assert_string_equal(recognised(PREFIX "a-lock-_lock_-000000007", ZKL_ROLE_LOCK, -7), "a-lock-");
    assert_null(recognised(PREFIX "_lock_0000000007", ZKL_ROLE_LOCK, 7)); /* no name */
    assert_null(recognised(PREFIX "report_lock_", ZKL_ROLE_LOCK, 0));
    assert_null(recognised(PREFIX "a_lock_b_lock_0000000007", ZKL_ROLE_LOCK, 7));
    assert_null(
        recognised("_c_01234567-89AB-4cde-8f01-23456789abcd-a_lock_0000000007", ZKL_ROLE_LOCK, 7));
    assert_null(recognised("_c_01234567_lock_0000000007", ZKL_ROLE_LOCK, 7));
    assert_null(recognised("_c__lock_0000000007", ZKL_ROLE_LOCK, 7));
    assert_null(recognised("report_lock_0000000007", ZKL_ROLE_LOCK, 7));
    assert_null(recognised(PREFIX "lease-0000000007", ZKL_ROLE_LOCK, 7));
    snprintf(name, sizeof name, PREFIX "%065d_lock_0000000007", 1);
    assert_null(recognised(name, ZKL_ROLE_LOCK, 7));
}

/* Goal: an owner text is reported as it is only if it is printable. */
TEST(printable_text_has_no_control_characters)
{
    assert_true(zkl_text_is_printable("", 0));
    assert_true(zkl_text_is_printable("host 1 2", 8));
    assert_true(zkl_text_is_printable("\xc3\x9f \xf0\x9f\x94\x92", 7)); /* above U+FFFF too */
    assert_false(zkl_text_is_printable("a\nb", 3));
    assert_false(zkl_text_is_printable("a\0b", 3));
    assert_false(zkl_text_is_printable("\x7f", 1));
    assert_false(zkl_text_is_printable("\xc3", 1));
    assert_false(zkl_text_is_printable("\xff", 1));
    assert_false(zkl_text_is_printable("\xed\xa0\x80", 3)); /* U+D800 */
    assert_false(zkl_text_is_printable("\xed\xbf\xbf", 3)); /* U+DFFF */
    assert_true(zkl_text_is_printable("\xed\x9f\xbf\xee\x80\x80", 6));
}

/* Goal: a node's path is checked as a lock's is, except its length. */
TEST(a_node_path_may_be_longer_than_a_locks)
{
    char path[ZKL_PATH_MAX + 200];
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_non_null(zkl_path_fault(path));
    assert_null(zkl_node_path_fault(path));
    assert_non_null(zkl_node_path_fault("/a/../b"));
    assert_non_null(zkl_node_path_fault("/"));
    assert_non_null(zkl_node_path_fault("/zookeeper/quota"));
    assert_non_null(zkl_node_path_fault("a"));
    assert_non_null(zkl_node_path_fault(""));
}

/* Goal: the number of permits is decimal text in its bounds, or none. */
TEST(permits_are_decimal_text)
{
    assert_int_equal(zkl_permits_parse("1", 1), 1);
    assert_int_equal(zkl_permits_parse("0042", 4), 42);
    assert_int_equal(zkl_permits_parse("100000", 6), 100000);
    assert_int_equal(zkl_permits_parse("100001", 6), 0);
    assert_int_equal(zkl_permits_parse("1000000", 7), 0);
    assert_int_equal(zkl_permits_parse("127.0.0.1", 9), 0);
    assert_int_equal(zkl_permits_parse("-1", 2), 0);
    assert_int_equal(zkl_permits_parse("3\n", 2), 0);
    assert_int_equal(zkl_permits_parse("", 0), 0);
}

/* Goal: a text is copied as far as there is room, and always ends. */
TEST(a_text_is_copied_as_far_as_there_is_room)
{
    char out[5] = "zzzz";
    zkl_text_copy(out, sizeof out, "abcd");
    assert_string_equal(out, "abcd");
    zkl_text_copy(out, sizeof out, "efghi");
    assert_string_equal(out, "efgh");
    zkl_text_copy(out, sizeof out, NULL);
    assert_string_equal(out, "");
}

/* Goal: paths that differ in one place anywhere, as numbered ones do, fill a table evenly: of 2,560 no bucket of
 * 256 has more than 30, where chance alone puts 10 into each, and more than 30 into any once in 100,000. */
TEST(numbered_paths_spread)
{
    static const struct {
        const char *before, *after;
    } forms[] = {
        {"/", ""}, {"/locks/", ""}, {"/locks/a-", "/x"}, {"/zklock/", "-0000-lock-0000000007"}};
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        int in[256] = {0};
        for (int i = 0; i < 2560; i++) {
            char path[64];
            snprintf(path, sizeof path, "%s%d%s", forms[form].before, i, forms[form].after);
            in[zkl_text_hash(path) % 256]++;
        }
        for (int i = 0; i < 256; i++)
            assert_in_range(in[i], 0, 30);
    }
}

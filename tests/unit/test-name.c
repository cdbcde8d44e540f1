/* SPDX-License-Identifier: Apache-2.0
 * Names on the wire: paths, server lists, GUIDs, and which children are contenders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/name.h"

static void expect_fault(const char *path, const char *part)
{
    const char *fault = zkl_path_fault(path);
    if (!fault || !strstr(fault, part))
        fail_msg("\"%s\": %s", path, fault ? fault : "accepted");
}

/* Goal: paths that ZooKeeper takes are taken. Method: the shortest, nested, dotted, blank,
 * UTF-8, and the longest. */
static void good_paths_are_accepted(void **state)
{
    char longest[ZKL_PATH_MAX + 1];
    (void)state;
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
static void bad_paths_are_refused_with_the_reason(void **state)
{
    char too_long[ZKL_PATH_MAX + 2];
    (void)state;
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
static void bad_utf8_is_refused(void **state)
{
    (void)state;
    expect_fault("/a\xff", "UTF-8");
    expect_fault("/a\x80", "UTF-8");
    expect_fault("/a\xc3", "UTF-8");
    expect_fault("/a\xc3/b", "UTF-8");
    expect_fault("/a\xe6\x97", "UTF-8");
    expect_fault("/a\xc0\xaf", "UTF-8");           /* an overlong slash */
    expect_fault("/a\xed\xa0\x80", "refuses");     /* a surrogate */
    expect_fault("/a\xee\x80\x80", "refuses");     /* private use */
    expect_fault("/a\xef\xbf\xbf", "refuses");     /* U+FFFF */
    expect_fault("/a\xf0\x9f\x94\x92", "refuses"); /* above U+FFFF */
    assert_null(zkl_path_fault("/a\xef\xbf\xaf")); /* U+FFEF */
    assert_null(zkl_path_fault("/a\xed\x9f\xbf")); /* U+D7FF */
}

/* Goal: a server list is host:port, more of them, and perhaps a chroot. Method: good ones and
 * bad ones. */
static void server_lists_are_checked(void **state)
{
    static const char *const good[] = {"a:1",        "127.0.0.1:2181", "a:1,b:65535",
                                       "[::1]:2181", "a:1/chroot",     "a:1,b:2/x/y"};
    static const char *const bad[] = {
        "",         "/",      "a",      ":1",     "a:",       "a:0",      "a:65536",
        "a:123456", "a:12x",  "a:1,",   ",a:1",   "a:1,,b:2", "a:1, b:2", "a :1",
        "a:1/",     "a:1//x", "a:1/x/", "a:1/..", "a:-1",     "/chroot"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (zkl_servers_fault(good[i]))
            fail_msg("\"%s\" %s", good[i], zkl_servers_fault(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (!zkl_servers_fault(bad[i]))
            fail_msg("\"%s\" was accepted", bad[i]);
    }
}

/* Goal: a GUID is a version 4 UUID as Java writes it. Method: known bytes; the bits of version
 * and variant are overwritten. */
static void a_guid_is_a_version_4_uuid(void **state)
{
    static const unsigned char zeros[16];
    unsigned char bytes[16];
    char guid[ZKL_GUID_LEN + 1];
    (void)state;
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(0xf0 + i);
    zkl_guid_format(bytes, guid);
    assert_string_equal(guid, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff");
    zkl_guid_format(zeros, guid);
    assert_string_equal(guid, "00000000-0000-4000-8000-000000000000");
}

/* Goal: the prefix is Curator's, and the longest name fits. Method: its text; a name with the
 * smallest number. */
static void a_node_name_is_curators(void **state)
{
    static const char guid[] = "00000000-0000-4000-8000-000000000000";
    char prefix[ZKL_NODE_NAME_MAX + 1];
    (void)state;
    zkl_name_prefix(guid, prefix);
    assert_string_equal(prefix, "_c_00000000-0000-4000-8000-000000000000-lock-");
    assert_int_equal(strlen(prefix) + strlen("-2147483648"), ZKL_NODE_NAME_MAX);
    assert_true(zkl_name_has_guid("_c_00000000-0000-4000-8000-000000000000-lock-0000000001", guid));
    assert_false(
        zkl_name_has_guid("_c_00000000-0000-4000-8000-000000000001-lock-0000000001", guid));
    assert_false(zkl_name_has_guid("00000000-0000-4000-8000-000000000000-lock-0000000001", guid));
    assert_false(zkl_name_has_guid("_c_00000000-0000-4000-8000-000000000000", guid));
    assert_false(zkl_name_has_guid("_c_", guid));
}

static void expect_number(const char *name, int32_t expected)
{
    int32_t number = -7;
    if (!zkl_name_parse(name, &number) || number != expected)
        fail_msg("\"%s\" is taken for %d", name, (int)number);
}

/* Goal: numbers are read with their sign, whatever their width. Method: the ends of the range,
 * 11 characters, names of other libraries. */
static void numbers_are_read_with_their_sign(void **state)
{
    (void)state;
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
static void other_children_are_foreign(void **state)
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
                                        "__READ__0000000001",
                                        "0000000001",
                                        "lock-0000000001lock-",
                                        "lock-1-lock"};
    int32_t number;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (zkl_name_parse(names[i], &number))
            fail_msg("\"%s\" is taken for %d", names[i], (int)number);
    }
}

/* Goal: the exhausted zone is where every number may be given twice, with 2^20 to spare. Method:
 * its edges. */
static void the_exhausted_zone_has_its_edges(void **state)
{
    (void)state;
    assert_false(zkl_sequence_exhausted(0));
    assert_false(zkl_sequence_exhausted(ZKL_SEQUENCE_HARD - 1));
    assert_true(zkl_sequence_exhausted(ZKL_SEQUENCE_HARD));
    assert_true(zkl_sequence_exhausted(INT32_MAX));
    assert_true(zkl_sequence_exhausted(-1));
    assert_true(zkl_sequence_exhausted(INT32_MIN));
    assert_int_equal(INT32_MAX - ZKL_SEQUENCE_HARD + 1, 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_paths_are_accepted),
        cmocka_unit_test(bad_paths_are_refused_with_the_reason),
        cmocka_unit_test(bad_utf8_is_refused),
        cmocka_unit_test(server_lists_are_checked),
        cmocka_unit_test(a_guid_is_a_version_4_uuid),
        cmocka_unit_test(a_node_name_is_curators),
        cmocka_unit_test(numbers_are_read_with_their_sign),
        cmocka_unit_test(other_children_are_foreign),
        cmocka_unit_test(the_exhausted_zone_has_its_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Server lists as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/servers.h"

/* Goal: a server list is host:port, more of them, and perhaps a chroot. Method: good ones and
 * bad ones. */
static void server_lists_are_checked(void **state)
{
    static const char *const good[] = {"a:1",
                                       "127.0.0.1:2181",
                                       "a:1,b:65535",
                                       "[::1]:2181",
                                       "a:1/chroot",
                                       "a:1,b:2/x/y",
                                       "[fe80::1%eth0]:2181",
                                       "a:1,[::ffff:10.0.0.1]:2/x",
                                       "host-1.example.:1",
                                       "a:1/x,y",
                                       "a:1/x:3,y:z/b:2"};
    static const char *const bad[] = {"",
                                      "/",
                                      "a",
                                      ":1",
                                      "a:",
                                      "a:0",
                                      "a:65536",
                                      "a:123456",
                                      "a:12x",
                                      "a:1,",
                                      ",a:1",
                                      "a:1,,b:2",
                                      "a:1, b:2",
                                      "a :1",
                                      "a:1/",
                                      "a:1//x",
                                      "a:1/x/",
                                      "a:1/..",
                                      "a:-1",
                                      "/chroot",
                                      "::1:2181",
                                      "a:1:2",
                                      "[::1]",
                                      "[::1]:",
                                      "[::1",
                                      "[]:1",
                                      "[:1",
                                      "]:1",
                                      "[a]:1",
                                      "[1.2.3.4]:1",
                                      "[::1%]:1",
                                      "[[::1]]:1",
                                      "[::1]x:1",
                                      "x[::1]:1",
                                      "a:1,::1",
                                      "a:1/x,b:2",
                                      "a:1/x,b:2/x",
                                      "a:1/x,y,b:2",
                                      "a:1/x/y,[::1]:2",
                                      "a:1,b:2/x,c:3"};
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

/* Goal: the parts of a list. Method: each entry's host and port; brackets and chroot are left out. */
static void a_list_has_parts(void **state)
{
    static const char list[] = "a.example:2181,[::1]:1,127.0.0.1:65535,[fe80::1%eth0]:22/x/y:3,b";
    static const char *const expected[][2] = {
        {"a.example", "2181"}, {"::1", "1"}, {"127.0.0.1", "65535"}, {"fe80::1%eth0", "22"}};
    struct zkl_server server;
    size_t at = 0;
    (void)state;
    assert_null(zkl_servers_fault(list));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(zkl_servers_next(list, &at, &server));
        assert_int_equal(server.host_length, strlen(expected[i][0]));
        assert_memory_equal(server.host, expected[i][0], server.host_length);
        assert_int_equal(server.port_length, strlen(expected[i][1]));
        assert_memory_equal(server.port, expected[i][1], server.port_length);
    }
    assert_false(zkl_servers_next(list, &at, &server));
    assert_false(zkl_servers_next(list, &at, &server));
}

static void expect_merged(const char *const *lists, size_t count, const char *merged)
{
    char *text = zkl_addresses_merge(lists, count);
    assert_string_equal(text, merged);
    free(text);
}

/* Goal: the addresses of all names are one list, that is the same in whatever order they were found. */
static void addresses_are_merged(void **state)
{
    static const char *const one[] = {"10.0.0.2:1,10.0.0.1:1", NULL, "::1:1", "",
                                      "10.0.0.1:2,10.0.0.1:1"};
    static const char *const other[] = {"", "10.0.0.1:1,::1:1", "10.0.0.1:2", NULL, "10.0.0.2:1"};
    (void)state;
    expect_merged(one, 5, "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1,::1:1");
    expect_merged(other, 5, "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1,::1:1");
    expect_merged(one + 1, 1, "");
    expect_merged(one, 0, "");
}

/* Goal: it is known which list libzookeeper would take for the one before. Method: lists that are
 * alike without their ports, and others. */
static void lists_that_look_alike_are_known(void **state)
{
    static const struct {
        const char *before, *after;
        bool alike;
    } cases[] = {
        {"10.0.0.1:1", "10.0.0.1:2", true},
        {"10.0.0.1:1", "10.0.0.2:1", false},
        {"10.0.0.1:1,10.0.0.2:2", "10.0.0.1:2,10.0.0.2:1", true},
        {"10.0.0.1:1,10.0.0.1:2", "10.0.0.1:1,10.0.0.2:2",
         true}, /* each of the one is in the other */
        {"10.0.0.1:1,10.0.0.2:2", "10.0.0.1:1,10.0.0.1:2", false},
        {"10.0.0.1:1", "10.0.0.1:1,10.0.0.1:2", false}, /* longer */
        {"10.0.0.1:1", "10.0.0.10:1", false},
        {"::1:1,fe80::1%eth0:1", "fe80::1%eth0:2,::1:1", true},
        {"::1:1", "::1:1:1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (zkl_addresses_look_alike(cases[i].before, cases[i].after) != cases[i].alike)
            fail_msg("%s and %s", cases[i].before, cases[i].after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_lists_are_checked),
        cmocka_unit_test(a_list_has_parts),
        cmocka_unit_test(addresses_are_merged),
        cmocka_unit_test(lists_that_look_alike_are_known),
    };
    return cmocka_run_group_tests_name("servers", tests, NULL, NULL);
}

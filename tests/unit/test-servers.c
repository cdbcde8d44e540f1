/* SPDX-License-Identifier: Apache-2.0 */
/* Server lists as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

#include "core/servers.h"

/* Goal: a server list is host:port, more of them, and perhaps a chroot. Method: good ones and
 * bad ones. */
TEST(server_lists_are_checked)
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
TEST(a_list_has_parts)
{
    static const char list[] = "a.example:2181,[::1]:1,127.0.0.1:65535,[fe80::1%eth0]:22/x/y:3,b";
    static const char *const expected[][2] = {
        {"a.example", "2181"}, {"::1", "1"}, {"127.0.0.1", "65535"}, {"fe80::1%eth0", "22"}};
    struct zkl_server server;
    size_t at = 0;
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
TEST(addresses_are_merged)
{
    static const char *const one[] = {"10.0.0.2:1,10.0.0.1:1", NULL, "::1:1", "",
                                      "10.0.0.1:2,10.0.0.1:1"};
    static const char *const other[] = {"", "10.0.0.1:1,::1:1", "10.0.0.1:2", NULL, "10.0.0.2:1"};
    expect_merged(one, 5, "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1,::1:1");
    expect_merged(other, 5, "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1,::1:1");
    expect_merged(one + 1, 1, "");
    expect_merged(one, 0, "");
}

/* Goal: it is known which list libzookeeper would take for the one before. Method: lists that are
 * alike without their ports, and others. */
TEST(lists_that_look_alike_are_known)
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (zkl_addresses_look_alike(cases[i].before, cases[i].after) != cases[i].alike)
            fail_msg("%s and %s", cases[i].before, cases[i].after);
    }
}

/* Goal: the list that an ensemble gives is read as its servers write it: for clients, or for those
 * with TLS, the quorum's host where the client's is none. Method: lists and what they become; each
 * also without the byte behind it. */
TEST(the_list_of_an_ensemble_is_read)
{
    static const struct {
        const char *text, *plain, *tls; /* NULL: a fault */
    } cases[] = {
        {"server.1=a:2888:3888:participant;0.0.0.0:2181\nserver.2=b:2888:3888:observer;2182\n"
         "version=100000003",
         "a:2181,b:2182", NULL},
        {"server.1=10.0.0.1:2888:3888;10.0.1.1:2181", "10.0.1.1:2181", NULL},
        {"server.1=[fe80::1]:2888:3888:participant;[::]:2181\n"
         "server.2=[fe80::2]:1:2;[0:0:0:0:0:0:0:0]:1\nserver.3=x:1:2;[::1]:9\n",
         "[fe80::1]:2181,[fe80::2]:1,[::1]:9", NULL},
        {"server.1=a:1:2|b:3:4:participant;0.0.0.0:2181", "a:2181", NULL},
        {"server.1=a:1:2:participant;2181;2281\nserver.2=b:1:2;c:2181;d:2281", "a:2181,c:2181",
         "a:2281,d:2281"},
        {"server.1=a:1:2:participant;;e:2281", NULL, "e:2281"},
        {"server.1=a:1:2:participant\nserver.2=b:1:2;2181", NULL, NULL},
        {"server.2=b:1:2;2181\nserver.1=a:1:2:participant", NULL, NULL},
        {"version=0", NULL, NULL},
        {"", NULL, NULL},
        {"\n\n", NULL, NULL},
        {"server.1", NULL, NULL},
        {"server.1=", NULL, NULL},
        {"server.1=;", NULL, NULL},
        {"server.1=;;", NULL, NULL},
        {"server.1=;1", NULL, NULL},
        {"server.1=a;0", NULL, NULL},
        {"server.1=a;1/x", NULL, NULL},
        {"server.1=a;b/c:1", NULL, NULL},
        {"server.1=a:1:2;x y:1", NULL, NULL},
        {"server.1=[::1:1:2;1", NULL, NULL},
    };
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        size_t length = strlen(cases[i / 2].text);
        const char *expected = i % 2 ? cases[i / 2].tls : cases[i / 2].plain, *fault = NULL;
        char *text = malloc(length + 1); /* nothing behind it; one byte, as 0 may be NULL */
        memcpy(text + 1, cases[i / 2].text, length);
        char *list = zkl_servers_of_ensemble(text + 1, length, i % 2, &fault);
        if (expected ? !list || strcmp(list, expected) != 0 || fault : list || !fault)
            fail_msg("\"%s\" became \"%s\" (%s)", cases[i / 2].text, list ? list : "(null)",
                     fault ? fault : "no fault");
        free(list);
        free(text);
    }
}

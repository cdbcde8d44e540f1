/* SPDX-License-Identifier: Apache-2.0 */
/* zklock doctor and the servers: settings that break what a hold's window counts on are named, and where they
 * are in order nothing is said. */
#include "tool.h"

#include <stdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bytes.h"
#include "tool/net.h"
#include "snapshot.h"

static struct zks *ensemble;

static void begin(const struct zks_options *options)
{
    char err[512] = "";

    if (zks_start(&ensemble, options, err, sizeof err) != 0)
        fail_msg("%s", err);
    check_ok(setenv("ZKLOCK_SERVERS", zks_connect_string(ensemble), 1));
}

static int end(void **state)
{
    int rc = tool_end(state);

    zks_stop(ensemble);
    ensemble = NULL;
    return rc;
}

#define SERVERS_TEST(name) WORLD_TEST_IN(name, tool_prepare, end)

/* The test fails if the words are said. */
static void check_silent(const char *words)
{
    struct tool tool = tool_line("doctor /not/there");

    check_num(tool_status(&tool), >=, 0);
    if (tool_says(&tool, words))
        fail_msg("there is \"%s\": %s", words, tool_text(&tool));
}

SERVERS_TEST(servers_in_order_are_not_spoken_of)
{
    begin(&(struct zks_options){.nodes = 3});
    check_said(0, "doctor /not/there", "1 lock, 0 problems\n");
    check_silent("servers");
}

/* Goal: one of three servers differs. The doctor reports each setting that differs, and that a session
 * timeout is less than two ticks of that server. */
SERVERS_TEST(servers_that_differ_are_found)
{
    const char *lines = "tickTime=700\nminSessionTimeout=3000\nmaxSessionTimeout=20000";

    begin(&(struct zks_options){.nodes = 3, .node_extra = {[1] = lines}});
    check_said(1, "doctor /not/there", "problem: tickTime is 100 ms at 127.0.0.1:",
               "problem: minSessionTimeout is 200 ms at 127.0.0.1:",
               "problem: maxSessionTimeout is 60000 ms at 127.0.0.1:", "1 lock, 3 problems\n");
    check_said(1, "doctor --session-timeout 1 /not/there",
               "problem: a session timeout of 1000 ms is less than two ticks of 127.0.0.1:",
               "ask for 1400 ms or more", "1 lock, 4 problems\n");
    check_silent("two ticks");
}

/* Goal: the doctor reports a setting of the tick that is smaller than some server's tickTime, and no
 * other. */
SERVERS_TEST(tick_of_the_setting_is_compared)
{
    begin(&(struct zks_options){.nodes = 3, .node_extra = {[2] = "tickTime=250"}});
    check_ok(setenv("ZKLOCK_TICK", "0.1", 1));
    check_said(1, "doctor /not/there",
               "problem: the setting tick is 0.1 s, but tickTime is 250 ms at 127.0.0.1:",
               ": make tick 0.25 or more");
    check_ok(setenv("ZKLOCK_TICK", "0.25", 1));
    check_silent("the setting tick");
}

/* Goal: the doctor asks a server at an IPv6 address like any other. */
SERVERS_TEST(a_server_at_an_ipv6_address_is_asked)
{
    int port = 0, fd;

    check_ok(net_free_ports(&port, 1));
    fd = net_listen_at("::1", port);
    if (fd < 0) {
        print_message("skipped: this machine has no ::1\n");
        skip();
    }
    close(fd);
    begin(&(struct zks_options){.hosts = {"::1"}, .node_extra = {"tickTime=700"}});
    check_num(zks_connect_string(ensemble)[0], ==, '[');
    check_said(1, "doctor --session-timeout 1 /not/there", "less than two ticks of [::1]:");
    check_silent("did not answer");
}

/* Goal: the doctor names a server that does not show its settings or does not run, and counts it as no
 * problem. */
SERVERS_TEST(servers_that_do_not_tell_are_named)
{
    begin(&(struct zks_options){
        .nodes = 3,
        .node_extra = {
            [0] = "4lw.commands.whitelist=srvr,conf", [2] = "4lw.commands.whitelist=srvr,ruok"}});
    check_said(0, "doctor /not/there", " to have them checked, allow conf in its",
               " to have local sessions and observer masters found, allow mntr in its",
               "1 lock, 0 problems\n");
    check_ok(zks_kill_node(ensemble, 1));
    check_ok(zks_wait_ready(ensemble, ZKS_READY_MS));
    check_said(0, "doctor /not/there", " did not answer srvr", "1 lock, 0 problems\n");
}

/* Goal: an observer is named; one that hangs on a follower makes that one a problem. */
SERVERS_TEST(observer_masters_are_found)
{
    struct zks_options options = {.nodes = 4, .observer = {[3] = true}};
    char line[64];
    int port;

    begin(&options);
    check_said(0, "doctor /not/there",
               " is an observer: check that no follower has observerMasterPort");
    end(NULL);
    check_ok(net_free_ports(&port, 1));
    snprintf(line, sizeof line, "observerMasterPort=%d", port);
    /* The observer, and the one that never leads from the start, as both others have a higher id. Two with one port
     * would be worse: the second one joins and leaves without end, and the ensemble is hardly ever complete. */
    options.node_extra[0] = options.node_extra[3] = line;
    begin(&options);
    check_said(1, "doctor /not/there", " is an observer master: ");
}

/* Goal: the doctor warns of local sessions, which show as its own ones are such. */
SERVERS_TEST(local_sessions_are_found)
{
    begin(&(struct zks_options){.nodes = 3, .cfg_extra = "localSessionsEnabled=true"});
    check_said(1, "doctor /not/there",
               " has local sessions, and a hold's window may outlast one: remove "
               "localSessionsEnabled",
               "1 lock, 3 problems\n");
}

/* --- a follower with data of its own ----------------------------------------------------------- */

#define NODE "/apart/lock/_c_01234567-89ab-4def-8123-456789abcdef-lock-000000000"

static int make_holder(struct wire **leader)
{
    int node = zks_wait_leader(ensemble, ZKS_READY_MS);

    check_num(node, >=, 0);
    check_ok(wire_open(leader, zks_host(), zks_port(ensemble, (size_t)node), WIRE_LASTING_MS));
    check_ok(wire_create(*leader, "/apart", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(*leader, "/apart/lock", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(*leader, NODE "1", "holder", WIRE_EPHEMERAL, NULL, 0));
    return (node + 1) % 3;
}

/* The follower comes back with another name for that node. Without data it writes what the leader sends as a
 * snapshot. */
static void set_apart(size_t follower)
{
    char err[512] = "";

    check_ok(zks_stop_node(ensemble, follower));
    check_ok(zks_wipe_node(ensemble, follower));
    check_ok(zks_start_node(ensemble, follower));
    check_ok(zks_wait_ready(ensemble, ZKS_READY_MS));
    check_ok(zks_stop_node(ensemble, follower));
    if (snap_rename(zks_data_dir(ensemble, follower), NODE "1", NODE "0", err, sizeof err) != 0)
        fail_msg("%s", err);
    check_ok(zks_start_node(ensemble, follower));
    check_ok(zks_wait_ready(ensemble, ZKS_READY_MS));
}

/* As one does that does not know yet what was committed, or that it leads no more. */
static size_t hide_in_lists(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                            void *unused)
{
    static const char name[] = NODE "1";
    const char *child = strrchr(name, '/') + 1;

    (void)unused;
    unsigned char *at = memmem(frame, size, child, strlen(child));
    if (dir == PROXY_TO_CLIENT && (op == PROXY_CHILDREN || op == PROXY_CHILDREN2) && at)
        at[strlen(child) - 1] = '9';
    return size;
}

/* Goal: what a list alone shows accuses nobody: a server that has been the leader shows what was for a while.
 * One that takes no session is named. Method: a proxy before a sound server. */
SERVERS_TEST(a_list_accuses_nobody)
{
    struct wire *leader;
    char servers[256], words[128];

    begin(&(struct zks_options){.nodes = 3, .max_session_ms = WIRE_LASTING_MS});
    size_t follower = (size_t)make_holder(&leader);
    struct proxy *proxy = world_proxy_to(ensemble, follower);
    snprintf(servers, sizeof servers, "%s,%s,%s", proxy_address(proxy),
             zks_address(ensemble, (follower + 1) % 3), proxy_address(proxy));
    proxy_set_hook(proxy, hide_in_lists, NULL);
    check_said(0, written("doctor --servers %s /apart/lock", servers), ", 0 problems\n");
    proxy_set_hook(proxy, NULL, NULL);
    proxy_hang_up_on(proxy, PROXY_CONNECT);
    snprintf(words, sizeof words,
             "what %s shows was not compared to the end: no ZooKeeper server could be reached",
             proxy_address(proxy));
    struct tool tool = tool_line("doctor --servers %s /apart/lock", servers);
    check_num(tool_status(&tool), ==, 0);
    const char *told = strstr(tool_text(&tool), words);
    check_true(told && !strstr(told + 1, words)); /* once, though it is twice in the list */
    wire_close(leader);
}

/* Lists are not for reading. */
static size_t refuse_lists(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                           void *unused)
{
    enum { ERR_AT = 12, RUNTIME_INCONSISTENCY = -2 };

    (void)unused;
    if (dir == PROXY_TO_CLIENT && (op == PROXY_CHILDREN || op == PROXY_CHILDREN2) && size > ERR_AT)
        bytes_put32(frame + ERR_AT, RUNTIME_INCONSISTENCY);
    return size;
}

/* The doctor's own session is at any of them, and where it is at this one its look ends with 69. */
static void one_that_cannot_be_looked_at_hides_none(size_t apart)
{
    struct tool tool;
    struct proxy *proxy = world_proxy_to(ensemble, (apart + 1) % 3);
    const char *list[] = {zks_address(ensemble, (apart + 2) % 3), proxy_address(proxy),
                          zks_address(ensemble, apart)};
    char servers[256];
    int status;

    snprintf(servers, sizeof servers, "%s,%s,%s", list[0], list[1], list[2]);
    proxy_set_hook(proxy, refuse_lists, NULL);
    do {
        tool = tool_line("doctor --servers %s /apart/lock", servers);
        status = tool_status(&tool);
    } while (status == 69);
    check_num(status, ==, 1);
    check_true(tool_says(&tool, written("%s shows the node " NODE "0 of holder", list[2])));
    check_true(tool_says(&tool, written("what %s shows was not compared to the end", list[1])));
}

/* A wait behind a node that only its own server has, with no other one to go to. */
static void the_waiter_is_told(void)
{
    struct tool tool = tool_line("run -v --session-timeout 2 /apart/lock -- true");

    check_wait(tool_says(&tool, "zklock: the server shows a node that the leader lacks: to another "
                                "one; zklock doctor says which\n"),
               WAIT_MS);
    tool_kill(&tool, SIGTERM);
}

/* Goal: a follower that shows a node that the leader does not have, and lacks one that it has
 * (ZOOKEEPER-4837, -5010), is named with both. Those who would ask or delete that node are told what is so, and
 * soon. */
SERVERS_TEST(a_follower_with_data_of_its_own_is_found)
{
    struct wire *leader;

    begin(&(struct zks_options){.nodes = 3, .no_digest = true, .max_session_ms = WIRE_LASTING_MS});
    size_t follower = (size_t)make_holder(&leader);
    check_said(0, "doctor /apart/lock", " 0 problems\n");
    set_apart(follower);
    check_said(1, "doctor /apart",
               written("problem: %s shows the node " NODE
                       "0 of holder, which the leader does not have: clients "
                       "of that server may wait behind it for ever",
                       zks_address(ensemble, follower)));
    check_said(1, "doctor /",
               written("problem: %s does not show the node " NODE
                       "1 of holder, which the leader has: clients of "
                       "that server do not wait for it",
                       zks_address(ensemble, follower)));
    one_that_cannot_be_looked_at_hides_none(follower);
    check_ok(setenv("ZKLOCK_SERVERS", zks_address(ensemble, follower), 1));
    check_said(0, "doctor /apart", "the list lacks servers of the ensemble");
    the_waiter_is_told();
    check_said(70, "revoke /apart/lock", "the server does not answer as ZooKeeper does");
    check_said(70, "revoke /apart/lock", "that server has data of its own");
    check_said(70, written("revoke --within 5 %s", NODE "0"), "that server has data of its own");
    check_said(70, written("break --yes %s", NODE "0"), "that server has data of its own");
    check_ok(wire_delete(leader, NODE "1", -1));
    wire_close(leader);
}

/* A server of another make, as far as srvr goes: it hangs up on everything else. */
static pid_t begin_other(int port, const char *text)
{
    int listener = net_listen_at("127.0.0.1", port);

    check_num(listener, >=, 0);
    pid_t child = fork();
    if (child != 0) {
        close(listener);
        return child;
    }
    for (;;) {
        char word[4];
        struct pollfd one = {.fd = listener, .events = POLLIN};
        poll(&one, 1, -1);
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (recv(fd, word, sizeof word, MSG_WAITALL) == 4 && memcmp(word, "srvr", 4) == 0)
            (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
        close(fd);
    }
}

/* Ids of sessions are small numbers. */
static size_t count_sessions(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                             void *unused)
{
    (void)unused;
    if (dir == PROXY_TO_CLIENT && op == PROXY_CONNECT && size >= 16)
        bytes_put64(frame + 8, 4711);
    return size;
}

/* Goal: the doctor warns of a server that is no ZooKeeper, by what it calls itself and by the ids of its sessions. A
 * command is not run under a lock there. */
SERVERS_TEST(another_make_is_named)
{
    struct proxy *proxy;
    int port = 0;

    begin(&(struct zks_options){0});
    check_ok(net_free_ports(&port, 1));
    pid_t other = begin_other(port, "ClickHouse Keeper version: v24.8\nMode: standalone\n");
    check_ok(setenv("ZKLOCK_SERVERS",
                    written("%s,127.0.0.1:%d", zks_connect_string(ensemble), port), 1));
    check_said(1, "doctor /not/there", " is no ZooKeeper: nothing shows how it ends sessions",
               "1 lock, 1 problem\n");
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    other = begin_other(port, "This ZooKeeper instance is not currently serving requests\n");
    check_said(0, "doctor /not/there", " serves no requests now: it starts, or has no quorum");
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    proxy = world_proxy_to(ensemble, 0);
    proxy_set_hook(proxy, count_sessions, NULL);
    check_ok(setenv("ZKLOCK_SERVERS", proxy_address(proxy), 1));
    check_said(1, "doctor /not/there", "the server is no ZooKeeper");
    check_said(69, "run /elsewhere -- true",
               "the server is no ZooKeeper (by its session id): how long it keeps a session is not "
               "provable, so");
    check_ok(setenv("ZKLOCK_SERVERS", zks_connect_string(ensemble), 1));
    check_silent("is no ZooKeeper");
}

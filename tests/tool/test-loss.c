/* SPDX-License-Identifier: Apache-2.0 */
/* zklock run when the lock, or zklock itself, is lost: the command and all that descends from it are dead
 * before anybody else can have the lock. */
#include "tool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define SESSION "2"
#define END_MS 2000    /* and its end */
#define WINDOW_MS 1875 /* of that session: the longest time for which a lock can be proved */

/* --- the scene --------------------------------------------------------------------------------- */

/* A zklock, with a proxy of its own, whose stubborn command runs; and one who waits for the lock. */
struct scene {
    struct proxy *proxy;
    struct worked worked;
    struct tool tool;
    const char *path;
    struct zkl_mutex *next;
    int64_t struck_ns; /* when the loss began */
    int64_t late_ms;   /* what other work took from every process until the next one had the lock */
};

static bool has_begun(const struct scene *s)
{
    return atomic_load(&s->worked.shared->begun) > 0;
}

static bool has_ended(const struct tool *tool)
{
    return waitpid(tool->pid, NULL, WNOHANG) == tool->pid;
}

static struct scene set_scene(const char *session)
{
    struct scene s = {.worked = worked_new(), .path = cluster_path("loss"), .proxy = world_proxy()};

    set_session(session);
    s.next = world_mutex(world_client(), s.path);
    return s;
}

static void begin(struct scene *s, const char *session, const char *how)
{
    int tries = 0;

    *s = set_scene(session);
    do {
        check_num(++tries, <=, 10);
        s->tool = tool_line("run -v --servers %s %s -- work %s 0 %s", proxy_address(s->proxy),
                            s->path, s->worked.name, how);
        check_wait(has_begun(s) || has_ended(&s->tool), WAIT_MS);
    } while (!has_begun(s)); /* a busy machine may take the lock from it before */
    (void)lag_end_ms();      /* of a scene before, if nobody has asked */
    lag_begin();
    s->struck_ns = net_boot_ns();
}

/* The next client gets the lock only after the command is dead, and the command died before the window's end, or later
 * by no more than what the machine took from every process: from the guard, which then kills late, as well. */
static void check_dead_in_time(struct scene *s)
{
    pid_t pid = atomic_load(&s->worked.shared->pid);

    if (zkl_mutex_lock_for(s->next, WAIT_MS) != 0)
        fail_msg("%s: %s", zkl_error_detail(), tool_text(&s->tool));
    bool is_dead = process_gone(pid);
    s->late_ms = (net_boot_ns() - s->struck_ns) / 1000000 - lag_end_ms();
    if (!is_dead)
        check_num(s->late_ms, >, END_MS - WINDOW_MS);
    check_wait(process_gone(pid), WAIT_MS);
    int64_t most_ms = WINDOW_MS + s->late_ms;
    check_num(atomic_load(&s->worked.shared->alive_ns) - s->struck_ns, <, most_ms * 1000000);
    check_ok(zkl_mutex_unlock(s->next));
}

/* The guard says by how much the command's end preceded the window's end. That may be negative by no more than what
 * the machine took from every process. */
static void check_spare(const struct scene *s)
{
    const char *text = strstr(tool_text(&s->tool), "the command has ended, ");
    int spare_ms;

    check_true(text != NULL);
    check_num(sscanf(text, "the command has ended, %d ms", &spare_ms), ==, 1);
    check_num(spare_ms, >, -s->late_ms);
}

static void check_lost(struct scene *s, const char *words)
{
    check_num(tool_status(&s->tool), ==, 79);
    if (!tool_says(&s->tool, words))
        fail_msg("without \"%s\": %s", words, tool_text(&s->tool));
}

/* --- zklock is stopped, killed or cut off -------------------------------------------------------- */

static void stopped(const char *how)
{
    struct scene s;

    begin(&s, SESSION, how);
    check_ok(kill(s.tool.pid, SIGSTOP));
    check_dead_in_time(&s);
    check_ok(kill(s.tool.pid, SIGCONT));
    check_lost(&s, "no server has confirmed the lock for too long: zklock ends the command");
    check_spare(&s);
}

static void killed(const char *how)
{
    struct scene s;

    begin(&s, SESSION, how);
    check_ok(kill(s.tool.pid, SIGKILL));
    check_dead_in_time(&s);
    check_num(tool_signal(&s.tool), ==, SIGKILL);
}

static void cut_off(const char *how)
{
    struct scene s;

    begin(&s, SESSION, how);
    proxy_hole(s.proxy, PROXY_BOTH);
    check_dead_in_time(&s);
    proxy_cut(s.proxy);
    proxy_heal(s.proxy);
    check_lost(&s, "no server has confirmed the lock for too long: zklock ends the command");
    check_spare(&s);
}

/* Goal: a command that hears no SIGTERM is dead before the window ends, whatever happened to zklock: 50 of
 * 50 times, 6 in the short form. Modes: F66. */
TOOL_TEST(the_command_is_dead_before_the_window_ends)
{
    static void (*const losses[])(const char *) = {stopped, killed, cut_off};
    long rounds = test_length(50, 6);

    for (long i = 0; i < rounds; i++)
        losses[i % 3]("stubborn");
}

/* Goal: a descendant that has left the group and the session is found. */
TOOL_TEST(descendants_that_left_the_group_are_found)
{
    stopped("hide");
    killed("hide");
}

/* Goal: one that hears SIGTERM gets the time to clean up. */
TOOL_TEST(the_command_gets_sigterm_first)
{
    struct scene s;

    begin(&s, SESSION, "count");
    check_ok(kill(s.tool.pid, SIGKILL));
    check_dead_in_time(&s);
    check_num(atomic_load(&s.worked.shared->signals[SIGTERM]), ==, 1);
    check_num(tool_signal(&s.tool), ==, SIGKILL);
}

/* Goal: zklock that is killed while it waits leaves no process behind, and nothing was run. */
TOOL_TEST(killed_while_waiting)
{
    struct scene s;

    begin(&s, "10", "stubborn");
    struct tool tool = tool_line("run %s -- work %s 1", s.path, s.worked.name);
    check_wait(cluster_children(s.path) == 2, WAIT_MS);
    tool_kill(&tool, SIGKILL);
    check_num(atomic_load(&s.worked.shared->begun), ==, 1);
    check_ok(kill(atomic_load(&s.worked.shared->pid), SIGKILL));
    check_num(tool_signal(&s.tool), ==, SIGKILL);
}

/* Goal: without its guard the command does not go on either. */
TOOL_TEST(the_guard_is_killed)
{
    struct scene s;
    pid_t guard;

    begin(&s, SESSION, "hide");
    guard = tool_guard(&s.tool);
    check_ok(kill(guard, SIGKILL));
    check_num(tool_status(&s.tool), ==, 71);
    check_true(process_gone(atomic_load(&s.worked.shared->pid)));
    check_num(cluster_children(s.path), ==, 0);
}

/* Goal: a zklock whose guard was killed while it waited says so with the grant, and does not keep the
 * lock from others. */
TOOL_TEST(the_guard_is_killed_while_zklock_waits)
{
    struct scene s;

    begin(&s, "10", "stubborn");
    struct tool tool = tool_line("run %s -- work %s 1", s.path, s.worked.name);
    check_wait(cluster_children(s.path) == 2, WAIT_MS);
    pid_t guard = tool_guard(&tool);
    check_num(guard, >, 0);
    check_ok(kill(guard, SIGKILL));
    check_wait(process_gone(guard), WAIT_MS); /* else zklock may have the lock first */
    check_ok(kill(atomic_load(&s.worked.shared->pid), SIGKILL));
    check_num(tool_signal(&s.tool), ==, SIGKILL);
    check_num(tool_status(&tool), ==, 71);
    check_true(tool_says(&tool, "a process of this zklock was killed before the command began"));
    check_num(atomic_load(&s.worked.shared->begun), ==, 1);
    check_num(cluster_children(s.path), ==, 0);
}

static void fill(int pipe)
{
    char full[4096] = {0};

    check_ok(fcntl(pipe, F_SETFL, O_NONBLOCK));
    while (write(pipe, full, sizeof full) > 0) {
    }
    check_ok(fcntl(pipe, F_SETFL, 0));
}

/* Goal: a standard error that takes nothing more does not end the command of a proved lock. Method: zklock
 * has a request to release to report, and nobody reads it. The command ignores SIGTERM, and has to live on for
 * more than a window, which is long here, so that a busy machine does not end it. */
TOOL_TEST(an_unread_report_ends_no_command)
{
    struct worked worked = worked_new();
    const char *path = cluster_path("unread");
    int ends[2];

    set_session("4");
    check_ok(pipe2(ends, O_CLOEXEC));
    struct tool tool = tool_run_to(ends[1], "run", path, "--", WORK, worked.name, "0", "stubborn");
    worked_wait(&worked, 1);
    fill(ends[1]);
    struct tool revoke = tool_line("revoke %s", path);
    check_num(tool_status(&revoke), ==, 0);
    net_nap_ms(3 * WINDOW_MS);
    check_true(!process_gone(atomic_load(&worked.shared->pid)));
    check_num(cluster_children(path), ==, 1);
    check_ok(kill(atomic_load(&worked.shared->pid), SIGKILL));
    check_num(tool_signal(&tool), ==, SIGKILL);
    check_ok(close(ends[0]));
    check_ok(close(ends[1]));
}

/* --- the window is over before the command begins ------------------------------------------------ */

/* zklock -v whose standard error nobody reads: it has the lock, says so, and is held up by that for a while. */
static struct tool run_unread(struct scene *s, int *unread)
{
    int ends[2];

    check_ok(pipe2(ends, O_CLOEXEC));
    check_ok(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    fill(ends[1]);
    struct tool tool = tool_run_to(ends[1], "run", "-v", "--servers", proxy_address(s->proxy),
                                   s->path, "--", WORK, s->worked.name, "0", "stubborn");
    close(ends[1]);
    *unread = ends[0];
    return tool;
}

/* It has a node, and its main thread polls: for a reader of its standard error. */
static bool is_held_up(pid_t pid)
{
    long number = -1;

    FILE *file = fopen(written("/proc/%d/syscall", (int)pid), "re");
    check_true(file != NULL);
    int n = fscanf(file, "%ld", &number);
    fclose(file);
#ifdef SYS_poll
    if (n == 1 && number == SYS_poll)
        return true;
#endif
    return n == 1 && number == SYS_ppoll;
}

static void read_all(int unread)
{
    char text[4096];

    while (read(unread, text, sizeof text) > 0) {
    }
}

/* Between the grant and the first word to the guard zklock is stopped, or cut off, until somebody else has
 * the lock. */
static void held_up(bool stop)
{
    struct scene s = set_scene(SESSION);
    int unread, status = 0;

    s.tool = run_unread(&s, &unread);
    check_wait(cluster_children(s.path) == 1, WAIT_MS);
    check_wait(is_held_up(s.tool.pid), WAIT_MS); /* it has the lock and says so */
    if (stop)
        check_ok(kill(s.tool.pid, SIGSTOP));
    else
        proxy_hole(s.proxy, PROXY_BOTH);
    check_ok(zkl_mutex_lock_for(s.next, WAIT_MS));
    read_all(unread);
    if (stop)
        check_ok(kill(s.tool.pid, SIGCONT));
    net_nap_ms(2 * WINDOW_MS);
    read_all(unread);
    int begun = atomic_load(&s.worked.shared->begun);
    bool alive = begun > 0 && !process_gone(atomic_load(&s.worked.shared->pid));
    check_num(zkl_mutex_still_held(s.next, 1), ==, 1);
    if (!stop) {
        proxy_cut(s.proxy);
        proxy_heal(s.proxy);
    }
    if (alive)
        kill(atomic_load(&s.worked.shared->pid), SIGKILL);
    if (!wait_until(waitpid(s.tool.pid, &status, WNOHANG) == s.tool.pid, WAIT_MS))
        kill(s.tool.pid, SIGKILL);
    close(unread);
    if (begun > 0)
        fail_msg("the command was begun while somebody else held the lock, and is %s",
                 alive ? "alive two windows later" : "dead by now");
    check_num(WEXITSTATUS(status), ==, 79);
    check_ok(zkl_mutex_unlock(s.next));
}

/* Goal: nothing is begun without a window: not by a zklock that was stopped between its grant and the
 * command's start. */
TOOL_TEST(stopped_before_the_command)
{
    held_up(true);
}

/* Goal: likewise cut off. */
TOOL_TEST(cut_off_before_the_command)
{
    held_up(false);
}

/* Goal: a standard error that nobody reads does not keep the command from its start, nor the lock from others. Seen
 * red: for ever. */
TOOL_TEST(an_unread_word_is_left_out)
{
    struct scene s = set_scene(SESSION);
    int unread;

    s.tool = run_unread(&s, &unread);
    check_wait(atomic_load(&s.worked.shared->begun) == 1, 3 * WAIT_MS);
    check_ok(kill(atomic_load(&s.worked.shared->pid), SIGKILL));
    check_num(tool_signal(&s.tool), ==, SIGKILL);
    close(unread);
}

/* The main thread waits for a descriptor. Where the kernel does not say it: after a while. */
static bool is_polling(pid_t pid)
{
    char where[80] = "";
    FILE *file = fopen(written("/proc/%d/wchan", (int)pid), "r");

    if (file == NULL)
        return false;
    bool polls = fgets(where, sizeof where, file) != NULL && strstr(where, "poll") != NULL;
    fclose(file);
    return polls;
}

/* Goal: nor does a signal that comes while zklock waits for that reader. Method: the run is too early, which zklock would
 * say, with the lock; it ends by the signal. Seen red: for ever. */
TOOL_TEST(a_signal_makes_no_room)
{
    const char *path = cluster_path("loss");
    int ends[2];

    set_session(SESSION);
    struct tool tool = tool_line("run --not-within 3600 %s -- true", path);
    check_num(tool_status(&tool), ==, 0);
    check_ok(pipe2(ends, O_CLOEXEC));
    fill(ends[1]);
    tool = tool_run_to(ends[1], "run", "-v", "--not-within", "3600", path, "--", "true");
    check_wait(cluster_children(path) == 1, WAIT_MS);
    wait_until(is_polling(tool.pid), WAIT_MS);
    tool_kill(&tool, SIGTERM);
    check_num(cluster_children(path), ==, 0);
    close(ends[0]);
    close(ends[1]);
}

/* --- the lock is lost ----------------------------------------------------------------------------- */

struct session {
    atomic_llong id; /* != 0: the password is there, too */
    char password[WIRE_PASSWORD];
};

/* The answer to the connect request: version, timeout, session, length and text of the password. */
static size_t note_session(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct session *session = arg;
    uint64_t id;

    if (dir == PROXY_TO_CLIENT && op == PROXY_CONNECT && size >= 20 + WIRE_PASSWORD) {
        memcpy(session->password, frame + 20, WIRE_PASSWORD);
        memcpy(&id, frame + 8, sizeof id);
        session->id = (int64_t)be64toh(id);
    }
    return size;
}

/* Goal: a session that ends while the link is good ends the command too, and immediately. */
TOOL_TEST(the_session_is_ended)
{
    struct session session = {0};
    struct scene s;

    begin(&s, SESSION, "count");
    proxy_set_hook(s.proxy, note_session, &session);
    proxy_cut(s.proxy); /* zklock reconnects with its session, and the hook notes it */
    check_wait(session.id != 0, WAIT_MS);
    check_ok(wire_expire_session(zks_host(), zks_port(server, 0), session.id, session.password,
                                 WAIT_MS));
    check_lost(&s, "the lock was lost: zklock ends the command");
    check_true(!tool_says(&s.tool, "before the end")); /* of a window that is void */
    check_num(atomic_load(&s.worked.shared->signals[SIGTERM]), ==, 1);
}

/* Goal: a node that another client deletes ends the command too. zklock soon kills a command that ignores
 * SIGTERM. */
TOOL_TEST(the_node_is_deleted)
{
    struct scene s;
    char node[300];

    begin(&s, "10", "stubborn");
    cluster_child(s.path, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_lost(&s, "the lock was lost: zklock ends the command");
    check_true(!tool_says(&s.tool, "before the end")); /* of a window that is void */
    check_true(process_gone(atomic_load(&s.worked.shared->pid)));
    check_num(lag_end_ms(), <, 5000);
}

/* Goal: a link that comes back in time is no loss. */
TOOL_TEST(a_short_cut_is_no_loss)
{
    struct scene s;

    begin(&s, "6", "count");
    proxy_hole(s.proxy, PROXY_BOTH);
    check_wait(net_boot_ns() - s.struck_ns > 1500 * 1000000LL, WAIT_MS);
    proxy_heal(s.proxy);
    check_wait(net_boot_ns() - s.struck_ns > 5000 * 1000000LL,
               WAIT_MS); /* the old window is over */
    check_num(atomic_load(&s.worked.shared->signals[SIGTERM]), ==, 0);
    check_ok(kill(s.tool.pid, SIGTERM));
    check_num(tool_status(&s.tool), ==, 5);
}

int main(int argc, char **argv)
{
    /* A zklock that loses its link as it ends leaks a session event: libzookeeper may queue one
     * when its completion thread has ended, and frees none of them (queue_session_event,
     * do_completion and destroy of 3.8 and 3.9). It has no names for a suppression. The other
     * programs look for leaks of zklock. */
    setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
    return cluster_main(argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel objects in moments that do not come by waiting for them: a thread is stopped between two of
 * the library's own calls. */
#include "fault.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "api/cancel.h"

/* --- an event of a descriptor that another object has by now ------------------------------------ */

__typeof__(epoll_ctl) __real_epoll_ctl, __wrap_epoll_ctl;
__typeof__(epoll_wait) __real_epoll_wait, __wrap_epoll_wait;

static atomic_int event_stall, watched_fd = -1;
static atomic_ullong watched_data; /* what watched_fd was registered with */
static atomic_int rounds;          /* of the service thread, since the test resumed it */

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    if (op == EPOLL_CTL_ADD && fd == watched_fd)
        watched_data = event->data.u64;
    return __real_epoll_ctl(epoll, op, fd, event);
}

/* Stall after epoll has returned the event of watched_fd, before the library handles it. */
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int ms)
{
    rounds++;
    int n = __real_epoll_wait(epoll, events, max, ms);

    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == watched_data)
            fault_stall(&event_stall);
    }
    return n;
}

/* The first object is set, the service thread is stopped with its event; the wait with it is
 * granted, it is freed, and another one is made, whose descriptor has the same number. */
WORLD_TEST(an_event_of_an_object_that_is_gone_takes_nothing_from_another)
{
    const char *path = "/reused";
    struct zkl_client *client = world_direct(30000);
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *actors[2] = {world_actor(), world_actor()};
    struct wire *wire = world_wire();
    struct zkl_cancel *first = NULL, *second = NULL;

    check_ok(zkl_cancel_new(&first));
    int fd = first->fd;
    watched_fd = fd;
    check_ok(zkl_mutex_lock(mutex));
    act_begin(actors[0], act_lock_cancel, mutex, first);
    check_wait(fault_children(wire, path) == 2, WAIT_MS);
    event_stall = ARMED;
    zkl_cancel_set(first);
    check_wait(event_stall == STALLED, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(act_end(actors[0], WAIT_MS));
    zkl_cancel_free(first);

    check_ok(zkl_cancel_new(&second));
    check_num(second->fd, ==, fd);
    act_begin(actors[1], act_lock_cancel, mutex, second);
    check_wait(fault_children(wire, path) == 2, WAIT_MS);
    rounds = 0;
    event_stall = OFF;
    check_wait(rounds > 0, WAIT_MS);
    zkl_cancel_set(second);
    check_num(act_end(actors[1], WAIT_MS), ==, ZKL_ECANCELED);
    zkl_cancel_free(second);

    check_ok(act_do(actors[0], act_unlock, mutex, NULL));
}

ACT(lock_both, zkl_multi_lock_until((struct zkl_multi *)mutex, ZKL_NO_DEADLINE, arg))

/* For all the waits that the call is made of: a multi-lock that takes its members in turn has the
 * first one granted just then, and ends before it asks for the second. */
WORLD_TEST(an_object_that_is_freed_lasts_for_the_whole_call)
{
    struct zkl_client *client = world_direct(30000);
    struct zkl_mutex *mutex = world_mutex(client, "/in-turn/a");
    struct zkl_semaphore *semaphore = world_semaphore(client, "/in-turn/b", 1, NULL);
    struct zkl_member members[] = {zkl_member_mutex(mutex), zkl_member_semaphore(semaphore, 1)};
    struct zkl_multi *multi = world_multi(client, members, 2);
    struct actor *actor = world_actor();
    struct wire *wire = world_wire();
    struct zkl_cancel *cancel = NULL;

    check_ok(zkl_cancel_new(&cancel));
    watched_fd = cancel->fd;
    check_ok(zkl_mutex_lock(mutex));
    act_begin(actor, lock_both, (struct zkl_mutex *)multi, cancel);
    check_wait(fault_children(wire, "/in-turn/a") == 2, WAIT_MS);
    event_stall = ARMED;
    zkl_cancel_set(cancel);
    check_wait(event_stall == STALLED, WAIT_MS);
    zkl_cancel_free(cancel);
    check_ok(zkl_mutex_unlock(mutex));
    check_num(act_end(actor, WAIT_MS), ==, ZKL_ECANCELED);
    event_stall = OFF;
    check_num(fault_children(wire, "/in-turn/b/leases"), ==, 0);
}

/* --- an object that is freed while it is being set ---------------------------------------------- */

__typeof__(write) __real_write, __wrap_write;
__typeof__(free) __real_free, __wrap_free;

static _Thread_local bool is_setting;
static atomic_int write_stall, freed_by_setter;

ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
    if (is_setting)
        fault_stall(&write_stall);
    return __real_write(fd, buf, size);
}

void __wrap_free(void *p)
{
    freed_by_setter += is_setting;
    __real_free(p);
}

ACT(set, (is_setting = true, zkl_cancel_set(arg), is_setting = false, 0))

/* An empty file that nobody knows of, with this descriptor if it is free. */
static int file_at(int fd)
{
    char name[512];

    snprintf(name, sizeof name, "%s/somebodys", zks_dir(server));
    int file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == fd)
        return file;
    int placed = fcntl(file, F_DUPFD_CLOEXEC, fd);
    check_num(placed, >=, fd);
    check_ok(close(file));
    return placed;
}

/* Nothing is written to a file that has got its descriptor, and the setter, which may be a signal
 * handler, frees no memory. */
WORLD_TEST(an_object_may_be_freed_while_it_is_being_set)
{
    struct zkl_client *client = world_direct(30000);
    struct zkl_mutex *mutex = world_mutex(client, "/being-set");
    struct actor *setter = world_actor();
    struct zkl_cancel *cancel = NULL;
    struct stat seen;

    check_ok(zkl_cancel_new(&cancel));
    int fd = cancel->fd;
    write_stall = ARMED;
    act_begin(setter, set, NULL, cancel);
    check_wait(write_stall == STALLED, WAIT_MS);
    check_num(zkl_mutex_lock_until(mutex, ZKL_NO_DEADLINE, cancel), ==, ZKL_ECANCELED);
    zkl_cancel_free(cancel);
    int file = file_at(fd);
    write_stall = OFF;
    check_ok(act_end(setter, WAIT_MS));
    check_ok(fstat(file, &seen));
    check_num(seen.st_size, ==, 0);
    check_num(freed_by_setter, ==, 0);
    check_ok(close(file));
    if (file != fd)
        check_num(fcntl(fd, F_GETFD), ==, -1); /* it is closed all the same */

    check_ok(zkl_cancel_new(&cancel)); /* and this one is not the same */
    check_num(zkl_cancel_is_set(cancel), ==, 0);
    zkl_cancel_free(cancel);
}

/* It has the lock, or it is gone, and the waiter behind it is not passed over, which is of another client, or of the
 * same. */
WORLD_TEST(a_predecessor_is_canceled_as_its_turn_comes)
{
    static const char *const path = "/cancels/turn";
    struct wire *wire = world_wire();
    struct zkl_client *clients[3];
    struct zkl_mutex *mutexes[3];
    struct actor *actors[4];
    int had = 0, rounds_done = (int)test_length(3000, 80);

    for (int i = 0; i < 4; i++)
        actors[i] = world_actor();
    for (int i = 0; i < 3; i++)
        clients[i] = world_direct(30000);
    for (int i = 0; i < rounds_done; i++) {
        unsigned long mark = world_mark();
        struct zkl_cancel *cancel = world_cancel();
        for (int k = 0; k < 3; k++)
            mutexes[k] = world_mutex(clients[k == 2 ? 1 + i % 2 : k], path);
        check_ok(act_do(actors[0], act_lock, mutexes[0], NULL));
        act_begin(actors[1], act_lock_cancel, mutexes[1], cancel);
        check_wait(fault_children(wire, path) == 2, WAIT_MS);
        act_begin(actors[2], act_lock, mutexes[2], NULL);
        check_wait(fault_children(wire, path) == 3, WAIT_MS);
        act_begin(actors[0], act_unlock, mutexes[0], NULL);
        nanosleep(&(struct timespec){.tv_nsec = i % 40 * 10000}, NULL);
        act_begin(actors[3], set, NULL, cancel);
        int rc = act_end(actors[1], WAIT_MS);
        check_true(rc == 0 || rc == ZKL_ECANCELED);
        check_ok(act_end(actors[3], WAIT_MS));
        check_ok(act_end(actors[0], WAIT_MS));
        had += rc == 0;
        if (rc == 0) {
            check_true(act_busy(actors[2]));
            check_ok(act_do(actors[1], act_unlock, mutexes[1], NULL));
        }
        actor_passes(actors[2]);
        check_wait(fault_children(wire, path) == 0, WAIT_MS);
        world_clear_since(mark);
    }
    print_message("    %d of %d had the lock\n", had, rounds_done);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "alloc.h"

#include <errno.h>
#include <stdlib.h>

#include "api/client.h"

/* --- the fault -------------------------------------------------------------------------------- */

static atomic_bool armed;
static atomic_int asked;     /* since it was armed */
static atomic_int fail_from; /* the first that is refused */
static atomic_int fail_count;
static _Thread_local bool exempt; /* the test itself */
static _Thread_local int asked_here;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);

static bool refused(void)
{
    if (!armed || exempt)
        return false;
    asked_here++;
    int n = atomic_fetch_add(&asked, 1) + 1;
    if (n < fail_from || n >= fail_from + fail_count)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return refused() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
    return refused() ? NULL : __real_strdup(text);
}

void alloc_arm(int from, int count)
{
    asked = 0;
    fail_from = from;
    fail_count = count;
    asked_here = 0;
    called_on = true;
    armed = true;
}

bool alloc_disarm(void)
{
    armed = false;
    called_on = false;
    return asked >= fail_from;
}

bool alloc_disarm_after(int rc)
{
    bool struck = alloc_disarm();

    check_true(rc == 0 || (struck && alloc_refused(rc)));
    return struck;
}

int alloc_asked_here(void)
{
    return asked_here;
}

const char *const alloc_path = "/alloc/a/b";

/* --- scenes ----------------------------------------------------------------------------------- */

struct fixture *alloc_begin(void)
{
    struct fixture *s = world_alloc(sizeof *s);

    s->client = world_direct(SESSION_MS);
    s->mutex = world_mutex(s->client, alloc_path);
    s->wire = world_wire();
    /* The path exists from the beginning to the end of the test. */
    check_ok(wire_create(s->wire, "/alloc", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(s->wire, "/alloc/a", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(s->wire, alloc_path, "", WIRE_PERSISTENT, NULL, 0));
    s->actor = world_actor();
    return s;
}

bool alloc_refused(int rc)
{
    return rc == ZKL_ENOMEM || rc == ZKL_ESYSTEM;
}

void alloc_check_works(struct fixture *s, struct zkl_client *client, struct zkl_mutex *mutex)
{
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_num(fault_children(s->wire, alloc_path), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    fault_check_rest(client, s->wire, alloc_path, 3000);
}

bool alloc_works(struct fixture *s, bool struck)
{
    alloc_check_works(s, s->client, s->mutex);
    return struck;
}

void alloc_play(struct fixture *s, bool (*scene)(struct fixture *, int n, int count))
{
    static const int counts[] = {1, 3, 1000};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int n = 1;
        while (n < N_MAX && scene(s, n, counts[i]))
            n++;
        print_message("    %d at a time: %d places\n", counts[i], n - 1);
        check_num(n, <, N_MAX);
        check_num(n, >, 1);
        check_ok(wire_ping(s->wire));
    }
}

void alloc_stand_before(struct fixture *s)
{
    check_ok(wire_create(s->wire, "/alloc/a/b/_c_00000000-0000-4000-8000-000000000000-lock-", "",
                         WIRE_EPHEMERAL_SEQUENTIAL, s->before, sizeof s->before));
}

void alloc_step_aside(struct fixture *s)
{
    exempt = true;
    check_ok(wire_delete(s->wire, s->before, -1));
    exempt = false;
}

bool alloc_in_queue(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    const struct zkl_contender *first = client->driver->core.first;
    bool queued = first != NULL && first->machine.state == ZKL_CONTENDER_WAITING;
    zkl_driver_unlock(client->driver);
    return queued;
}

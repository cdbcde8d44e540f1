/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <zklock/zklock.h>

#define MS INT64_C(1000000)
#define DRAIN_MS 200 /* for answers that are still due when a handle is closed */
#define BUSY_MS 1000 /* a client that sent something so recently is busy */
#define WAKERS_AT_ONCE 32

/* --- fork --------------------------------------------------------------- */

static atomic_uint fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add(&fork_generation, 1);
}

static void register_fork_handler(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

void zkl_fork_watch(void)
{
    pthread_once(&fork_once, register_fork_handler);
}

unsigned zkl_fork_generation(void)
{
    return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

/* --- threads ------------------------------------------------------------ */

int zkl_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(thread, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static void *rehearse(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return (void *)(intptr_t)gettid();
}

/* A thread that was joined counts for a moment yet. */
static void wait_until_gone(pid_t thread)
{
    for (int i = 0; i < 100 && tgkill(getpid(), thread, 0) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

bool zkl_thread_rehearse(int count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[ZKL_REHEARSED_MAX];
    int made = 0;
    pthread_mutex_lock(&gate);
    while (made < count && zkl_thread_start(&threads[made], rehearse, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++) {
        void *thread;
        pthread_join(threads[i], &thread);
        wait_until_gone((pid_t)(intptr_t)thread);
    }
    pthread_mutex_destroy(&gate);
    return made == count;
}

int zkl_shield(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

void zkl_shield_end(int state)
{
    pthread_setcancelstate(state, NULL);
}

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void zkl_waker_init(struct zkl_waker *waker, void (*woken)(struct zkl_waker *waker))
{
    waker->woken = woken;
    waker->next = NULL;
    waker->queued = false;
    cond_init(&waker->cond);
}

void zkl_waker_fini(struct zkl_waker *waker)
{
    pthread_cond_destroy(&waker->cond);
}

/* --- the mutex ---------------------------------------------------------- */

void zkl_driver_lock(struct zkl_driver *d)
{
    pthread_mutex_lock(&d->mu);
}

void zkl_event_set(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void zkl_event_clear(int fd)
{
    uint64_t n;
    if (read(fd, &n, sizeof n) < 0 && errno != EAGAIN)
        assert(errno == EINTR);
}

void zkl_driver_kick(struct zkl_driver *d)
{
    d->service_until = 0; /* once is enough until it has looked */
    zkl_event_set(d->wake_fd);
}

/* Some of those that are to be woken, off the list: once off it they may be put on it again. */
static size_t take_wakers(struct zkl_driver *d, struct zkl_waker **taken, size_t max)
{
    size_t n = 0;
    for (; d->wakers && n < max; n++) {
        taken[n] = d->wakers;
        d->wakers = taken[n]->next;
        taken[n]->queued = false;
    }
    return n;
}

/* Before the service thread's timer is looked at, as they may set it. */
static void run_tasks(struct zkl_driver *d)
{
    while (d->tasks) {
        struct zkl_task *task = d->tasks;
        d->tasks = task->next;
        if (!d->tasks)
            d->tasks_end = &d->tasks;
        task->queued = false;
        task->run(task);
    }
}

static int64_t next_timeout(const struct zkl_driver *d, struct zkl_time now)
{
    int64_t at = zkl_core_next_timeout(&d->core, now);
    return d->due_ns < at ? d->due_ns : at;
}

/* Whenever the mutex is given back: what others read without it, and the service thread's timer. */
static void publish(struct zkl_driver *d)
{
    atomic_store_explicit(&d->window_end_boot, zkl_session_window_end(&d->core.session),
                          memory_order_release);
    /* Not for less than it sleeps by: the two clocks of one time are not read at one instant. */
    if (d->service_until != 0 && next_timeout(d, d->core.now) < d->service_until - MS)
        zkl_driver_kick(d);
}

void zkl_driver_unlock(struct zkl_driver *d)
{
    struct zkl_waker *taken[WAKERS_AT_ONCE];
    bool more;
    do {
        size_t n = take_wakers(d, taken, WAKERS_AT_ONCE);
        run_tasks(d);
        publish(d);
        more = d->wakers != NULL;
        pthread_mutex_unlock(&d->mu);
        /* Without the mutex: whoever is woken finds it free. Each waker is kept alive for this. */
        for (size_t i = 0; i < n; i++) {
            pthread_cond_signal(&taken[i]->cond);
            if (taken[i]->woken)
                taken[i]->woken(taken[i]);
        }
        if (more)
            pthread_mutex_lock(&d->mu);
    } while (more);
}

int zkl_driver_wait(struct zkl_driver *d, struct zkl_waker *waker, int64_t deadline_mono_ns)
{
    if (d->wakers || d->tasks) { /* others first: they are owed their wake-up */
        zkl_driver_unlock(d);
        zkl_driver_lock(d);
        return 0;
    }
    publish(d);
    if (deadline_mono_ns == INT64_MAX)
        return pthread_cond_wait(&waker->cond, &d->mu);
    struct timespec ts = zkl_clock_timespec(deadline_mono_ns);
    return pthread_cond_timedwait(&waker->cond, &d->mu, &ts);
}

void zkl_driver_wake(struct zkl_driver *d, struct zkl_waker *waker)
{
    if (waker->queued)
        return;
    waker->queued = true;
    waker->next = d->wakers;
    d->wakers = waker;
}

void zkl_driver_defer(struct zkl_driver *d, struct zkl_task *task)
{
    if (task->queued)
        return;
    task->queued = true;
    task->next = NULL;
    *d->tasks_end = task;
    d->tasks_end = &task->next;
}

/* --- the core's port ---------------------------------------------------- */

static struct zkl_driver *driver_of(struct zkl_port *port)
{
    return (struct zkl_driver *)((char *)port - offsetof(struct zkl_driver, port));
}

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *request)
{
    struct zkl_driver *d = driver_of(port);
    return d->current ? zkl_handle_send(d->current, request) : ZKL_ANSWER_LINK;
}

static void port_news(struct zkl_port *port, struct zkl_contender *contender,
                      const struct zkl_news *news)
{
    struct zkl_driver *d = driver_of(port);
    d->config.news(d->config.arg, contender, news);
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct zkl_driver *d = driver_of(port);
    if (actions & ZKL_SA_REPLACE_HANDLE) {
        zkl_handle_bury(d, &d->current);
        d->open_current = true;
    }
    if (actions & ZKL_SA_ADOPT_PROBE) {
        zkl_handle_bury(d, &d->current);
        d->current = d->probe;
        d->probe = NULL;
    }
    if (actions & ZKL_SA_DROP_PROBE) {
        d->open_probe = false;
        zkl_handle_bury(d, &d->probe);
    }
    if (actions & ZKL_SA_OPEN_PROBE)
        d->open_probe = true;
    if (actions &
        (ZKL_SA_REPLACE_HANDLE | ZKL_SA_ADOPT_PROBE | ZKL_SA_DROP_PROBE | ZKL_SA_OPEN_PROBE))
        zkl_driver_kick(d);
    d->config.session(d->config.arg, actions);
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    /* From the kernel each time: a fork or a cloned virtual machine would repeat any state of our own. */
    ssize_t got;
    do
        got = getrandom(bytes, 16, 0); /* so few bytes come whole, or not at all */
    while (got < 0 && errno == EINTR);
    if (got == 16)
        return;
    /* Forbidden in this process: time, thread and address are at least not another contender's. */
    uint64_t parts[2] = {(uint64_t)zkl_clock_boot_ns(), (uint64_t)gettid() << 40 ^ (uintptr_t)port ^
                                                            driver_of(port)->core.last_id};
    memcpy(bytes, parts, 16);
}

static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    struct zkl_driver *d = driver_of(port);
    d->config.log(d->config.arg, trace);
}

/* --- the service thread ------------------------------------------------- */

static void bury_all(struct zkl_driver *d)
{
    struct timespec until = zkl_clock_timespec(zkl_clock_mono_ns() + DRAIN_MS * MS);
    if (d->graveyard) { /* whoever is to be woken does not wait for that */
        zkl_driver_unlock(d);
        zkl_driver_lock(d);
    }
    while (d->graveyard) {
        struct zkl_handle *h = d->graveyard;
        d->graveyard = zkl_handle_next(h);
        /* libzookeeper drops completions that are due when it is closed: give them some time. */
        while (zkl_handle_calls(h) > 0 && pthread_cond_timedwait(&d->changed, &d->mu, &until) == 0)
            ;
        zkl_driver_unlock(d);
        zkl_handle_close(d, h);
        zkl_driver_lock(d);
    }
}

static void open_one(struct zkl_driver *d, bool probe)
{
    bool wanted = probe ? d->open_probe : d->open_current;
    if (!wanted || d->closing || !d->resolver.addresses || zkl_clock_mono_ns() < d->open_not_before)
        return;
    zkl_driver_unlock(d);
    int rc = zkl_handle_open(d, probe);
    zkl_driver_lock(d);
    if (rc != 0)
        d->open_not_before = zkl_clock_mono_ns() + ZKL_OPEN_RETRY_MS * MS;
}

static int64_t next_wake(struct zkl_driver *d)
{
    struct zkl_time now = zkl_clock_now();
    int64_t at = next_timeout(d, now);
    /* While requests come and go, each would set a timer and wake this thread for it: it rather
     * looks up now and then by itself. */
    if (now.mono_ns - d->core.last_send_mono_ns < BUSY_MS * MS &&
        now.mono_ns + ZKL_NUDGE_MS * MS < at)
        at = now.mono_ns + ZKL_NUDGE_MS * MS;
    if ((d->open_current || d->open_probe) && d->resolver.addresses && d->open_not_before < at)
        at = d->open_not_before;
    if (zkl_resolver_due(d) < at)
        at = zkl_resolver_due(d);
    if ((d->graveyard && !d->burying) || d->closing)
        at = 0;
    return at;
}

static int wait_ms(int64_t until)
{
    if (until == INT64_MAX)
        return -1;
    int64_t ns = until - zkl_clock_mono_ns();
    if (ns <= 0)
        return 0;
    return ns > 60000 * MS ? 60000 : (int)((ns + MS - 1) / MS);
}

static void on_readable(struct zkl_driver *d, uint64_t number)
{
    if (number == 0) {
        zkl_event_clear(d->wake_fd);
        return;
    }
    /* Whoever registered it may have left since epoll_wait returned. */
    for (struct zkl_fd_watch *w = d->fds; w; w = w->next) {
        if (w->number == number) {
            epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
            w->readable(d->config.arg, w);
            return;
        }
    }
}

static void sleep_until_something(struct zkl_driver *d)
{
    struct epoll_event events[16];
    int64_t until = next_wake(d);
    d->service_until = until;
    zkl_driver_unlock(d);
    int n = epoll_wait(d->epoll_fd, events, 16, wait_ms(until));
    zkl_driver_lock(d);
    d->service_until = 0;
    for (int i = 0; i < n; i++)
        on_readable(d, events[i].data.u64);
}

static void *undertaker_main(void *driver)
{
    struct zkl_driver *d = driver;
    zkl_driver_lock(d);
    bury_all(d);
    d->burying = false;
    pthread_cond_broadcast(&d->changed);
    zkl_driver_unlock(d);
    zkl_driver_unref(d);
    return NULL;
}

static void join_undertaker(struct zkl_driver *d)
{
    if (!d->undertaken)
        return;
    d->undertaken = false;
    zkl_driver_unlock(d);
    pthread_join(d->undertaker, NULL);
    zkl_driver_lock(d);
}

/* Elsewhere, as it can take seconds; here if there is nothing else to do any more, or no thread. */
static void bury(struct zkl_driver *d)
{
    if (d->graveyard && !d->burying && !d->closing) {
        join_undertaker(d);
        d->burying = d->undertaken = zkl_driver_start_thread(d, &d->undertaker, undertaker_main);
    }
    if (!d->burying || d->closing)
        bury_all(d);
    if (d->burying && d->closing)
        pthread_cond_wait(&d->changed, &d->mu);
}

static void follow_names(struct zkl_driver *d)
{
    zkl_resolver_publish(d, zkl_clock_mono_ns());
    zkl_handle_follow(d, d->current);
    zkl_handle_follow(d, d->probe);
}

static void *service_main(void *driver)
{
    struct zkl_driver *d = driver;
    zkl_driver_lock(d);
    while (!d->closing || d->graveyard || d->burying) {
        follow_names(d);
        open_one(d, false);
        open_one(d, true);
        bury(d);
        struct zkl_time now = zkl_clock_now();
        if (!d->closing && zkl_core_next_timeout(&d->core, now) <= now.mono_ns)
            zkl_core_timer(&d->core, now);
        if (!d->closing && d->due_ns <= now.mono_ns)
            d->config.due(d->config.arg, now.mono_ns);
        if (!d->closing)
            sleep_until_something(d);
    }
    join_undertaker(d);
    if (d->config.closed)
        d->config.closed(d->config.arg, !d->end_unconfirmed);
    d->closed = true;
    pthread_cond_broadcast(&d->changed);
    pthread_cond_signal(&d->has_notes);
    zkl_driver_unlock(d);
    zkl_driver_unref(d);
    return NULL;
}

int zkl_driver_watch_fd(struct zkl_driver *d, struct zkl_fd_watch *watch)
{
    watch->number = ++d->last_fd_watch;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = watch->number};
    if (epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0)
        return ZKL_ESYSTEM;
    watch->next = d->fds;
    d->fds = watch;
    return 0;
}

void zkl_driver_unwatch_fd(struct zkl_driver *d, struct zkl_fd_watch *watch)
{
    for (struct zkl_fd_watch **at = &d->fds; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
            return;
        }
    }
}

/* --- life --------------------------------------------------------------- */

void zkl_driver_config_free(struct zkl_driver_config *config)
{
    if (config->auth_credential)
        explicit_bzero(config->auth_credential, strlen(config->auth_credential));
    free(config->servers);
    free(config->chroot);
    free(config->auth_scheme);
    free(config->auth_credential);
}

static void destroy(struct zkl_driver *d)
{
    void (*gone)(void *arg) = d->config.gone;
    void *arg = d->config.arg;
    zkl_core_fini(&d->core);
    zkl_resolver_fini(d);
    if (d->epoll_fd >= 0)
        close(d->epoll_fd);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    if (d->event_fd >= 0)
        close(d->event_fd);
    pthread_cond_destroy(&d->changed);
    pthread_cond_destroy(&d->has_notes);
    pthread_cond_destroy(&d->resolver.due);
    pthread_mutex_destroy(&d->mu);
    zkl_driver_config_free(&d->config);
    free(d);
    if (gone)
        gone(arg);
}

void zkl_driver_unref(struct zkl_driver *d)
{
    if (atomic_fetch_sub(&d->refs, 1) == 1)
        destroy(d);
}

/* With the mutex: join both threads if they are through. False if they are not. */
static bool join_threads(struct zkl_driver *d)
{
    if (!d->closed || !d->dispatch_done)
        return false;
    if (!d->joined) {
        d->joined = true;
        zkl_driver_unlock(d);
        pthread_join(d->service, NULL);
        pthread_join(d->dispatch, NULL);
        zkl_driver_lock(d);
    }
    return true;
}

void zkl_driver_free(struct zkl_driver *d)
{
    zkl_driver_lock(d);
    bool joined = join_threads(d);
    zkl_driver_unlock(d);
    if (!joined) {
        pthread_detach(d->service);
        pthread_detach(d->dispatch);
    }
    zkl_resolver_end(d);
    zkl_driver_unref(d);
}

static struct zkl_driver *allocate(struct zkl_driver_config *config)
{
    struct zkl_driver *d = calloc(1, sizeof *d);
    if (!d) {
        zkl_driver_config_free(config);
        return NULL;
    }
    d->config = *config;
    d->port = (struct zkl_port){.send = port_send,
                                .news = port_news,
                                .session = port_session,
                                .random = port_random,
                                .trace = config->log ? port_trace : NULL};
    pthread_mutex_init(&d->mu, NULL);
    cond_init(&d->changed);
    cond_init(&d->has_notes);
    cond_init(&d->resolver.due);
    d->notes_end = &d->notes;
    d->tasks_end = &d->tasks;
    d->due_ns = INT64_MAX;
    d->refs = 1;
    d->epoll_fd = d->wake_fd = d->event_fd = -1;
    zkl_core_init(&d->core, &d->port, config->session_timeout_ms, config->tick_ms);
    d->core.hello_wanted = config->hello;
    d->core.chroot_length = strlen(config->chroot);
    return d;
}

static int make_descriptors(struct zkl_driver *d)
{
    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
    if (d->epoll_fd < 0 || d->wake_fd < 0 ||
        epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->wake_fd, &event) != 0)
        return ZKL_ESYSTEM;
    return 0;
}

/* The session never was: no service thread runs. */
static void abort_new(struct zkl_driver *d, bool dispatch)
{
    zkl_driver_lock(d);
    d->config.gone = NULL;
    zkl_handle_bury(d, &d->current);
    struct zkl_handle *h = d->graveyard;
    d->graveyard = NULL;
    zkl_driver_unlock(d);
    if (h)
        zkl_handle_close(d, h);
    zkl_driver_lock(d);
    d->closing = d->closed = true;
    pthread_cond_signal(&d->has_notes);
    zkl_driver_unlock(d);
    if (dispatch)
        pthread_join(d->dispatch, NULL);
    zkl_resolver_end(d);
    zkl_driver_unref(d);
}

bool zkl_driver_start_thread(struct zkl_driver *d, pthread_t *thread, void *(*main)(void *))
{
    atomic_fetch_add(&d->refs, 1); /* the thread's */
    if (zkl_thread_start(thread, main, d) == 0)
        return true;
    atomic_fetch_sub(&d->refs, 1);
    return false;
}

int zkl_driver_new(struct zkl_driver **driver, struct zkl_driver_config *config)
{
    zkl_fork_watch();
    struct zkl_driver *d = *driver = allocate(config);
    if (!d)
        return ZKL_ENOMEM;
    int rc = make_descriptors(d);
    if (rc == 0)
        rc = zkl_resolver_init(d);
    d->open_current = true;
    bool dispatch = rc == 0 && zkl_driver_start_thread(d, &d->dispatch, zkl_dispatch_main);
    if (rc == 0 && !dispatch)
        rc = ZKL_ESYSTEM;
    if (rc == 0 && d->resolver.addresses)
        rc = zkl_handle_open(d, false);
    if (rc == 0 && !zkl_resolver_start(d))
        rc = ZKL_ESYSTEM;
    if (rc == 0 && !zkl_driver_start_thread(d, &d->service, service_main))
        rc = ZKL_ESYSTEM;
    if (rc != 0) {
        abort_new(d, dispatch);
        *driver = NULL;
    }
    return rc;
}

void zkl_driver_begin_close(struct zkl_driver *d)
{
    if (d->closing)
        return;
    zkl_core_close(&d->core, zkl_clock_now());
    d->closing = true;
    d->end_unconfirmed = false;
    d->open_current = d->open_probe = false;
    zkl_handle_bury(d, &d->current);
    zkl_handle_bury(d, &d->probe);
    zkl_driver_kick(d);
    zkl_resolver_want(d); /* to end */
}

bool zkl_driver_close(struct zkl_driver *d, int64_t deadline_mono_ns)
{
    struct timespec until = zkl_clock_timespec(deadline_mono_ns);
    int rc = 0;
    zkl_driver_lock(d);
    zkl_driver_begin_close(d);
    zkl_driver_unlock(d); /* wakes those whose waits have just ended */
    zkl_driver_lock(d);
    while (!(d->closed && d->dispatch_done) && rc == 0)
        rc = pthread_cond_timedwait(&d->changed, &d->mu, &until);
    bool done = join_threads(d) && !d->end_unconfirmed;
    zkl_driver_unlock(d);
    return done;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares what the servers say of themselves (srvr, conf, mntr) with what the window of a hold
 * assumes: docs/guarantees.md. This file owns the answers for the length of one comparison. One
 * thread; doctor.c calls it. Each query of a server has a bound. */
#include "ensemble.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fourlw.h"

enum { SERVERS_MAX = 32, ANSWER_SIZE = 65536, ANSWER_MS = 2000, UNKNOWN = -1 };

struct facts {
    char name[SERVER_NAME_SIZE]; /* HOST:PORT */
    char host[INET6_ADDRSTRLEN]; /* one of its addresses */
    int port;
    bool answers, other; /* it is of another make */
    bool observer, follower, leader;
    long tick_ms, least_ms, most_ms; /* UNKNOWN: not said */
    long observers;                  /* that hang on this server */
    long learners;                   /* that follow it now, observers included, as it leads */
    bool serves, says_state;         /* it has a quorum; mntr was answered */
    long local_sessions;
};

struct ensemble {
    struct facts all[SERVERS_MAX];
    int count, session_ms, said_tick_ms;
    ensemble_fn tell;
    void *arg;
};

static void tell(struct ensemble *e, bool problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct ensemble *e, bool problem, const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    e->tell(e->arg, problem, text);
}

/* --- asking ------------------------------------------------------------- */

/* The number behind a word at the beginning of a line. */
static long number_of(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, n) == 0)
            return strtol(line + n, NULL, 10);
    }
    return UNKNOWN;
}

static bool ask_word(const struct facts *f, const char *word, char *text)
{
    text[0] = '\0';
    return flw_query_within(f->host, f->port, word, text, ANSWER_SIZE, ANSWER_MS) > 0;
}

/* The host's part of the name, an IPv6 address without its brackets. */
static bool split_name(struct facts *f, char *host, size_t size)
{
    const char *colon = strrchr(f->name, ':');
    if (!colon || colon == f->name)
        return false;
    size_t bracket = f->name[0] == '[', length = (size_t)(colon - f->name) - 2 * bracket;
    snprintf(host, size, "%.*s", (int)length, f->name + bracket);
    f->port = atoi(colon + 1);
    return true;
}

/* Whichever of its addresses answers first. */
static bool find(struct facts *f, char *text)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char host[SERVER_NAME_SIZE];
    bool answers = false;
    if (!split_name(f, host, sizeof host) || getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    for (struct addrinfo *at = found; at && !answers; at = at->ai_next)
        answers = getnameinfo(at->ai_addr, at->ai_addrlen, f->host, sizeof f->host, NULL, 0,
                              NI_NUMERICHOST) == 0 &&
                  ask_word(f, "srvr", text);
    freeaddrinfo(found);
    return answers;
}

static void ask(struct facts *f)
{
    static char text[ANSWER_SIZE];
    f->tick_ms = f->least_ms = f->most_ms = f->observers = f->learners = f->local_sessions =
        UNKNOWN;
    f->answers = find(f, text);
    if (!f->answers)
        return;
    f->other = strncmp(text, "Zookeeper version:", strlen("Zookeeper version:")) != 0 &&
               strstr(text, "version") != NULL;
    f->observer = strstr(text, "Mode: observer") != NULL;
    f->follower = strstr(text, "Mode: follower") != NULL;
    f->leader = strstr(text, "Mode: leader") != NULL;
    f->serves = strstr(text, "not currently serving") == NULL;
    if (ask_word(f, "conf", text)) {
        f->tick_ms = number_of(text, "tickTime=");
        f->least_ms = number_of(text, "minSessionTimeout=");
        f->most_ms = number_of(text, "maxSessionTimeout=");
    }
    if (ask_word(f, "mntr", text)) {
        f->observers = f->follower ? number_of(text, "zk_synced_observers\t") : UNKNOWN;
        f->says_state = strstr(text, "zk_") != NULL;
        f->learners = f->leader ? number_of(text, "zk_synced_followers\t") : UNKNOWN;
        if (f->learners >= 0 && number_of(text, "zk_synced_observers\t") > 0)
            f->learners += number_of(text, "zk_synced_observers\t");
        f->local_sessions = number_of(text, "zk_local_sessions\t");
    }
}

/* Is it in the rest of the list? */
static bool comes_again(const char *servers, const char *name, size_t length)
{
    while (*servers == ',') {
        servers++;
        size_t n = strcspn(servers, ",/");
        if (n == length && memcmp(servers, name, n) == 0)
            return true;
        servers += n;
    }
    return false;
}

bool ensemble_next(const char **servers, char name[SERVER_NAME_SIZE])
{
    const char *at;
    size_t n;
    do {
        at = *servers + strspn(*servers, ",");
        n = strcspn(at, ",/");
        *servers = at + n;
    } while (n > 0 && comes_again(*servers, at, n));
    snprintf(name, SERVER_NAME_SIZE, "%.*s", (int)n, at);
    return n > 0;
}

static void ask_all(struct ensemble *e, const char *servers)
{
    while (e->count < SERVERS_MAX && ensemble_next(&servers, e->all[e->count].name))
        ask(&e->all[e->count++]);
}

/* --- judging ------------------------------------------------------------ */

static void check_seen(struct ensemble *e, const struct facts *f)
{
    if (!f->answers)
        tell(e, false, "%s did not answer srvr: its settings were not checked", f->name);
    else if (f->other)
        tell(e, true, "%s " NO_ZOOKEEPER, f->name);
    else if (!f->serves)
        tell(e, false, "%s serves no requests now: it starts, or has no quorum", f->name);
    else if (f->tick_ms < 0 || f->least_ms < 0 || f->most_ms < 0)
        tell(e, false,
             "%s does not report its settings: to have them checked, allow conf in its "
             "4lw.commands.whitelist",
             f->name);
    else if (!f->says_state)
        tell(e, false,
             "%s does not report its state: to have local sessions and observer masters found, "
             "allow mntr in its 4lw.commands.whitelist",
             f->name);
}

/* The timeout that this server grants for the requested one. */
static long granted_ms(const struct ensemble *e, const struct facts *f)
{
    long ms = e->session_ms < f->most_ms ? e->session_ms : f->most_ms;
    return ms > f->least_ms ? ms : f->least_ms;
}

static void check_tick(struct ensemble *e, const struct facts *f)
{
    long least = UNKNOWN;
    for (int i = 0; i < e->count; i++) {
        long ms = e->all[i].tick_ms < 0 ? UNKNOWN : granted_ms(e, &e->all[i]);
        if (ms >= 0 && (least < 0 || ms < least))
            least = ms;
    }
    if (f->tick_ms > 0 && least < 2 * f->tick_ms)
        tell(e, true,
             "a session timeout of %ld ms is less than two ticks of %s (tickTime %ld ms), and a "
             "hold's window may outlast its session: ask for %ld ms or more, or make tickTime "
             "smaller",
             least, f->name, f->tick_ms, 2 * f->tick_ms);
    if (e->said_tick_ms > 0 && f->tick_ms > e->said_tick_ms)
        tell(e, true,
             "the setting tick is %.10g s, but tickTime is %ld ms at %s, and a hold's window may "
             "outlast its session: make tick %.10g or more",
             e->said_tick_ms / 1e3, f->tick_ms, f->name, (double)f->tick_ms / 1e3);
}

/* The first server that reveals its settings; the others are compared with it. */
static const struct facts *first_known(const struct ensemble *e)
{
    for (int i = 0; i < e->count; i++) {
        if (e->all[i].tick_ms >= 0 && e->all[i].least_ms >= 0 && e->all[i].most_ms >= 0)
            return &e->all[i];
    }
    return NULL;
}

static void compare(struct ensemble *e, const char *key, long one, const struct facts *f,
                    long other, const char *why)
{
    if (other >= 0 && one != other)
        tell(e, true, "%s is %ld ms at %s and %ld ms at %s, %s: make it the same at all servers",
             key, one, first_known(e)->name, other, f->name, why);
}

static void check_same(struct ensemble *e, const struct facts *f)
{
    const struct facts *first = first_known(e);
    if (!first || f == first)
        return;
    compare(e, "tickTime", first->tick_ms, f, f->tick_ms,
            "and which of them counts changes with the leader");
    compare(e, "minSessionTimeout", first->least_ms, f, f->least_ms,
            "so that a client that moves from one to the other gets another session timeout than "
            "the next leader uses");
    compare(e, "maxSessionTimeout", first->most_ms, f, f->most_ms,
            "so that a client that moves from one to the other gets another session timeout than "
            "the next leader uses");
}

static void check_observers(struct ensemble *e, const struct facts *f)
{
    if (f->observers > 0)
        tell(e, true,
             "%s is an observer master: what its observers learn of a session reaches the leader "
             "too late for a hold's window; remove observerMasterPort from its zoo.cfg",
             f->name);
    if (f->observer)
        tell(e, false,
             "%s is an observer: check that no follower has observerMasterPort in its zoo.cfg",
             f->name);
}

/* Local sessions: a leader does not know them, so it lets a session's writes pass that has ended at its
 * server. */
static void check_local(struct ensemble *e, const struct facts *f)
{
    if (f->local_sessions > 0)
        tell(e, true,
             "%s has local sessions, and a hold's window may outlast one: remove "
             "localSessionsEnabled from the zoo.cfg of all servers",
             f->name);
}

/* A name that stands for several servers is one server of the list. Servers that follow a leader
 * which is not in it can be compared all the same, but for one alone. */
static void check_list(struct ensemble *e)
{
    bool lacks = e->count == 1 && (e->all[0].follower || e->all[0].observer);
    for (int i = 0; i < e->count; i++)
        lacks = lacks || e->all[i].learners >= e->count;
    if (lacks)
        tell(e, false,
             "the list lacks servers of the ensemble: name each of them in it, and what they show "
             "is compared");
}

void ensemble_check(const char *servers, int session_ms, int tick_ms, ensemble_fn fn, void *arg)
{
    struct ensemble e = {.session_ms = session_ms, .said_tick_ms = tick_ms, .tell = fn, .arg = arg};
    ask_all(&e, servers);
    for (int i = 0; i < e.count; i++) {
        check_seen(&e, &e.all[i]);
        check_tick(&e, &e.all[i]);
        check_same(&e, &e.all[i]);
        check_observers(&e, &e.all[i]);
        check_local(&e, &e.all[i]);
    }
    check_list(&e);
}

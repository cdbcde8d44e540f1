/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "chance.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: contention [options]\n"
    "\n"
    "Processes and threads update one record under one lock; then the files they left are "
    "checked.\n"
    "\n"
    "  --processes N           processes, 1 to 64 (4)\n"
    "  --threads N             threads of each process, 1 to 64 (2)\n"
    "  --seconds N             run for N seconds (5)\n"
    "  --count N               or until each thread has made N updates\n"
    "  --servers HOST:PORT,..  the ZooKeeper ensemble (environment variable ZKLOCK_SERVERS)\n"
    "  --path PATH             the lock's path (/zklock/contention)\n"
    "  --session-timeout MS    session timeout of each process (10000; with --crash or --pause "
    "1000)\n"
    "  --work MS               time of a holder between read and write (0.05)\n"
    "  --no-lock               omit the lock, to see what it prevents\n"
    "  --crash                 kill holders of the lock now and then, and start new processes\n"
    "  --kills N               with --crash: fewer than N kills make the run fail (1)\n"
    "  --pause                 stop a holder until its session has ended, then continue it\n"
    "  --seed N                seed of all random choices\n"
    "  --keep DIR              leave the files journal and record in DIR\n"
    "  --summary FILE          add the final line to FILE as well\n"
    "  --json                  one JSON object in place of table and final line\n"
    "  --svg FILE              draw the run: the waits and holds of each thread\n"
    "  --help                  print this text\n"
    "\n"
    "Exit status: 0 if no update was lost and no two holders overlapped (with --no-lock: always;\n"
    "with --pause a stale write must have been refused, too), 1 if not or if the run failed, 2 "
    "for\n"
    "a wrong option.\n";

enum {
    SECONDS_MAX = 86400,
    SECONDS_DEFAULT = 5,
    WORK_MS_MAX = 10000,
    WORK_US_DEFAULT = 50, /* so that a missing lock shows */
    SESSION_MS_DEFAULT = 10000,
    SESSION_MS_SHORT = 1000
};

enum option_code {
    OPTION_PROCESSES = 1,
    OPTION_THREADS,
    OPTION_SECONDS,
    OPTION_COUNT,
    OPTION_SERVERS,
    OPTION_PATH,
    OPTION_SESSION_TIMEOUT,
    OPTION_WORK,
    OPTION_NO_LOCK,
    OPTION_CRASH,
    OPTION_KILLS,
    OPTION_PAUSE,
    OPTION_SEED,
    OPTION_KEEP,
    OPTION_SUMMARY,
    OPTION_JSON,
    OPTION_SVG,
    OPTION_HELP
};

static const struct option known[] = {
    {"processes", required_argument, NULL, OPTION_PROCESSES},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"servers", required_argument, NULL, OPTION_SERVERS},
    {"path", required_argument, NULL, OPTION_PATH},
    {"session-timeout", required_argument, NULL, OPTION_SESSION_TIMEOUT},
    {"work", required_argument, NULL, OPTION_WORK},
    {"no-lock", no_argument, NULL, OPTION_NO_LOCK},
    {"crash", no_argument, NULL, OPTION_CRASH},
    {"kills", required_argument, NULL, OPTION_KILLS},
    {"pause", no_argument, NULL, OPTION_PAUSE},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"summary", required_argument, NULL, OPTION_SUMMARY},
    {"json", no_argument, NULL, OPTION_JSON},
    {"svg", required_argument, NULL, OPTION_SVG},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static int complain(const char *text)
{
    fprintf(stderr, "contention: %s\n", text);
    return -1;
}

static int number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    /* strtoull itself would take "-1", " 1" and "". */
    if (text[0] < '0' || text[0] > '9' || *end || errno || n < min || n > max) {
        fprintf(stderr, "contention: --%s must be a whole number from %llu to %llu, not \"%s\"\n",
                name, (unsigned long long)min, (unsigned long long)max, text);
        return -1;
    }
    *value = n;
    return 0;
}

static int small_number(const char *name, const char *text, int min, int max, int *value)
{
    uint64_t n;
    if (number(name, text, (uint64_t)min, (uint64_t)max, &n))
        return -1;
    *value = (int)n;
    return 0;
}

static int work_time(const char *text, int *work_us)
{
    int ms;
    if (small_number("work", text, 1, WORK_MS_MAX, &ms))
        return -1;
    *work_us = ms * 1000;
    return 0;
}

static int take_number(struct options *o, int code, const char *text)
{
    switch (code) {
    case OPTION_PROCESSES:
        return small_number("processes", text, 1, PROCESSES_MAX, &o->processes);
    case OPTION_THREADS:
        return small_number("threads", text, 1, THREADS_MAX, &o->threads);
    case OPTION_SECONDS:
        return small_number("seconds", text, 1, SECONDS_MAX, &o->seconds);
    case OPTION_COUNT:
        return number("count", text, 1, 1000000000, &o->count);
    case OPTION_SESSION_TIMEOUT:
        return small_number("session-timeout", text, 100, 600000, &o->session_timeout_ms);
    case OPTION_WORK:
        return work_time(text, &o->work_us);
    case OPTION_KILLS:
        return small_number("kills", text, 1, 1000000, &o->kills_min);
    default:
        return number("seed", text, 0, UINT64_MAX, &o->seed);
    }
}

static int take(struct options *o, int code, const char *text)
{
    switch (code) {
    case OPTION_SERVERS:
        o->servers = text;
        return 0;
    case OPTION_PATH:
        o->path = text;
        return 0;
    case OPTION_KEEP:
        o->keep = text;
        return 0;
    case OPTION_SUMMARY:
        o->summary = text;
        return 0;
    case OPTION_JSON:
        o->json = true;
        return 0;
    case OPTION_SVG:
        o->svg = text;
        return 0;
    case OPTION_NO_LOCK:
        o->lock = false;
        return 0;
    case OPTION_CRASH:
        o->crash = true;
        return 0;
    case OPTION_PAUSE:
        o->pause = true;
        return 0;
    default:
        return take_number(o, code, text);
    }
}

/* Combinations that make no sense are refused rather than corrected: the user meant something
 * else. */
static int check(const struct options *o)
{
    if (o->seconds && o->count)
        return complain("--seconds and --count exclude each other: give one of them");
    if (!o->lock && (o->crash || o->pause))
        return complain("--no-lock excludes --crash and --pause: omit one of them");
    if (o->pause && o->processes < 2)
        return complain("--pause needs other processes that continue: give --processes 2 or more");
    if (o->kills_min && !o->crash)
        return complain("--kills means nothing without --crash: add it");
    if (o->lock && (!o->servers || !*o->servers))
        return complain("no server: give --servers HOST:PORT, or set ZKLOCK_SERVERS, "
                        "or run examples/demo.sh, which starts a private one");
    return 0;
}

static void fill_defaults(struct options *o)
{
    if (!o->seconds && !o->count)
        o->seconds = SECONDS_DEFAULT;
    if (!o->session_timeout_ms)
        o->session_timeout_ms = o->crash || o->pause ? SESSION_MS_SHORT : SESSION_MS_DEFAULT;
    if (o->crash && !o->kills_min)
        o->kills_min = 1;
}

static int unknown(int code, char *word)
{
    fprintf(stderr,
            code == ':' ? "contention: %s requires a value; see --help\n"
                        : "contention: unknown option %s; --help lists them\n",
            word);
    return -1;
}

int options_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){
        .processes = 4,
        .threads = 2,
        .work_us = WORK_US_DEFAULT,
        .servers = getenv("ZKLOCK_SERVERS"),
        .path = "/zklock/contention",
        .seed = chance_seed() % 1000000,
        .lock = true,
    };
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
        if (code == OPTION_HELP) {
            fputs(usage, stdout);
            return 1;
        }
        if (code == '?' || code == ':')
            return unknown(code, argv[optind - 1]);
        if (take(o, code, optarg))
            return -1;
    }
    if (optind < argc)
        return unknown('?', argv[optind]);
    if (check(o))
        return -1;
    fill_defaults(o);
    return 0;
}

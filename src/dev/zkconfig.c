/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that a server needs before it starts: the places of java and the jars, its command
 * line, its ports, zoo.cfg, and their folder. A plan owns its texts until it is freed. No lock: a
 * plan belongs to the one thread that makes or restarts servers. zkserver.c and the keeper call
 * it. */
#include "zkconfig.h"

#include "keeper.h"
#include "tool/net.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZOOKEEPER_JAR                                                                              \
    "/usr/share/java/zookeeper.jar"                /* its manifest names the other jars it needs */
#define LOG_JAR "/usr/share/java/slf4j-simple.jar" /* without it the server keeps no log */
#define NSENTER "/usr/bin/nsenter"
#define ARGS_MAX 64
#define QUORUM_WAIT_MS 30000 /* on a busy machine */

/* --- what is installed ------------------------------------------------------------------------ */

static char *executable_in(const char *dir, size_t length, const char *tail)
{
    char *path;

    if (asprintf(&path, "%.*s%s", (int)length, dir, tail) < 0)
        return NULL;
    if (path[0] == '/' && access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static char *java_in_path(void)
{
    const char *at = getenv("PATH");
    char *java = NULL;

    while (at != NULL && java == NULL) {
        const char *end = strchrnul(at, ':');
        java = executable_in(at, (size_t)(end - at), "/java");
        at = *end == ':' ? end + 1 : NULL;
    }
    return java;
}

int zkc_find_java(char **java, char *err, size_t size)
{
    const char *home = getenv("JAVA_HOME");
    char *found = NULL;

    if (home != NULL)
        found = executable_in(home, strlen(home), "/bin/java");
    if (found == NULL)
        found = java_in_path();
    if (found == NULL) {
        snprintf(err, size, "there is no java in PATH: apt-get install default-jre-headless");
        return ZKS_MISSING;
    }
    if (java != NULL)
        *java = found;
    else
        free(found);
    return 0;
}

int zkc_find_jars(char **classpath, char *err, size_t size)
{
    const char *other = getenv("ZKS_CLASSPATH");
    const char *jars = ZOOKEEPER_JAR;

    if (other != NULL)
        jars = other;
    else if (access(ZOOKEEPER_JAR, R_OK) != 0) {
        snprintf(err, size, "there is no %s: apt-get install libzookeeper-java", ZOOKEEPER_JAR);
        return ZKS_MISSING;
    } else if (access(LOG_JAR, R_OK) == 0)
        jars = ZOOKEEPER_JAR ":" LOG_JAR;
    if (classpath != NULL)
        *classpath = strdup(jars);
    return 0;
}

/* --- command line ----------------------------------------------------------------------------- */

struct args {
    char **v;
    size_t n;
    bool failed;
};

static void add(struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct args *a, const char *format, ...)
{
    va_list list;
    char *text = NULL;

    va_start(list, format);
    if (a->n + 1 < ARGS_MAX && vasprintf(&text, format, list) >= 0)
        a->v[a->n++] = text;
    else
        a->failed = true;
    va_end(list);
}

static void add_words(struct args *a, const char *words)
{
    while (words != NULL && *words != '\0') {
        size_t n = strcspn(words, " ");
        if (n > 0)
            add(a, "%.*s", (int)n, words);
        words += n + (words[n] == ' ');
    }
}

/* Small and quick to start. No perf data: it is a file in /tmp that a killed JVM leaves behind. */
static void add_jvm_options(struct args *a, const struct zkc_plan *plan, size_t node)
{
    const struct zks_options *o = &plan->options;

    add_words(a, "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData");
    add(a, "-Djava.io.tmpdir=%s", plan->home[node]);
    add(a, "-XX:ErrorFile=%s/hs_err.log", plan->home[node]);
    add_words(a, "-Dorg.slf4j.simpleLogger.showDateTime=true"
                 " -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS");
    if (o->no_digest) {
        add(a, "-Dzookeeper.digest.enabled=false");
        add(a, "-Dzookeeper.serializeLastProcessedZxid.enabled=false"); /* since 3.9 */
    }
    if (o->container_check_ms > 0)
        add(a, "-Dznode.container.checkIntervalMs=%d", o->container_check_ms);
    if (o->reconfig)
        add(a, "-Dzookeeper.skipACL=yes"); /* else it needs the super user */
    add_words(a, o->jvm_extra);
}

static int make_argv(struct zkc_plan *plan, size_t node, const char *java, const char *classpath)
{
    struct args a = {calloc(ARGS_MAX, sizeof(char *)), 0, false};

    if (a.v == NULL)
        return -1;
    if (plan->options.nets[node] != NULL) {
        add_words(&a, NSENTER);
        add(&a, "--net=%s", plan->options.nets[node]);
    }
    add(&a, "%s", java);
    add_jvm_options(&a, plan, node);
    add(&a, "-cp");
    add(&a, "%s", classpath);
    add(&a, "org.apache.zookeeper.server.quorum.QuorumPeerMain");
    add(&a, "%s/zoo.cfg", plan->home[node]);
    plan->argv[node] = a.v;
    return a.failed ? -1 : 0;
}

/* --- the plan --------------------------------------------------------------------------------- */

static void default_to(int *value, int standard)
{
    if (*value <= 0)
        *value = standard;
}

static void fill_defaults(struct zks_options *o)
{
    if (o->nodes == 0)
        o->nodes = 1;
    default_to(&o->tick_ms, 100);
    default_to(&o->min_session_ms, 200);
    default_to(&o->max_session_ms, 60000);
    default_to(&o->sync_limit_ms, o->tick_ms * 10 > 5000 ? o->tick_ms * 10 : 5000);
}

/* An unused name. The keeper makes the folder, so that there is no moment in which it could be left
 * behind. */
static char *new_dir_name(void)
{
    const char *tmp = getenv("TMPDIR");
    char *base = realpath(tmp != NULL && *tmp != '\0' ? tmp : "/tmp", NULL);
    char *name = NULL;
    unsigned long long r = 0;

    if (base == NULL)
        return NULL;
    if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r ||
        asprintf(&name, "%s/zk-private-%016llx", base, r) < 0)
        name = NULL;
    free(base);
    return name;
}

static char *below(const char *dir, const char *format, size_t number)
{
    char *path;

    /* The formats are the literals of name_files. */
    if (asprintf(&path, "%s/%s%zu", dir, format, number) < 0)
        return NULL;
    return path;
}

static int name_files(struct zkc_plan *plan)
{
    plan->dir = new_dir_name();
    if (plan->dir == NULL)
        return -1;
    for (size_t i = 0; i < plan->options.nodes; i++) {
        const char *host = plan->options.hosts[i];
        snprintf(plan->host[i], sizeof plan->host[i], "%s", host != NULL ? host : zks_host());
        plan->home[i] = below(plan->dir, "node", i + 1);
        plan->log[i] = below(plan->dir, "log.", i + 1);
        plan->data[i] = below(plan->dir, "data.", i + 1);
        if (plan->home[i] == NULL || plan->log[i] == NULL || plan->data[i] == NULL)
            return -1;
    }
    return 0;
}

static int make_all_argv(struct zkc_plan *plan, char *err, size_t size)
{
    char *java = NULL;
    char *classpath = NULL;
    int rc = zkc_find_java(&java, err, size);

    if (rc == 0)
        rc = zkc_find_jars(&classpath, err, size);
    for (size_t i = 0; rc == 0 && i < plan->options.nodes; i++) {
        if (classpath == NULL || make_argv(plan, i, java, classpath) != 0) {
            snprintf(err, size, "out of memory, or too many options for java");
            rc = ZKS_FAILED;
        }
    }
    free(java);
    free(classpath);
    return rc;
}

int zkc_make(struct zkc_plan *plan, const struct zks_options *options, char *err, size_t size)
{
    int rc;

    if (options != NULL)
        plan->options = *options;
    fill_defaults(&plan->options);
    if (plan->options.nodes > ZKS_NODES_MAX) {
        snprintf(err, size, "at most %d nodes", ZKS_NODES_MAX);
        plan->options.nodes = 0;
        return ZKS_FAILED;
    }
    if (name_files(plan) != 0) {
        snprintf(err, size, "no name for a directory below TMPDIR: %s", strerror(errno));
        return ZKS_FAILED;
    }
    if (plan->options.cfg_extra != NULL)
        plan->cfg_extra = strdup(plan->options.cfg_extra);
    for (size_t i = 0; i < plan->options.nodes; i++) {
        if (plan->options.node_extra[i] != NULL)
            plan->node_extra[i] = strdup(plan->options.node_extra[i]);
    }
    rc = make_all_argv(plan, err, size);
    plan->options.jvm_extra = NULL;
    plan->options.cfg_extra = NULL;
    memset(plan->options.nets, 0, sizeof plan->options.nets);
    memset(plan->options.hosts, 0, sizeof plan->options.hosts);
    memset(plan->options.node_extra, 0, sizeof plan->options.node_extra);
    return rc;
}

static void free_argv(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        free(argv[i]);
    free(argv);
}

static void release_ports(struct zkc_plan *plan)
{
    net_release_ports(plan->reserved, plan->n_reserved);
    plan->n_reserved = 0;
}

void zkc_free(struct zkc_plan *plan)
{
    release_ports(plan);
    for (size_t i = 0; i < plan->options.nodes; i++) {
        free(plan->home[i]);
        free(plan->data[i]);
        free(plan->log[i]);
        free(plan->node_extra[i]);
        free_argv(plan->argv[i]);
    }
    free(plan->cfg_extra);
    free(plan->dir);
}

/* --- ports and files -------------------------------------------------------------------------- */

/* Each node finds the others at their own ports, or where the caller wants it to. */
static int choose_routes(struct zkc_plan *plan)
{
    const struct zks_options *o = &plan->options;

    for (size_t from = 0; from < o->nodes; from++) {
        for (size_t to = 0; to < o->nodes; to++) {
            int port = plan->quorum_port[to];
            if (from != to && o->route != NULL)
                port = o->route(o->route_arg, from, to, port);
            if (port <= 0)
                return -1;
            plan->route[from][to] = port;
        }
    }
    return 0;
}

/* The first ones are those that the caller asked for. */
static int reserve_ports(struct zkc_plan *plan, int *ports)
{
    size_t all = PORTS_OF_NODE * plan->options.nodes;

    release_ports(plan); /* of an earlier try */
    for (size_t i = 0; plan->options.port != 0 && i < plan->options.nodes; i++) {
        ports[i] = plan->options.port + (int)i;
        plan->reserved[i] = net_reserve_port(ports[i]);
        if (plan->reserved[i] < 0) {
            plan->taken_port = ports[i];
            return -1;
        }
        plan->n_reserved++;
    }
    if (net_reserve_ports(ports + plan->n_reserved, plan->reserved + plan->n_reserved,
                          all - plan->n_reserved) != 0)
        return -1;
    plan->n_reserved = all;
    return 0;
}

int zkc_choose_ports(struct zkc_plan *plan)
{
    size_t nodes = plan->options.nodes;
    int ports[PORTS_OF_NODE * ZKS_NODES_MAX];
    size_t used = 0;

    if (reserve_ports(plan, ports) != 0)
        return -1;
    for (size_t i = 0; i < nodes; i++) {
        plan->client_port[i] = ports[i];
        plan->quorum_port[i] = ports[nodes + i];
        plan->election_port[i] = ports[2 * nodes + i];
        bool is_v6 = strchr(plan->host[i], ':') != NULL;
        snprintf(plan->address[i], sizeof plan->address[i], is_v6 ? "[%s]:%d" : "%s:%d",
                 plan->host[i], ports[i]);
        used += (size_t)snprintf(plan->connect + used, sizeof plan->connect - used, "%s%s",
                                 i > 0 ? "," : "", plan->address[i]);
    }
    return choose_routes(plan);
}

static int ticks(const struct zkc_plan *plan, int ms, int at_least)
{
    int n = (ms + plan->options.tick_ms - 1) / plan->options.tick_ms;

    return n > at_least ? n : at_least;
}

static void write_ensemble(const struct zkc_plan *plan, size_t node, FILE *f)
{
    fprintf(f, "initLimit=%d\nsyncLimit=%d\n", ticks(plan, QUORUM_WAIT_MS, 20),
            ticks(plan, plan->options.sync_limit_ms, 1));
    for (size_t i = 0; i < plan->options.nodes; i++) {
        fprintf(f, "server.%zu=%s:%d:%d%s", i + 1, plan->host[i], plan->route[node][i],
                plan->election_port[i], plan->options.observer[i] ? ":observer" : "");
        if (plan->options.reconfig)
            fprintf(f, ";%s", plan->address[i]);
        fprintf(f, "\n");
    }
    if (plan->options.reconfig)
        fprintf(f, "reconfigEnabled=true\n");
    if (plan->options.observer[node])
        fprintf(f, "peerType=observer\n");
}

static void write_config(const struct zkc_plan *plan, size_t node, FILE *f)
{
    const struct zks_options *o = &plan->options;

    fprintf(f, "dataDir=%s\n", plan->data[node]);
    if (!o->reconfig)
        fprintf(f, "clientPort=%d\nclientPortAddress=%s\n", plan->client_port[node],
                plan->host[node]);
    fprintf(f, "tickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n", o->tick_ms,
            o->min_session_ms, o->max_session_ms);
    fprintf(f, "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n");
    fprintf(f, "preAllocSize=1024\nforceSync=%s\n", o->fsync ? "yes" : "no");
    if (o->extended_types)
        fprintf(f, "extendedTypesEnabled=true\n");
    if (o->nodes > 1)
        write_ensemble(plan, node, f);
    if (plan->cfg_extra != NULL)
        fprintf(f, "%s\n", plan->cfg_extra);
    if (plan->node_extra[node] != NULL)
        fprintf(f, "%s\n", plan->node_extra[node]);
}

/* Open a file in a folder for writing. */
static FILE *create_in(const char *dir, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return fopen(path, "we");
}

static int make_dir(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

static int write_myid(const struct zkc_plan *plan, size_t node)
{
    FILE *f = create_in(plan->data[node], "myid");

    if (f == NULL)
        return -1;
    fprintf(f, "%zu\n", node + 1);
    return fclose(f) == 0 ? 0 : -1;
}

int zkc_write_files(const struct zkc_plan *plan)
{
    for (size_t i = 0; i < plan->options.nodes; i++) {
        FILE *f;
        if (make_dir(plan->home[i]) != 0 || make_dir(plan->data[i]) != 0)
            return -1;
        f = create_in(plan->home[i], "zoo.cfg");
        if (f == NULL)
            return -1;
        write_config(plan, i, f);
        if (fclose(f) != 0 || write_myid(plan, i) != 0)
            return -1;
    }
    return 0;
}

int zkc_wipe_data(const struct zkc_plan *plan, size_t node)
{
    if (keeper_remove_tree(plan->data[node]) != 0 || make_dir(plan->data[node]) != 0)
        return -1;
    return write_myid(plan, node);
}

void zkc_log_tail(const struct zkc_plan *plan, size_t node, char *buf, size_t size)
{
    FILE *f = fopen(plan->log[node], "re");
    size_t n = 0;

    if (f != NULL) {
        /* A log that is shorter than the buffer is read from its start. */
        if (fseek(f, -(long)(size - 1), SEEK_END) != 0)
            rewind(f);
        n = fread(buf, 1, size - 1, f);
        fclose(f);
    }
    buf[n] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include "on_servers.h"

struct zks *server;
struct zks_options cluster_server = {.container_check_ms = CONTAINER_CHECK_MS,
                                     .max_session_ms = WIRE_LASTING_MS};
struct wire *raw;
void (*cluster_before_stop)(void);

/* --- the program ------------------------------------------------------------------------------ */

static int start_server(void **state)
{
    char err[512] = "";
    int rc = zks_start(&server, &cluster_server, err, sizeof err);

    (void)state;
    if (rc != 0)
        print_error("%s\n", err);
    return rc;
}

static int stop_server(void **state)
{
    (void)state;
    if (cluster_before_stop)
        cluster_before_stop();
    zks_stop(server);
    return 0;
}

static const char *chroot_text(void)
{
    const char *text = getenv("ZKL_TEST_CHROOT");

    return text ? text : "";
}

/* The chroot with all that is above it. 0 or -1. */
static int make_chroot(void)
{
    char path[256];

    snprintf(path, sizeof path, "%s/", chroot_text());
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0);
        *slash = '/';
        if (rc != 0 && rc != WIRE_NODEEXISTS)
            return -1;
    }
    return 0;
}

int cluster_raw_open(void **state)
{
    (void)state;
    if (zks_wait_ready(server, ZKS_READY_MS) != 0)
        return -1;
    if (wire_open(&raw, zks_host(), zks_port(server, 0), WIRE_LASTING_MS) != 0)
        return -1;
    return make_chroot();
}

int cluster_raw_close(void **state)
{
    (void)state;
    wire_close(raw);
    raw = NULL;
    return 0;
}

int cluster_main(int argc, char **argv)
{
    return run_on_servers(argc, argv, start_server, stop_server);
}

static char *next_text(void)
{
    static char texts[16][1024];
    static unsigned last;

    return texts[++last % 16];
}

const char *cluster_at(const char *path)
{
    char *text = next_text();

    snprintf(text, 1024, "%s%s", chroot_text(), path);
    return text;
}

const char *cluster_servers(const char *servers)
{
    char *text = next_text();

    snprintf(text, 1024, "%s%s", servers, chroot_text());
    return text;
}

/* --- nodes ------------------------------------------------------------------------------------ */

const char *cluster_path(const char *name)
{
    static char paths[8][64];
    static unsigned last;
    char *path = paths[++last % 8];

    snprintf(path, sizeof paths[0], "/%s-%u", name, last);
    return path;
}

int cluster_children(const char *path)
{
    int n = wire_count(raw, cluster_at(path));

    if (n < 0 && n != WIRE_NONODE)
        fail_msg("children of %s: %d", path, n);
    return n < 0 ? 0 : n;
}

/* The digits at its end. */
static const char *number_of(const char *name)
{
    const char *end = name + strlen(name);

    while (end > name && end[-1] >= '0' && end[-1] <= '9')
        end--;
    return end;
}

static int by_number(const void *a, const void *b)
{
    return strcmp(number_of(*(char *const *)a), number_of(*(char *const *)b));
}

void cluster_child(const char *path, size_t nth, char *out, size_t size)
{
    struct wire_names names;

    check_ok(wire_children(raw, cluster_at(path), &names));
    check_num(names.n, >, nth);
    qsort(names.name, names.n, sizeof names.name[0], by_number);
    snprintf(out, size, "%s/%s", cluster_at(path), names.name[nth]);
    wire_names_free(&names);
}

const char *child_of(const char *path, size_t nth)
{
    char *text = next_text();

    cluster_child(path, nth, text, 1024);
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "raw.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zookeeper/zookeeper.h>

#include "connect.h"
#include "say.h"

enum { SESSION_MS_DEFAULT = 10000 };

struct raw {
    zhandle_t *zh;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int state; /* protected by mutex */
};

/* --- connecting --------------------------------------------------------- */

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct raw *raw = context;
    (void)zh, (void)path;
    if (type != ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&raw->mutex);
    raw->state = state;
    pthread_cond_broadcast(&raw->changed);
    pthread_mutex_unlock(&raw->mutex);
}

static void log_nothing(const char *message)
{
    (void)message;
}

static bool wait_for_link(struct raw *raw, int ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += ms / 1000;
    int rc = 0;
    pthread_mutex_lock(&raw->mutex);
    while (rc == 0 && raw->state != ZOO_CONNECTED_STATE && raw->state != ZOO_AUTH_FAILED_STATE)
        rc = pthread_cond_timedwait(&raw->changed, &raw->mutex, &end);
    bool connected = raw->state == ZOO_CONNECTED_STATE;
    pthread_mutex_unlock(&raw->mutex);
    return connected;
}

static struct raw *new_raw(void)
{
    struct raw *raw = calloc(1, sizeof *raw);
    if (!raw)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&raw->mutex, NULL);
    pthread_cond_init(&raw->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return raw;
}

/* The library's own client has shown already that the credential is a good one. */
static int connect_raw(struct raw *raw, const struct zkl_client_options *o, int connect_ms)
{
    int session_ms = o->session_timeout_ms ? o->session_timeout_ms : SESSION_MS_DEFAULT;
    raw->zh = zookeeper_init2(o->servers, on_event, session_ms, NULL, raw, 0, log_nothing);
    if (!raw->zh)
        return fail(EXIT_CONFIG, "no connection can be made to %s", o->servers);
    if (o->auth_scheme)
        zoo_add_auth(raw->zh, o->auth_scheme, o->auth_credential, (int)strlen(o->auth_credential),
                     NULL, NULL);
    if (wait_for_link(raw, connect_ms))
        return 0;
    return fail(EXIT_NO_SERVER, "no server of %s answered: see that one runs and can be reached",
                o->servers);
}

int raw_open(struct raw **opened, struct settings *settings, int connect_ms)
{
    struct tool_options options;
    struct raw *raw = new_raw();
    if (!raw)
        return fail(EXIT_SYSTEM, "there is no memory left");
    int rc = tool_options(&options, settings);
    if (rc == 0)
        rc = connect_raw(raw, &options.client, connect_ms);
    tool_options_fini(&options);
    if (rc == 0)
        *opened = raw;
    else
        raw_close(raw);
    return rc;
}

void raw_close(struct raw *raw)
{
    if (!raw)
        return;
    if (raw->zh)
        zookeeper_close(raw->zh);
    pthread_cond_destroy(&raw->changed);
    pthread_mutex_destroy(&raw->mutex);
    free(raw);
}

/* --- questions ---------------------------------------------------------- */

static enum raw_answer answer_of(int rc)
{
    switch (rc) {
    case ZOK:
        return RAW_OK;
    case ZNONODE:
        return RAW_NO_NODE;
    case ZNOAUTH:
        return RAW_DENIED;
    default:
        return RAW_FAILED;
    }
}

/* The server keeps the number of creates and shows it as cversion = 2 * creates - children, in 32 bits. */
enum raw_answer raw_created(const struct raw *raw, const char *path, uint32_t *created)
{
    struct Stat stat;
    int rc = zoo_exists(raw->zh, path, 0, &stat);
    if (rc == ZOK)
        *created = ((uint32_t)stat.cversion + (uint32_t)stat.numChildren) / 2;
    return answer_of(rc);
}

static void add_rights(struct raw_rights *rights, const struct ACL *acl)
{
    const int lock = ZOO_PERM_READ | ZOO_PERM_CREATE | ZOO_PERM_DELETE;
    rights->one_can_lock |= (acl->perms & lock) == lock;
    if (strcmp(acl->id.scheme, "world") != 0)
        return;
    rights->all_read |= (acl->perms & ZOO_PERM_READ) != 0;
    rights->all_delete |= (acl->perms & ZOO_PERM_DELETE) != 0;
    rights->all_create |= (acl->perms & ZOO_PERM_CREATE) != 0;
}

enum raw_answer raw_rights(const struct raw *raw, const char *path, struct raw_rights *rights)
{
    struct ACL_vector acl;
    struct Stat stat;
    *rights = (struct raw_rights){0};
    int rc = zoo_get_acl(raw->zh, path, &acl, &stat);
    if (rc != ZOK)
        return answer_of(rc);
    for (int i = 0; i < acl.count; i++)
        add_rights(rights, &acl.data[i]);
    deallocate_ACL_vector(&acl);
    return RAW_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of the calls that libzookeeper has accepted, with the memory that they own. The
 * driver frees it when the call is answered or its handle is closed. All of this runs under the
 * client's mutex. handle.c and renew.c make calls; handle.c receives libzookeeper's completions. */
#include "handle.h"

#include <assert.h>
#include <stdlib.h>

#include "numbers.h"

const struct ACL_vector *zkl_handle_acl(const struct zkl_driver *d)
{
    return d->config.creator_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

struct zkl_call *zkl_call_new(struct zkl_handle *h, const struct zkl_request *request)
{
    struct zkl_call *call = malloc(sizeof *call); /* calloc passes by what free left at hand */
    if (!call)
        return NULL;
    *call = (struct zkl_call){.handle = h,
                              .id = request->id,
                              .stamp = request->stamp,
                              .is_awaited = request->kind != ZKL_REQ_KEEPALIVE,
                              .next = h->calls};
    if (call->next)
        call->next->prev = call;
    h->calls = call;
    h->awaited += call->is_awaited;
    zkl_numbers_take();
    return call;
}

static void free_acl(struct ACL_vector *acl)
{
    for (int i = 0; i < acl->count; i++) {
        free(acl->data[i].id.scheme);
        free(acl->data[i].id.id);
    }
    free(acl->data);
    *acl = (struct ACL_vector){0};
}

static void free_renewal(struct zkl_renewal *renewal)
{
    free(renewal->path);
    free(renewal->data);
    free_acl(&renewal->acl);
    free(renewal);
}

void zkl_call_free(struct zkl_call *call)
{
    struct zkl_handle *h = call->handle;
    *(call->prev ? &call->prev->next : &h->calls) = call->next;
    if (call->next)
        call->next->prev = call->prev;
    h->awaited -= call->is_awaited;
    if (call->renewal)
        free_renewal(call->renewal);
    free(call->results);
    free(call->paths);
    free(call->stat);
    free(call);
}

void zkl_call_answered(struct zkl_call *call, struct zkl_reply *reply)
{
    assert(zkl_driver_is_locked(call->handle->driver));
    struct zkl_handle *h = call->handle;
    struct zkl_driver *d = h->driver;
    bool counts = h == d->current;
    reply->id = call->id;
    reply->hung_up = zkl_map_is_hang_up(reply->number);
    if (zkl_map_is_word(reply->number))
        reply->stamp = call->stamp;
    zkl_call_free(call);
    if (counts)
        zkl_core_reply(&d->core, zkl_clock_now(), reply);
    if (h->buried && h->awaited == 0)
        pthread_cond_broadcast(&d->changed);
}

struct zkl_call *zkl_call_enter(const void *data)
{
    struct zkl_call *call = (struct zkl_call *)data;
    zkl_driver_lock(call->handle->driver);
    return call;
}

void zkl_call_leave(struct zkl_call *call, struct zkl_reply *reply)
{
    struct zkl_driver *d = call->handle->driver;
    zkl_call_answered(call, reply);
    zkl_driver_unlock(d);
}

int zkl_call_multi(struct zkl_call *call, int count, const zoo_op_t *ops, void_completion_t then)
{
    zhandle_t *zh = call->handle->zh;
    return zoo_state(zh) == ZOO_CONNECTED_STATE
               ? zoo_amulti(zh, count, ops, call->results, then, call)
               : ZCONNECTIONLOSS;
}

bool zkl_call_is_kept(struct zkl_call *call, int rc)
{
    /* Out of memory half way: libzookeeper may have kept the call for a completion that never
     * comes. It stays registered, unknown to the core, until the handle is closed. */
    if (rc == ZMARSHALLINGERROR)
        call->id = 0;
    return rc == ZMARSHALLINGERROR;
}

enum zkl_answer zkl_handle_refusal(const struct zkl_handle *h, int rc)
{
    bool is_over = rc != ZOK && is_unrecoverable(h->zh) == ZINVALIDSTATE;
    return is_over ? ZKL_ANSWER_LINK : zkl_map_refusal(rc);
}

/* SPDX-License-Identifier: Apache-2.0
 * Watches, shared: one on the server for each path and kind, any number of contenders behind it.
 * The driver knows a watch by a number only, so that a late event finds nothing instead of freed
 * memory. */
#ifndef ZKL_CORE_WATCH_H
#define ZKL_CORE_WATCH_H

#include "core.h"

enum zkl_watch_state {
    ZKL_WATCH_PLANNED, /* the client has not asked the server for it yet */
    ZKL_WATCH_ARMING,  /* the arming request is out */
    ZKL_WATCH_ARMED,
    ZKL_WATCH_REMOVING, /* no subscriber wants it: the server is notified */
};

struct zkl_watch {
    struct zkl_watch *next;
    uint64_t id;
    enum zkl_watch_state state;
    enum zkl_watch_type type;
    /* data watches: what it was armed on asks the node's owner to release the lock */
    bool revoked;
    bool fired;             /* while its removal was due */
    bool armed;             /* child watches: by an earlier list, and it has not fired */
    bool was_there;         /* when the leader was asked last; see timers.c */
    uint64_t link;          /* data watches: the number of the link that it was armed over */
    int64_t node_session;   /* data watches: the session of what it was armed on */
    uint64_t armed_version; /* of what it was armed on; see zkl_watch_version */
    /* data watches: the owner text of what it was armed on, see zkl_watch_owner */
    char *owner;
    struct zkl_subscription *subscribers;
    struct zkl_pending request; /* arming (data watches only) or removing */
    char path[];
};

/* Another one after each event that this watch is for, and after what can take its event away: a
 * new ACL. */
static inline uint64_t zkl_watch_version(const struct zkl_watch *watch,
                                         const struct zkl_reply *reply)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    bool is_child = watch->type == ZKL_WATCH_CHILD;
    uint64_t changes = is_child ? (uint64_t)reply->pzxid : (uint32_t)reply->version;
    return ((uint64_t)reply->czxid * odd + changes) * odd + (uint32_t)reply->aversion;
}

/* Armed over the link that is up now: the server reports its event in order with everything
 * else. */
static inline bool zkl_watch_is_reliable(const struct zkl_core *core, const struct zkl_watch *watch)
{
    return watch && watch->state == ZKL_WATCH_ARMED && watch->link == core->link;
}

/* The subscription is a contender's of that kind, and not a query's. */
static inline bool zkl_watch_is_for(const struct zkl_subscription *sub, int which)
{
    return sub->contender && sub == &sub->contender->subs[which];
}

enum zkl_subscribed { ZKL_SUBSCRIBED_NEW, ZKL_SUBSCRIBED_SHARED, ZKL_SUBSCRIBED_REFUSED };

/* Subscribe to the watch of path, a new one (the caller arms it) or a shared one. A subscription to
 * the same path stays as it is (SHARED), one to another path ends first. REFUSED: why says what
 * for, NOMEM or FULL. */
enum zkl_subscribed zkl_watch_subscribe(struct zkl_core *core, struct zkl_subscription *sub,
                                        struct zkl_contender *contender, const char *path,
                                        enum zkl_watch_type type, enum zkl_answer *why);
/* The same for the data at path, and ask for a new watch. */
enum zkl_subscribed zkl_watch_data(struct zkl_core *core, struct zkl_subscription *sub,
                                   struct zkl_contender *contender, const char *path,
                                   enum zkl_answer *why);
/* Subscribe without asking for the watch: the next subscriber gets NEW. Without memory or room,
 * nothing happens. */
void zkl_watch_plan(struct zkl_core *core, struct zkl_subscription *sub,
                    struct zkl_contender *contender, const char *path, enum zkl_watch_type type);
/* End a subscription; the last one has the watch removed from the server. */
void zkl_watch_unsubscribe(struct zkl_core *core, struct zkl_subscription *sub);

/* Take a subscription out of its watch's list and leave the watch alone. */
void zkl_watch_unlink(struct zkl_subscription *sub);

/* A watch that a subscriber may want. */
struct zkl_watch *zkl_watch_find(struct zkl_core *core, uint64_t id);
/* The same; that another one has fired is noted. */
struct zkl_watch *zkl_watch_fired(struct zkl_core *core, uint64_t id);
/* A watch that a contender waits by, each in its turn: the one behind number after. NULL: there is
 * none. */
struct zkl_watch *zkl_watch_next(struct zkl_core *core, uint64_t after);
void zkl_watch_armed(struct zkl_core *core, struct zkl_watch *watch);
/* Does a contender wait for the end of this node, or a query? */
bool zkl_watch_is_waited_by(const struct zkl_watch *watch);
/* Keep what the node's data says of its owner, if a contender waits by this watch. */
void zkl_watch_keep_owner(struct zkl_watch *watch, const struct zkl_reply *reply);
/* That text, or the owner text of a contender in this client; NULL: it is not known, or is no
 * text. */
const char *zkl_watch_owner(const struct zkl_watch *watch);
/* Take it out of the table; its subscribers stay in the list. The caller notifies them and frees
 * it, with zkl_watch_free. */
void zkl_watch_detach(struct zkl_core *core, struct zkl_watch *watch);
/* libzookeeper has it no more: nothing is awaited for it, and there is room for another one. */
void zkl_watch_gone(struct zkl_core *core, struct zkl_watch *watch);
void zkl_watch_free(struct zkl_watch *watch);
/* The answer to a removal. */
void zkl_watch_removed(struct zkl_core *core, struct zkl_watch *watch, enum zkl_answer answer);
/* The link is back: inform the server of unwanted watches that it does not know of yet. */
void zkl_watch_retry(struct zkl_core *core);
/* The session ended: free all, subscriptions too. */
void zkl_watch_clear(struct zkl_core *core);

#endif

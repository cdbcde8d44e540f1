/* SPDX-License-Identifier: Apache-2.0 */
/* Private to proxy.c: frames of one direction of a connection, and the rules by which they are
 * passed on, held or lost. No socket is touched here. All of it is under the proxy's mutex. */
#ifndef ZKTEST_PROXY_FRAME_H
#define ZKTEST_PROXY_FRAME_H

#include "proxy.h"

#define FAULTS_MAX 16
#define COUNT_OFFSET 16 /* the smallest op is -14 */
#define COUNTS 160

enum fault_place { AT_REQUEST, AT_REPLY };
enum fault_kind { FAULT_NONE, FAULT_CUT, FAULT_SILENT, FAULT_HOLD };

struct fault {
    enum fault_place place;
    enum fault_kind kind;
    enum proxy_op op;
    int nth; /* how many more of these until it strikes */
};

struct rules {
    struct fault faults[FAULTS_MAX];
    size_t fault_count;
    int drops_marked; /* requests whose answer must be lost when it comes */
    int holds_marked;
    bool news; /* something that a waiter may wait for has changed */
    int delay_ms;
    int64_t counts[COUNTS];
    bool hangs_up[COUNTS]; /* on each request of that type */
    proxy_hook_fn hook;
    void *hook_arg;
    bool opaque; /* the bytes have no frames of ZooKeeper's client protocol, but maybe others: */
    size_t (*size_of)(const unsigned char *data, size_t size);
};

/* A whole frame, with its length in front, on its way out. */
struct frame {
    struct frame *next;
    int64_t due_ms;
    bool barrier; /* held, and all behind it */
    size_t size;
    size_t done;
    unsigned char data[];
};

struct lane {
    enum proxy_dir dir;
    bool first; /* the connect request, or its answer, is still to come */
    bool eof;   /* the side it comes from has closed */
    bool dead;  /* a frame was lost, or the other side has ended: nothing more passes */
    bool cut;   /* close the link when the frames before the lost one are written */
    unsigned char *in;
    size_t in_size;
    size_t in_room;
    struct frame *head;
    struct frame **tail;
};

/* The requests that wait for their answers, oldest first. */
struct asked_entry {
    int32_t xid;
    int op;
    enum fault_kind mark; /* the fate of the answer */
};

struct asked {
    struct asked_entry *entry;
    size_t n;
    size_t room;
};

struct link {
    struct link *next;
    int client;
    int server;
    bool lost; /* begun in a partition: it has no server */
    bool gone; /* to be closed by the thread */
    struct lane to_server;
    struct lane to_client;
    struct asked asked;
};

void lane_init(struct lane *lane, enum proxy_dir dir);
void lane_free(struct lane *lane);
/* Bytes have come in: cut them into frames and judge each. */
void lane_take(struct rules *rules, struct link *link, struct lane *lane, const void *data,
               size_t n);
/* Pass this on behind all that came before it. */
void lane_append(struct rules *rules, struct lane *lane, const void *data, size_t n, bool barrier);
/* The next frame, if it may be sent now. */
struct frame *lane_due(const struct lane *lane, int64_t now_ms);
void lane_pop(struct lane *lane);
/* Take all barriers away. */
void lane_release(struct lane *lane);
/* Lose all frames on their way, and those to come. */
void lane_kill(struct lane *lane);

/* Forget the fates of answers that are still out: of held ones only, or of all. */
void asked_forget(struct rules *rules, struct asked *asked, bool holds_only);
void asked_free(struct rules *rules, struct asked *asked);

int rules_arm(struct rules *rules, const struct fault *fault);
void rules_disarm(struct rules *rules, bool holds_only);
/* Drops, or holds, that have not struck yet. */
int rules_pending(const struct rules *rules, bool holds);
int64_t rules_count(const struct rules *rules, int op);
void rules_hang_up_on(struct rules *rules, int op);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The same script on both sides, the simulated ensemble and a real server: the test does each step to
 * both, and both must report the same to the clients, as text. Each report is one line:
 *
 *     create /a/x- ok x-0000000003 z2 s0     a reply: kind, path, answer, then what is not 0 or NULL:
 *                                            name, z.. czxid, s.. whose session owns the node,
 *                                            v.. version, n.. number of children, "data",
 *                                            [children], @.. the part of a transaction to blame
 *     fired deleted data /a/x                a watch, or "fired changed"
 *     up s0, down, expired                   the session
 *
 * czxids and sessions have numbers in the order in which they first occur; pair_agrees also checks
 * that both sides' czxids are in the same order. Children are sorted: a server has no order. */
#ifndef ZKTEST_MODEL_PAIR_H
#define ZKTEST_MODEL_PAIR_H

#include "side.h"

struct pair;

/* A world of its own: an empty simulated ensemble, and an empty node of the real server. */
struct pair *pair_new(void);
void pair_free(struct pair *pair);

/* --- steps ------------------------------------------------------------------------------------ */

/* A call of side.h on both sides: pair_do(pair, cut, client). */
#define pair_do(pair, call, ...)                                                                   \
    do {                                                                                           \
        struct side *side_;                                                                        \
        for (size_t i_ = 0; (side_ = pair_side(pair, i_)) != NULL; i_++)                           \
            side_->calls->call(side_, ##__VA_ARGS__);                                              \
    } while (0)
/* NULL behind the last one. */
struct side *pair_side(struct pair *pair, size_t which);
/* Requests get their id here. False: it was not sent, and the text begins "KIND PATH refused:
 * ANSWER". */
bool pair_send(struct pair *pair, size_t client, struct zkl_request request);
void pair_lose(struct pair *pair, size_t client, struct zkl_request request, bool carried_out);
/* Wait until both sides have reported everything, and compare. False: they differ, and both texts
 * are printed. */
bool pair_agrees(struct pair *pair);
/* Wait only, where a server has a choice; pair_told then has the server's reports. */
void pair_settle(struct pair *pair);

/* --- the reports since the step before the last pair_agrees ----------------------------------- */

const char *pair_told(const struct pair *pair, size_t client);
/* Check that both sides agree, and that the client's reports are this text. */
#define pair_expect(pair, client, text)                                                            \
    do {                                                                                           \
        check_true(pair_agrees(pair));                                                             \
        check_text(pair_told(pair, client), text);                                                 \
    } while (0)
/* One request, answered by this and nothing else. */
#define pair_ask(pair, client, request, text)                                                      \
    do {                                                                                           \
        pair_send(pair, client, request);                                                          \
        pair_expect(pair, client, text);                                                           \
    } while (0)
/* The nth name in the replies of the last comparison, n from 0: of a created node, or of children.
 * NULL: none. */
const char *pair_name(const struct pair *pair, size_t client, size_t n);

/* --- requests --------------------------------------------------------------------------------- */

#define LIST_OF(...)                                                                               \
    .checks = (const char *const[]){__VA_ARGS__},                                                  \
    .check_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define TEXTS(...)                                                                                 \
    .texts = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define ASK(which, at, ...)                                                                        \
    (struct zkl_request)                                                                           \
    {                                                                                              \
        .kind = ZKL_REQ_##which, .path = (at), __VA_ARGS__                                         \
    }

#endif

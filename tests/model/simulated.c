/* SPDX-License-Identifier: Apache-2.0 */
#include "side.h"

#include "check.h"
#include "sim/fake.h"

struct simulated {
    struct side side;
    struct fake_prng prng;
    struct fake fake;
    struct fake_handle *handles[SIDE_CLIENTS];
};

static struct simulated *of(struct side *side)
{
    return (struct simulated *)side;
}

static struct fake_handle *handle(struct side *side, size_t client)
{
    check_true(of(side)->handles[client]);
    return of(side)->handles[client];
}

static void record(struct side *side, size_t client, const struct fake_message *message)
{
    struct tape *tape = &side->tapes[client];

    if (message->type == FAKE_REPLY)
        tape_reply(tape, &message->reply);
    else if (message->type == FAKE_UP)
        tape_add(tape, (struct told){.type = TOLD_UP, .session = handle(side, client)->session});
    else if (message->type == FAKE_DOWN)
        tape_add(tape, (struct told){.type = TOLD_DOWN});
    else if (message->type == FAKE_EXPIRED)
        tape_add(tape, (struct told){.type = TOLD_EXPIRED});
    for (size_t i = 0; i < message->id_count; i++)
        tape_add(tape, (struct told){.type = TOLD_FIRED,
                                     .watch_id = message->ids[i],
                                     .fired = message->fired});
}

static bool hear_one(struct side *side, size_t client)
{
    struct fake_handle *h = of(side)->handles[client];
    struct fake_message *message = h ? fake_next(h) : NULL;

    if (message) {
        record(side, client, message);
        fake_message_free(message);
    }
    return message;
}

static void hear(struct side *side, size_t client)
{
    while (hear_one(side, client))
        ;
}

static void join(struct side *side, size_t client)
{
    struct fake_handle *h = handle(side, client);

    fake_connect(h, true);
    side->linked[client] = h->linked;
    hear(side, client);
}

static void open_client(struct side *side, size_t client)
{
    struct simulated *s = of(side);

    check_true(!s->handles[client]);
    s->handles[client] = fake_open(&s->fake);
    join(side, client);
    side->sessions[side->session_count++] = s->handles[client]->session;
}

static void close_client(struct side *side, size_t client)
{
    fake_close(handle(side, client));
    of(side)->handles[client] = NULL;
    side->linked[client] = false;
    side->session_ended = true;
}

static enum zkl_answer send_request(struct side *side, size_t client,
                                    const struct zkl_request *request)
{
    return fake_send(handle(side, client), request);
}

static void cut(struct side *side, size_t client)
{
    fake_break(handle(side, client));
    side->linked[client] = side->held[client] = false;
    hear(side, client);
}

static void lose(struct side *side, size_t client, const struct zkl_request *request,
                 bool carried_out)
{
    struct fake_handle *h = handle(side, client);

    check_num(send_request(side, client, request), ==, ZKL_ANSWER_OK);
    if (carried_out)
        check_true(fake_serve(h));
    while (h->in.first && h->in.first->type == FAKE_FIRED) /* came before the answer */
        hear_one(side, client);
    cut(side, client);
}

static void hold(struct side *side, size_t client, bool hold)
{
    side->held[client] = hold;
}

static void expire(struct side *side, size_t client)
{
    fake_expire(&of(side)->fake, handle(side, client)->session);
    side->session_ended = true;
}

static bool serve_all(struct fake_handle *h)
{
    bool any = false;

    while (h && fake_serve(h))
        any = true;
    return any;
}

static void settle(struct side *side)
{
    struct simulated *s = of(side);

    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (s->handles[i] && side->linked[i])
            fake_catch_up(s->handles[i], s->fake.zxid);
        else if (s->handles[i])
            fake_connect(s->handles[i], false);
        serve_all(s->handles[i]);
    }
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (s->handles[i] && side->linked[i])
            fake_catch_up(s->handles[i], s->fake.zxid);
        if (!side->held[i])
            hear(side, i);
    }
}

static void set_counter(struct side *side, const char *path, int32_t number)
{
    struct fake_node *node = fake_find(&of(side)->fake, path);

    check_true(node);
    for (size_t i = 0; i < SIDE_CLIENTS; i++) { /* the real server is restarted for it */
        if (of(side)->handles[i])
            cut(side, i);
    }
    node->counter = number;
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (of(side)->handles[i])
            join(side, i);
    }
}

static void collect(struct side *side, const char *path)
{
    struct fake *fake = &of(side)->fake;

    settle(side);
    check_true(fake_find(fake, path));
    check_true(!fake_has_children(fake, path));
    fake_delete(fake, fake_find(fake, path));
}

static void wipe(struct side *side)
{
    fake_wipe(&of(side)->fake);
    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (!of(side)->handles[i])
            continue;
        side->linked[i] = false;
        hear(side, i);
        join(side, i);
    }
}

static void free_side(struct side *side)
{
    struct simulated *s = of(side);

    for (size_t i = 0; i < SIDE_CLIENTS; i++) {
        if (s->handles[i])
            fake_close(s->handles[i]);
        tape_clear(&side->tapes[i]);
    }
    fake_fini(&s->fake);
    free(s);
}

static const struct side_calls calls = SIDE_CALLS;

struct side *simulated_new(void)
{
    struct simulated *s = calloc(1, sizeof *s);

    check_true(s);
    s->side.calls = &calls;
    s->prng.plain = true;
    fake_init(&s->fake, &s->prng);
    return &s->side;
}

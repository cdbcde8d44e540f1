/* SPDX-License-Identifier: Apache-2.0 */
/* "do STEP ; STEP...": what a worker does with many locks at a time, as conductor.py has it. */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSE_MS 30000
#define ENTERED_MAX 32

/* As far as it has come. */
struct course {
    struct worker *w;
    bool refused; /* something was not granted: nothing more is asked for */
    struct handle *entered[ENTERED_MAX];
    size_t count;
    char text[2048]; /* the answer */
    size_t n;
};

static void tell(struct course *c, const char *text)
{
    if (c->n < sizeof c->text)
        c->n += (size_t)snprintf(c->text + c->n, sizeof c->text - c->n, " %s", text);
}

static void tell_code(struct course *c, int rc)
{
    tell(c, rc == 0 ? "ok" : zkl_error_name(rc));
}

/* --- enter and leave -------------------------------------------------------------------------- */

static void offer(struct worker *w, struct zkl_cancel *cancel)
{
    pthread_mutex_lock(&w->mu);
    w->cancel = cancel;
    pthread_mutex_unlock(&w->mu);
}

/* The journal hears of a place when it is entered first and left last. */
static bool is_outermost(const struct handle *h, int64_t hold_count)
{
    return h->semaphore != NULL || hold_count == 1;
}

/* "WINDOW,COUNT,..."; or what is wrong with it. */
static void tell_grant(struct course *c, const struct handle *h)
{
    const struct held *held = &c->w->held;
    char text[100];
    size_t n = (size_t)snprintf(text, sizeof text, "%lld", (long long)handle_window_ms(h, held));

    for (size_t i = 0; i < handle_places(h); i++) {
        struct zkl_mutex *mutex = handle_place(h, i)->mutex;
        uint64_t token = held->grants[i].token;
        if (token == 0 || (mutex != NULL && token != zkl_mutex_token(mutex))) {
            tell(c, "wrong-token");
            return;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, ",%lld",
                              (long long)held->grants[i].hold_count);
    }
    tell(c, text);
}

static void enter(struct course *c, struct handle *h, int ms, bool cancels)
{
    struct worker *w = c->w;
    struct zkl_wait wait = wait_for(ms);

    if (c->refused || c->count == ENTERED_MAX) {
        tell(c, "-");
        return;
    }
    if (cancels && zkl_cancel_new(&wait.cancel) != 0)
        abort();
    offer(w, wait.cancel);
    int rc = lock(w, h, &wait, &w->held);
    offer(w, NULL);
    c->refused = rc != 0;
    if (rc == 0) {
        c->entered[c->count++] = h;
        for (size_t i = 0; i < handle_places(h); i++) {
            if (is_outermost(h, w->held.grants[i].hold_count))
                note_place(w, '+', h, &w->held, i);
        }
        tell_grant(c, h);
    } else if (rc == ZKL_ECANCELED && zkl_cancel_is_set(wait.cancel) != 1) {
        tell(c, "canceled-by-nobody");
    } else {
        tell_code(c, rc);
    }
    zkl_cancel_free(wait.cancel);
}

/* False: it has not been entered so often. */
static bool take_back(struct course *c, const struct handle *h)
{
    size_t i = c->count;

    while (i > 0 && c->entered[i - 1] != h)
        i--;
    if (i == 0)
        return false;
    c->entered[i - 1] = c->entered[--c->count];
    return true;
}

static bool is_lost(const struct handle *h)
{
    bool lost = false;

    for (size_t i = 0; i < handle_places(h); i++)
        lost = lost || handle_place(h, i)->lost > 0;
    return lost;
}

/* A callback that has heard of a loss is as bad as an unlock that does: no session ends here. */
static void leave(struct course *c, struct handle *h)
{
    struct held *held = &c->w->held;

    if (!take_back(c, h)) {
        tell(c, "-");
        return;
    }
    for (size_t i = 0; i < handle_places(h); i++) {
        struct zkl_mutex *mutex = handle_place(h, i)->mutex;
        if (mutex != NULL)
            held->grants[i].token = zkl_mutex_token(mutex);
        if (is_outermost(h, mutex != NULL ? zkl_mutex_hold_count(mutex) : 0))
            note_place(c->w, '-', h, held, i);
    }
    int rc = unlock(c->w, h, held);
    tell_code(c, rc == 0 && is_lost(h) ? ZKL_ELOST : rc);
}

/* --- the others ------------------------------------------------------------------------------- */

static int be_guest(struct worker *w, bool comes)
{
    if (comes)
        return peer_open(&w->guest);
    int rc = zkl_client_close(w->guest, CLOSE_MS);
    if (rc == 0)
        rc = zkl_client_free(w->guest);
    w->guest = NULL;
    return rc;
}

static bool is(const char *word, const char *text)
{
    return word != NULL && strcmp(word, text) == 0;
}

static void take_step(struct course *c, char **words)
{
    struct zkl_client *client = c->w->guest != NULL ? c->w->guest : peer_client();
    struct handle *h = handle_find(words[1]);

    if (is(words[0], "enter") && h != NULL)
        enter(c, h, atoi(words[2]), is(words[3], "cancel"));
    else if (is(words[0], "leave") && h != NULL)
        leave(c, h);
    else if (is(words[0], "join"))
        tell_code(c, handle_join(client, words[1], words[2]));
    else if (is(words[0], "new"))
        tell_code(c,
                  handle_new(client, words[1], words[2], words[3], (const char *const *)words + 4));
    else if (is(words[0], "drop"))
        tell_code(c, handle_drop(words[1]));
    else if (is(words[0], "guest"))
        tell_code(c, be_guest(c->w, is(words[1], "comes")));
    else if (is(words[0], "nap"))
        tell_code(c, nanosleep(&(struct timespec){.tv_nsec = atoi(words[1]) * 1000000L}, NULL));
    else
        tell(c, "no-such-step");
}

/* words end in NULL, and each step but the last in ";". */
void steps_do(struct worker *w, char **words)
{
    struct course c = {.w = w};

    while (words[0] != NULL && words[1] != NULL) {
        char **end = words;
        while (*end != NULL && !is(*end, ";"))
            end++;
        bool last = *end == NULL;
        *end = NULL;
        take_step(&c, words);
        words = last ? end : end + 1;
    }
    answer(w, "ok", c.text + (c.n > 0));
}

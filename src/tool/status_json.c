/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock status --json: the inspection as one JSON document, built by jansson, with the names that
 * docs/man/zklock-status.1 lists. It owns the document until it is printed. One thread; status.c
 * calls it. */
#include <jansson.h>

#include <inttypes.h>

#include "status_text.h"
#include "describe.h"

static json_t *json_of_session(int64_t session)
{
    return session ? json_sprintf("0x%" PRIx64, (uint64_t)session) : json_null();
}

static json_t *json_of_text(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

/* Of another client: null if it is not UTF-8. */
static json_t *json_of_foreign(const char *text)
{
    json_t *string = json_string(text);
    return string ? string : json_null();
}

static json_t *json_of_number(bool known, int64_t number)
{
    return known ? json_integer(number) : json_null();
}

static json_t *json_of_node(const struct zkl_inspection *inside, size_t index)
{
    return index == ZKL_NO_ENTRY ? json_null()
                                 : json_string(zkl_inspection_entry(inside, index)->node_path);
}

/* NULL: no memory. So in all of these: what gets a NULL is NULL itself. */
static json_t *json_of_entry(const struct zkl_inspection *inside, const struct zkl_entry *e)
{
    bool parsed = e->host[0] != '\0', seen = !describe_is_unknown(e);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b, s:b, s:o}", "node",
        e->node_path, "access", describe_access(e->access), "name", json_of_text(e->name), "style",
        json_of_text(e->peer), "owner", json_of_text(e->owner), "host", json_of_text(e->host),
        "pid", json_of_number(parsed, e->pid), "thread", json_of_number(parsed, e->thread),
        "session", json_of_session(e->session), "age_ms", json_of_number(seen, e->age_ms),
        "sequence", (json_int_t)e->sequence, "czxid", json_of_number(seen, (int64_t)e->czxid),
        "denied", e->denied, "asked_to_let_go", e->revoke_requested, "waits_for",
        json_of_node(inside, e->waits_for));
}

static json_t *json_of_role(const struct zkl_inspection *inside, enum zkl_entry_role role)
{
    json_t *list = json_array();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < inside->count; i++) {
        if (zkl_inspection_entry(inside, i)->role == role)
            rc =
                json_array_append_new(list, json_of_entry(inside, zkl_inspection_entry(inside, i)));
    }
    if (rc == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *json_of_last(const struct last_run *last)
{
    bool ended = last->end != RUN_UNENDED;
    bool has_value = last->end == RUN_EXITED || last->end == RUN_KILLED;
    if (last->end == RUN_NEVER)
        return json_null();
    return json_pack(
        "{s:I, s:o, s:I, s:I, s:o, s:o, s:o}", "begun_ms", (json_int_t)last->begun_ms, "host",
        json_of_foreign(last->host), "pid", (json_int_t)last->pid, "token", (json_int_t)last->token,
        "end", ended ? json_string(last_run_end_word(last->end)) : json_null(), "value",
        json_of_number(has_value, last->value), "took_ms", json_of_number(ended, last->took_ms));
}

static json_t *json_of_seen(const struct seen *seen)
{
    static const struct zkl_inspection nothing;
    const struct zkl_inspection *inside = seen->inside ? seen->inside : &nothing;
    if (seen->code == ZKL_EACCES)
        return json_pack("{s:s, s:b}", "path", seen->path, "denied", 1);
    return json_pack("{s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o}", "path", seen->path, "denied", 0,
                     "kind", seen->inside ? describe_kind(inside->kind) : "none", "permits",
                     inside->permits ? json_integer(inside->permits) : json_null(), "holders",
                     json_of_role(inside, ZKL_ENTRY_ROLE_HOLDER), "queue",
                     json_of_role(inside, ZKL_ENTRY_ROLE_WAITER), "others",
                     json_of_role(inside, ZKL_ENTRY_ROLE_FOREIGN), "last_run",
                     json_of_last(&seen->last));
}

/* In ASCII, because this may also appear on a terminal. */
int status_json(FILE *out, const char *path, const struct look *look)
{
    json_t *locks = json_array();
    int rc = locks ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < look->count; i++)
        rc = json_array_append_new(locks, json_of_seen(&look->all[i]));
    json_t *all = rc == 0 ? json_pack("{s:s, s:O}", "path", path, "locks", locks) : NULL;
    if (!all || json_dumpf(all, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0)
        rc = -1;
    json_decref(all);
    json_decref(locks);
    return rc == 0 && fputc('\n', out) != EOF && fflush(out) == 0 ? 0 : -1;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Do all servers show the same contenders? A follower can come to have data of its own
 * (ZOOKEEPER-4837, -5010): its clients wait behind a node that the leader does not have, or hold
 * beside one that only the leader has. Queues live, and a server that does not know yet that it
 * leads no more shows what was: so a node that one server shows and another one does not is only
 * the reason to ask each of the two for its own word and the leader's, in one session. This file
 * owns the sessions at each server. One thread; doctor.c calls it. */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "connect.h"
#include "describe.h"
#include "look.h"
#include "say.h"

enum { SERVERS_MAX = 32, SERVER_MS = 5000, TOLD_MAX = 5 /* nodes of one server */ };

struct node {
    const struct seen *lock;
    const struct zkl_entry *entry;
};

struct server {
    char name[SERVER_NAME_SIZE], servers[2 * SERVER_NAME_SIZE]; /* with the chroot */
    struct zkl_client *client;                                  /* NULL: it takes no session */
    struct look look;
    struct node *nodes; /* all contenders, sorted by path */
    size_t count;
    int code; /* 0; or why it is compared no more */
    int told;
};

struct comparison {
    const struct compare *compare;
    ensemble_fn tell;
    void *arg;
};

/* --- sessions ----------------------------------------------------------- */

static void open_server(struct compare *compare, const struct zkl_client_options *options,
                        const char *name)
{
    struct zkl_client_options one = *options;
    struct server *server = &compare->servers[compare->count++];
    *server = (struct server){0};
    strcpy(server->name, name);
    snprintf(server->servers, sizeof server->servers, "%s%s", name,
             options->servers + strcspn(options->servers, "/"));
    one.servers = server->servers;
    one.connect_timeout_ms = SERVER_MS;
    server->code = zkl_client_open(&server->client, &one);
}

int compare_open(struct compare *compare, struct settings *settings)
{
    struct tool_options options;
    int rc = tool_options(&options, settings);
    compare->servers = calloc(SERVERS_MAX, sizeof *compare->servers);
    if (rc == 0 && !compare->servers)
        rc = fail(EXIT_SYSTEM, "out of memory");
    const char *list = options.client.servers;
    char name[SERVER_NAME_SIZE];
    while (rc == 0 && compare->count < SERVERS_MAX && ensemble_next(&list, name))
        open_server(compare, &options.client, name);
    tool_options_fini(&options);
    return rc;
}

void compare_close(struct compare *compare)
{
    for (int i = 0; i < compare->count; i++) {
        free(compare->servers[i].nodes);
        look_free(&compare->servers[i].look);
        if (compare->servers[i].client)
            tool_disconnect(compare->servers[i].client);
    }
    free(compare->servers);
    *compare = (struct compare){0};
}

/* --- what each shows ---------------------------------------------------- */

static int by_path(const void *left, const void *right)
{
    const struct node *a = left, *b = right;
    return strcmp(a->entry->node_path, b->entry->node_path);
}

static size_t add_nodes(const struct seen *seen, struct node *nodes)
{
    size_t count = 0;
    for (size_t i = 0; seen->inside && i < seen->inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(seen->inside, i);
        if (e->role == ZKL_ENTRY_ROLE_FOREIGN)
            continue;
        if (nodes)
            nodes[count] = (struct node){seen, e};
        count++;
    }
    return count;
}

static void look_from(struct server *server, const char *path)
{
    size_t room = 0;
    if (server->code == 0)
        server->code = look_below(&server->look, server->client, path);
    for (size_t i = 0; i < server->look.count; i++)
        room += add_nodes(&server->look.all[i], NULL);
    server->nodes = calloc(room + 1, sizeof *server->nodes);
    if (server->code == 0 && !server->nodes)
        server->code = ZKL_ENOMEM;
    if (server->code != 0)
        return;
    for (size_t i = 0; i < server->look.count; i++)
        server->count += add_nodes(&server->look.all[i], &server->nodes[server->count]);
    qsort(server->nodes, server->count, sizeof *server->nodes, by_path);
}

static bool shows(const struct server *server, const struct node *node)
{
    return bsearch(node, server->nodes, server->count, sizeof *server->nodes, by_path) != NULL;
}

/* --- asking again ------------------------------------------------------- */

static void tell(const struct comparison *c, const struct server *server, const struct node *node,
                 enum ask_judgement judged)
{
    char owner[DESCRIBE_SIZE], text[4 * DESCRIBE_SIZE];
    bool is_ghost = judged == ASK_GHOST;
    snprintf(
        text, sizeof text,
        "%s %s the node %s of %s, which the leader %s: %s; stop %s, remove its data (version-2 "
        "of dataDir and dataLogDir), and start it again, one server at a time",
        server->name, is_ghost ? "shows" : "does not show", node->entry->node_path,
        describe_owner(node->entry, owner), is_ghost ? "does not have" : "has",
        is_ghost ? "clients of that server may wait behind it for ever"
                 : "clients of that server do not wait for it and may hold beside it",
        server->name);
    c->tell(c->arg, true, text);
}

/* Another server does not agree with this one about the node. */
static void judge(const struct comparison *c, struct server *server, const struct node *node)
{
    char text[SERVER_NAME_SIZE + 64];
    struct asker asker = {.client = server->client};
    if (server->code != 0 || server->told > TOLD_MAX)
        return;
    enum ask_judgement judged = ask_judge(&asker, node->entry->node_path);
    if (judged == ASK_UNDECIDED) {
        server->code = ZKL_EDISCONNECTED;
    } else if (judged != ASK_AGREES && server->told++ < TOLD_MAX) {
        tell(c, server, node, judged);
    } else if (judged != ASK_AGREES) {
        snprintf(text, sizeof text, "%s differs in more nodes than these", server->name);
        c->tell(c->arg, false, text);
    }
}

/* Is there another server that does not show it? */
static bool is_doubted(const struct compare *compare, const struct server *server,
                       const struct node *node)
{
    for (int i = 0; i < compare->count; i++) {
        const struct server *other = &compare->servers[i];
        if (other != server && other->code == 0 && !shows(other, node))
            return true;
    }
    return false;
}

/* Was it asked for already, as an earlier one of the others shows it too? */
static bool is_asked(const struct compare *compare, const struct server *server, int before,
                     const struct node *node)
{
    for (int i = 0; i < before; i++) {
        if (&compare->servers[i] != server && shows(&compare->servers[i], node))
            return true;
    }
    return false;
}

static void compare_one(const struct comparison *c, struct server *server)
{
    const struct compare *compare = c->compare;
    for (size_t i = 0; i < server->count; i++) {
        if (is_doubted(compare, server, &server->nodes[i]))
            judge(c, server, &server->nodes[i]);
    }
    for (int i = 0; i < compare->count; i++) {
        const struct server *other = &compare->servers[i];
        for (size_t j = 0; other != server && j < other->count; j++) {
            const struct node *node = &other->nodes[j];
            if (!shows(server, node) && !is_asked(compare, server, i, node))
                judge(c, server, node);
        }
    }
}

static void tell_failure(const struct comparison *c, const struct server *server)
{
    char text[SERVER_NAME_SIZE + 256];
    snprintf(text, sizeof text, "what %s shows was not compared to the end: %s", server->name,
             zkl_strerror(server->code));
    c->tell(c->arg, false, text);
}

void compare_servers(struct compare *compare, const char *path, ensemble_fn fn, void *arg)
{
    struct comparison c = {.compare = compare, .tell = fn, .arg = arg};
    for (int i = 0; compare->count > 1 && i < compare->count; i++)
        look_from(&compare->servers[i], path);
    for (int i = 0; i < compare->count; i++)
        compare_one(&c, &compare->servers[i]);
    for (int i = 0; compare->count > 1 && i < compare->count; i++) {
        if (compare->servers[i].code != 0)
            tell_failure(&c, &compare->servers[i]);
    }
}

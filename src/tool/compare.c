/* SPDX-License-Identifier: Apache-2.0
 *
 * Do all servers show the same contenders? A follower can come to have data of its own
 * (ZOOKEEPER-4837, -5010): its clients wait behind a node that the leader does not have, or hold
 * beside one that only the leader has. Queues live, so a difference counts only if one server shows a
 * node, another one does not, and the first still shows that very node, each behind a sync. This file
 * owns a session at each server. One thread; doctor.c calls it. */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect.h"
#include "describe.h"
#include "look.h"
#include "say.h"

enum { SERVERS_MAX = 32, SERVER_MS = 5000, TOLD_MAX = 20 };

struct node {
    const struct seen *lock;
    const struct zkl_entry *entry;
};

struct server {
    char name[SERVER_NAME_SIZE];
    struct zkl_client *client;
    struct look look;
    struct node *nodes; /* all contenders, sorted by path */
    size_t count;
    int code; /* 0; or why it is compared no more */
};

struct comparison {
    const char *leader;
    ensemble_fn tell;
    void *arg;
    int told;
};

/* --- sessions ----------------------------------------------------------- */

static void open_server(struct compare *compare, const struct zkl_client_options *options,
                        const char *name, const char *chroot)
{
    struct zkl_client_options one = *options;
    struct server *server = &compare->servers[compare->count];
    char servers[2 * SERVER_NAME_SIZE];
    snprintf(servers, sizeof servers, "%s%s", name, chroot);
    one.servers = servers;
    one.connect_timeout_ms = SERVER_MS;
    *server = (struct server){0};
    if (zkl_client_open(&server->client, &one) != 0)
        return; /* ensemble.c says which servers do not answer */
    strcpy(server->name, name);
    compare->count++;
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
        open_server(compare, &options.client, name,
                    options.client.servers + strcspn(options.client.servers, "/"));
    tool_options_fini(&options);
    return rc;
}

void compare_close(struct compare *compare)
{
    for (int i = 0; i < compare->count; i++) {
        free(compare->servers[i].nodes);
        look_free(&compare->servers[i].look);
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
    server->code = look_below(&server->look, server->client, path);
    for (size_t i = 0; i < server->look.count; i++)
        room += add_nodes(&server->look.all[i], NULL);
    server->nodes = calloc(room + 1, sizeof *server->nodes);
    if (!server->nodes)
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

/* --- looking again ------------------------------------------------------ */

enum sight { SIGHT_NONE, SIGHT_MISSING, SIGHT_SHOWN };

/* Does the server show this very node now? */
static enum sight ask(struct server *server, const struct node *node)
{
    const struct zkl_inspection *inside;
    server->code = zkl_inspect(server->client, node->lock->path, LOOK_MS, &inside);
    if (server->code != 0)
        return SIGHT_NONE;
    bool shown = look_again(inside, node->entry) != NULL;
    zkl_inspection_free(inside);
    return shown ? SIGHT_SHOWN : SIGHT_MISSING;
}

static void tell(struct comparison *c, const struct server *has, const struct server *lacks,
                 const struct node *node)
{
    char owner[DESCRIBE_SIZE], text[4 * DESCRIBE_SIZE];
    bool missing = strcmp(has->name, c->leader) == 0;
    const char *effect = missing ? "clients of the latter do not wait for it and may hold beside it"
                                 : "clients of the former may wait behind it for ever";
    const char *wrong = missing ? lacks->name : has->name;
    bool known = c->leader[0] != '\0';
    snprintf(text, sizeof text,
             "%s shows the node %s of %s, and %s%s does not have it: %s; stop %s, remove its data "
             "(version-2 of dataDir and dataLogDir), and start it again",
             has->name, node->entry->node_path, describe_owner(node->entry, owner), lacks->name,
             known && !missing ? ", which leads," : "", effect,
             known ? wrong : "the one of them that is not the leader");
    c->tell(c->arg, true, text);
    c->told++;
}

static void check(struct comparison *c, struct server *has, struct server *lacks,
                  const struct node *node)
{
    if (ask(has, node) == SIGHT_SHOWN && ask(lacks, node) == SIGHT_MISSING &&
        ask(has, node) == SIGHT_SHOWN)
        tell(c, has, lacks, node);
}

/* With a leader in the list the others need no comparison among themselves. */
static bool need_comparison(const struct comparison *c, const struct server *a,
                            const struct server *b)
{
    bool leads = strcmp(a->name, c->leader) == 0 || strcmp(b->name, c->leader) == 0;
    return a != b && (c->leader[0] == '\0' || leads);
}

static void compare_two(struct comparison *c, struct server *has, struct server *lacks)
{
    for (size_t i = 0; i < has->count && c->told < TOLD_MAX; i++) {
        if (has->code == 0 && lacks->code == 0 && !shows(lacks, &has->nodes[i]))
            check(c, has, lacks, &has->nodes[i]);
    }
}

static void tell_failure(const struct comparison *c, const struct server *server)
{
    char text[SERVER_NAME_SIZE + 256];
    snprintf(text, sizeof text, "what %s shows was not compared to the end: %s", server->name,
             zkl_strerror(server->code));
    c->tell(c->arg, false, text);
}

void compare_servers(struct compare *compare, const char *path, const char *leader, ensemble_fn fn,
                     void *arg)
{
    struct comparison c = {.leader = leader, .tell = fn, .arg = arg};
    for (int i = 0; compare->count > 1 && i < compare->count; i++)
        look_from(&compare->servers[i], path);
    for (int i = 0; i < compare->count; i++) {
        for (int j = 0; j < compare->count; j++) {
            struct server *has = &compare->servers[i], *lacks = &compare->servers[j];
            if (need_comparison(&c, has, lacks))
                compare_two(&c, has, lacks);
        }
    }
    for (int i = 0; i < compare->count; i++) {
        if (compare->servers[i].code != 0)
            tell_failure(&c, &compare->servers[i]);
    }
}

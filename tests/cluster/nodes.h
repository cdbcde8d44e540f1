/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes made by hand, and clients behind a proxy of their own. */
#ifndef ZKTEST_NODES_H
#define ZKTEST_NODES_H

#include "cluster.h"
#include "proxy_before.h"

/* "PATH/NAME". Static memory, good for some more calls. */
const char *below(const char *path, const char *name);
/* The raw session makes an ephemeral node with exactly that path, a client's, and its parent if
 * that is missing. Returns the node's czxid. */
uint64_t make_node(const char *node, const char *data);
/* A persistent one. */
void make_root(const char *path, const char *data);
void drop_node(const char *node);
enum { PERM_READ = 1, PERM_WRITE = 2, PERM_CREATE = 4, PERM_DELETE = 8 };
/* One in which nobody but the raw connection, an administrator's from now on, has these rights. */
const char *make_denied(const char *node, int denied, const char *data, int flags);
bool node_is_there(const char *node);
/* Does the server ask READ for exists? From 3.8.4 and 3.9.2 on (ZOOKEEPER-2590). */
bool exists_takes_read(void);
bool node_has_data(const char *node, const char *data);
/* What the calling thread holds, for the raw connection; ask: to release it. Static memory, good for some more calls. */
const char *node_of(struct zkl_mutex *mutex);
void ask_for(struct zkl_mutex *mutex);
/* Data watches on it, or on all nodes (NULL), of all sessions. */
int node_watches(const char *node);

/* A session that outlives a lost link of a test, and is back sooner than one of
 * SESSION_MS: libzookeeper waits for a sixtieth of the timeout before it tries the servers again. */
#define BRIEF_MS 6000
/* A new proxy before the server, and the options' clients go through it. */
struct proxy *world_proxy_for(struct zkl_client_options *options);
/* A connected client, and the new proxy between it and the server. */
struct zkl_client *world_client_through(struct proxy **proxy, int session_ms);
/* All requests but keepalives (also the lists that come each quarter of a timeout), pings and heartbeats. */
int64_t requests(struct proxy *proxy);
/* Lock and unlock n times. */
void cycle(struct zkl_mutex *mutex, int n);
/* A try for a lock whose nodes nobody is in must get it. A busy machine may need more than its 200 ms to ask for all of
 * them: then another one gets it. */
void check_try_gets(struct zkl_mutex *mutex);
/* From now on exists on a path with this part in it is answered by NOAUTH, as by a server that exists_takes_read(),
 * where READ is denied. part: stays valid as long as the proxy. */
void deny_exists(struct proxy *proxy, const char *part);

/* Watches of all kinds and sessions on the server. The other counts use "wchp", which knows data
 * watches only. */
int all_watches(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Private to zkserver.c: everything a server needs before it is started. Where java and the jars
 * are, its command line, its ports, zoo.cfg, and the folder they live in. */
#ifndef ZKLOCK_SERVERS_ZKCONFIG_H
#define ZKLOCK_SERVERS_ZKCONFIG_H

#include "zkserver.h"

#define PORTS_OF_NODE 3

struct zkc_plan {
    /* with the defaults filled in; its texts are borrowed, see zkc_make */
    struct zks_options options;
    char *dir;
    char *cfg_extra;
    char *node_extra[ZKS_NODES_MAX];
    char host[ZKS_NODES_MAX][16];
    char *home[ZKS_NODES_MAX];
    char *data[ZKS_NODES_MAX];
    char *log[ZKS_NODES_MAX];
    char **argv[ZKS_NODES_MAX];
    int client_port[ZKS_NODES_MAX];
    int quorum_port[ZKS_NODES_MAX];
    int route[ZKS_NODES_MAX][ZKS_NODES_MAX]; /* [from][to]: the quorum port as from knows it */
    int election_port[ZKS_NODES_MAX];
    /* All of them stay reserved while a server is down: another test would take the port of one that is to come back. */
    int reserved[PORTS_OF_NODE * ZKS_NODES_MAX];
    size_t n_reserved;
    int taken_port; /* which the caller asked for, and which is not to be had; or 0 */
    char address[ZKS_NODES_MAX][24];
    char connect[ZKS_NODES_MAX * 24];
};

/* The absolute path of java, and the class path; the caller must free them; NULL if it does not
 * want one. 0, or ZKS_MISSING and a sentence. */
int zkc_find_java(char **java, char *err, size_t size);
int zkc_find_jars(char **classpath, char *err, size_t size);

/* Fill a zeroed plan: names and command lines; nothing is made on disk. 0 or a zks_result;
 * zkc_free in either case. Nothing in options is kept. */
int zkc_make(struct zkc_plan *plan, const struct zks_options *options, char *err, size_t size);
void zkc_free(struct zkc_plan *plan);

/* Reserve ports that are free, and fill in addresses and connect string. 0 or -1. */
int zkc_choose_ports(struct zkc_plan *plan);
/* Make the nodes' folders, zoo.cfg and myid. Over those of an earlier try if need be. 0 or -1. */
int zkc_write_files(const struct zkc_plan *plan);
/* Remove a node's data, but not its number in the ensemble. 0 or -1. */
int zkc_wipe_data(const struct zkc_plan *plan, size_t node);
/* The end of a node's log; empty if there is none. */
void zkc_log_tail(const struct zkc_plan *plan, size_t node, char *buf, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The first holder: a process of its own, so that it can be stopped. What it and the test share. */
#ifndef ZKWINDOW_SEAT_H
#define ZKWINDOW_SEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SEATS_MAX 16

enum role {
    ROLE_IDLE,    /* idle for a while, then locks */
    ROLE_STOPPED, /* stopped for a while, then locks */
    ROLE_STANDING,
    ROLE_STOPPED_HOLDER, /* holds, and is stopped for a while */
    ROLE_LATE,           /* holds, and its completions come late for a while */
    ROLES
};

struct seat {
    /* of the test, before the process is there */
    char servers[128], path[64];
    int session_ms, tick_ms; /* tick_ms 0: not said */
    enum role role;
    int absent_ms; /* the while */
    /* of the test */
    pid_t pid;
    bool is_away;
    atomic_int block; /* completions wait from now until "go" is set */
    atomic_int go;
    atomic_int quit;
    /* of the process */
    atomic_int ready;              /* connected, and holds if it must do so from the start */
    atomic_llong granted_ns;       /* its lock returned; 0: not yet */
    atomic_llong asked_ns;         /* just before its lock was called */
    atomic_llong end_ns;           /* the latest end of its window that it ever saw */
    atomic_llong end_seen_ns;      /* when that was */
    atomic_llong session, link_ns; /* then: and when its link had begun */
    atomic_int timeout_ms;         /* then: negotiated */
    atomic_int rc;                 /* of its lock */
};

struct shared {
    struct seat seats[SEATS_MAX];
};

/* main of the process. */
int seat_main(struct seat *seat);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of TLS and SASL share: a folder with certificates, and a real server with them. */
#ifndef ZKTEST_SECURED_H
#define ZKTEST_SECURED_H

#include "cluster.h"

#define CONNECT_MS 20000
#define REFUSED_MS 3000          /* an open that must fail gives up after that */
#define BOUND_MS 30000           /* nothing takes longer, on a busy machine */
#define SECURED_SESSION_MS 12000 /* a handshake may take a third */

extern int tls_port;

/* Skip without java, openssl or netty-codec (77), else run the tests on a server, for test-tls with a port for TLS, with
 * what is in extra (of zoo.cfg) and jvm (options for java), both with %s for the folder; NULL: nothing. */
int secured_main(int argc, char **argv, const char *extra, const char *jvm);

/* "FOLDER/NAME". Static memory, good for some thirty names. */
const char *secured_file(const char *name);
/* From now on this is what the file has. */
void secured_copy(const char *from, const char *to);
void secured_write(const char *name, const char *text);
/* "127.0.0.1:PORT". Static memory, good for some more calls. */
const char *secured_address(int port);

/* Options for the port, with a connection waited for. */
struct zkl_client_options secured_options(int port);
/* With these files of the folder. */
struct zkl_client_options tls_options(int port, const char *ca, const char *certificate,
                                      const char *key);
/* The options must give a client that can lock and unlock a path. */
void check_works(const struct zkl_client_options *options);
/* The options must give no client within BOUND_MS, and the sentence must have the word. */
void check_refused(const struct zkl_client_options *options, int code, const char *word);
void lock_and_unlock(struct zkl_client *client, const char *path);

/* zklock with these arguments must end with the status, and say the words. */
void check_command(int status, const char *words, const char *arguments);

/* A zklock with a job that lasts until the test ends it. The job says "begun". The output of
 * both is written to a file. */
struct watched {
    pid_t pid;
    int input; /* its end is the job's */
};

/* True: the job goes on by now. */
struct watched watched_begin(const char *path);
/* The secret must be in no argument of it, its guard and its job, and not in the job's
 * environment. It must be in no other environment either, except zklock's own and its guard's if
 * it was put there. */
void watched_check(const struct watched *watched, const char *secret, bool put_there);
/* It must end well, and nowhere in what was said may be one of the secrets. */
void watched_end(struct watched *watched, const char *const secrets[], size_t n);

/* For a client's options: no line of the log, down to the smallest, may have one of the secrets. Calls fail the test. */
void watch_log(struct zkl_client_options *options, const char *const secrets[], size_t n);
/* How many lines there were, and none of them had one. */
int check_log(void);

#endif

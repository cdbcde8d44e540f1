/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of TLS and SASL share: a folder with certificates, and a real server with them. */
#ifndef ZKTEST_SECURED_H
#define ZKTEST_SECURED_H

#include <zklock/zklock.h>

#include "check.h"
#include "net.h"
#include "zkserver.h"

#define CONNECT_MS 20000
#define REFUSED_MS 3000  /* an open that is to fail gives up after that */
#define BOUND_MS 30000   /* nothing takes longer, on a busy machine */
#define SESSION_MS 12000 /* a handshake may take a third */

extern struct zks *server;
extern int tls_port;

/* Skip without java, openssl or netty-codec (77), else run the tests on a server, for the name "tls" with a port for TLS,
 * with what is in extra (of zoo.cfg) and
 * jvm (options for java), both with %s for the folder; NULL: nothing. */
int secured_main(int argc, char **argv, const char *name, const char *extra, const char *jvm,
                 const struct CMUnitTest *tests, size_t n);

/* "FOLDER/NAME". Static memory, good for some more calls. */
const char *secured_file(const char *name);
/* From now on this is what the file has. */
void secured_copy(const char *from, const char *to);
void secured_write(const char *name, const char *text);
/* "127.0.0.1:PORT". Likewise. */
const char *secured_address(int port);

/* Options for the port, with a connection waited for. */
struct zkl_client_options secured_options(int port);
/* With these files of the folder. */
struct zkl_client_options tls_options(int port, const char *ca, const char *certificate,
                                      const char *key);
/* A client must come of it, lock and unlock a path, and go. */
void check_works(const struct zkl_client_options *options);
struct zkl_client *must_open(const struct zkl_client_options *options);
/* No client must come of it, within BOUND_MS, and the sentence must have the word. */
void check_refused(const struct zkl_client_options *options, int code, const char *word);
void lock_and_unlock(struct zkl_client *client, const char *path);

#endif

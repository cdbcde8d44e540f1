/* SPDX-License-Identifier: Apache-2.0
 * TLS and SASL, if libzookeeper was built with them: the settings that protect a connection, and
 * handles that have them. A build of this library supports what the libzookeeper supported that it
 * was configured with. A build without both knows the options and refuses them. */
#ifndef ZKL_DRIVER_SECURE_H
#define ZKL_DRIVER_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At most one of both; its texts are its own. */
struct zkl_security {
    char *tls; /* "CA,CERTIFICATE,KEY,PASSPHRASE", as libzookeeper takes it; NULL: no TLS */
    char *sasl_mechanism; /* NULL: no SASL */
    char *sasl_user, *sasl_password_file, *sasl_service, *sasl_host;
};

struct zkl_tls_files {
    const char *ca, *certificate, *key,
        *passphrase; /* the last one is no file's name; may be NULL */
};

bool zkl_secure_has_tls(void);
bool zkl_secure_has_sasl(void);
void zkl_security_fini(struct zkl_security *security);

/* Around a fork, in the parent and in the child. */
void zkl_secure_before_fork(void);
void zkl_secure_after_fork(void);

struct zkl_driver;
/* With the mutex: end a handshake that takes too long, report a login that failed. Returns the time
 * of the next check; INT64_MAX: none needed. */
int64_t zkl_secure_watch(struct zkl_driver *d, int64_t now_mono_ns);
/* For TLS: is a low enough descriptor free? *lowest: the next one. */
bool zkl_secure_descriptors_do(int *lowest);
/* Can they be loaded? False: why says which one can't. Where there is TLS only. */
bool zkl_tls_files_load(const struct zkl_tls_files *files, char *why, size_t size);

#endif

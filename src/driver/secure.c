/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS and SASL, if libzookeeper was built with them: the settings that protect a connection, and
 * handles that have them. libzookeeper declares these calls only under macros that say so, so only
 * this file sets those. It owns the texts of the settings, but no handle. No lock, except where a
 * comment says so. handle.c opens handles by it; src/api/security.c asks it what is available. */
#ifdef ZKL_HAVE_TLS
#define HAVE_OPENSSL_H 1
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif
#ifdef ZKL_HAVE_SASL
#define HAVE_CYRUS_SASL_H 1
#endif
#include "handle.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include "login.h"
#include "trouble.h"

/* For its log libzookeeper would ask for the user's name, which can take long with a directory
 * service. */
#define FLAGS ZOO_NO_LOG_CLIENTENV

#define MS INT64_C(1000000)
/* minimum for a handshake, which may take a third of the session timeout */
#define HANDSHAKE_MIN_MS 1000
#define HANDSHAKE_MAX_MS 10000
#define CUT_MS 50
#define LOAD_AGAIN_MS 100
#define DESCRIPTORS_MADE 16 /* by libzookeeper and others while a handle is opened */

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void zkl_security_fini(struct zkl_security *security)
{
    wipe(security->tls);
    free(security->sasl_mechanism);
    free(security->sasl_user);
    free(security->sasl_password_file);
    free(security->sasl_service);
    free(security->sasl_host);
    *security = (struct zkl_security){0};
}

/* --- one for the process ---------------------------------------------------------------------- */

/* zookeeper_init_ssl cuts its text with strtok, which has one place for all threads, init_tls sets
 * the level of the log, and sasl_client_init does not expect a second thread: all three would mix up
 * two clients that are opened at the same time. */
static pthread_mutex_t init_mutex = PTHREAD_MUTEX_INITIALIZER;

/* A forked child has none of the threads that could unlock these, ours and that of trouble.c. */
void zkl_secure_before_fork(void)
{
    pthread_mutex_lock(&init_mutex);
    zkl_trouble_before_fork();
    zkl_io_before_fork();
}

void zkl_secure_after_fork(void)
{
    zkl_io_after_fork();
    zkl_trouble_after_fork();
    pthread_mutex_unlock(&init_mutex);
}

/* --- the log ----------------------------------------------------------------------------------- */

/* Why OpenSSL failed on this thread, which is where libzookeeper just did; or "". */
static const char *reason_of_tls(void)
{
    const char *reason = NULL;
#ifdef ZKL_HAVE_TLS
    unsigned long error = ERR_peek_error();
    reason = ERR_SYSTEM_ERROR(error) ? NULL : ERR_reason_error_string(error);
    ERR_clear_error();
#endif
    return reason ? reason : "";
}

/* A file that can't be loaded makes libzookeeper try again without a pause and without end. It
 * logs each time, on its I/O thread and without a lock. */
static void slow_down(const char *message)
{
    const char *said = zkl_trouble_said(message);
    if (strstr(said, "Failed to load ") == said ||
        strstr(said, "SSL_CTX_check_private_key ") == said)
        nanosleep(&(struct timespec){.tv_nsec = LOAD_AGAIN_MS * MS}, NULL);
}

/* libzookeeper calls it on the thread that has something to say. */
static void on_log(const char *message)
{
    slow_down(message);
    if (zkl_trouble_note(message, reason_of_tls))
        zkl_io_failed();
}

/* --- TLS ------------------------------------------------------------------------------------- */

#ifdef ZKL_HAVE_TLS

bool zkl_secure_has_tls(void)
{
    return true;
}

static bool fail_to_load(const char *what, const char *file, char *why, size_t size)
{
    unsigned long error = ERR_peek_error(); /* the first one is the cause */
    const char *reason = ERR_reason_error_string(error);
    if (ERR_SYSTEM_ERROR(error))
        reason = strerror(ERR_GET_REASON(error));
    snprintf(why, size, "%s \"%.256s\" cannot be loaded: %s", what, file,
             reason ? reason : "OpenSSL does not say why");
    ERR_clear_error();
    return false;
}

/* The calls of libzookeeper, at each connection. */
static bool load_all(SSL_CTX *ctx, const struct zkl_tls_files *files, char *why, size_t size)
{
    if (SSL_CTX_load_verify_locations(ctx, files->ca, NULL) != 1)
        return fail_to_load("tls_ca_file", files->ca, why, size);
    if (SSL_CTX_use_certificate_chain_file(ctx, files->certificate) != 1)
        return fail_to_load("tls_cert_file", files->certificate, why, size);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, (void *)files->passphrase);
    if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1)
        return fail_to_load("tls_key_file", files->key, why, size);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return fail_to_load("tls_key_file", files->key, why, size);
    return true;
}

/* Without a passphrase OpenSSL would ask at the terminal. */
static int no_passphrase(char *buf, int size, int writing, void *given)
{
    (void)writing;
    int length = given ? (int)strlen(given) : 0;
    if (length > size)
        return -1;
    memcpy(buf, given ? given : "", (size_t)length);
    return length;
}

/* By default OpenSSL frees all its memory when the process exits, which crashes libzookeeper's
 * threads that are using it. Only the first call of a process can prevent that, so a program that
 * uses OpenSSL itself decides. */
static void keep_at_exit(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

bool zkl_tls_files_load(const struct zkl_tls_files *files, char *why, size_t size)
{
    keep_at_exit();
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx) {
        snprintf(why, size, "OpenSSL is out of memory");
        return false;
    }
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    bool loaded = load_all(ctx, files, why, size);
    SSL_CTX_free(ctx);
    return loaded;
}

/* --- handshakes ------------------------------------------------------------------------------ */

/* libzookeeper's I/O thread waits for a handshake without a bound, and does nothing else: with a
 * server that accepts and stays silent it would wait for ever. Shutting the socket down ends that.
 * OpenSSL says on the I/O thread itself which socket that is, and until when. */
static int contexts = -1, handshakes = -1; /* OpenSSL's numbers for this use of it; -1: none */

static void on_info(const SSL *ssl, int where, int ret)
{
    (void)ret;
    if (where & SSL_CB_HANDSHAKE_DONE)
        zkl_io_handshake(-1);
    else if (where & SSL_CB_HANDSHAKE_START)
        SSL_set_ex_data((SSL *)ssl, handshakes, zkl_io_handshake(SSL_get_fd(ssl)));
}

/* libzookeeper frees it before it closes the socket. */
static void on_freed(void *ssl, void *io, CRYPTO_EX_DATA *data, int index, long number, void *arg)
{
    (void)ssl, (void)data, (void)index, (void)number, (void)arg;
    if (io)
        zkl_io_handshake_ends(io);
}

/* Each context of the process: those made on an I/O thread are libzookeeper's. */
static void on_context(void *context, void *io, CRYPTO_EX_DATA *data, int index, long number,
                       void *arg)
{
    (void)io, (void)data, (void)index, (void)number, (void)arg;
    if (zkl_io_handshake(-1))
        SSL_CTX_set_info_callback(context, on_info);
}

/* With the mutex. */
static void watch_handshakes(void)
{
    if (handshakes < 0)
        handshakes = SSL_get_ex_new_index(0, NULL, NULL, NULL, on_freed);
    if (handshakes >= 0 && contexts < 0)
        contexts = SSL_CTX_get_ex_new_index(0, NULL, on_context, NULL, NULL);
}

/* OpenSSL may outlive this library in a process that closes it. */
__attribute__((destructor)) static void stop_watching(void)
{
    if (contexts >= 0)
        CRYPTO_free_ex_index(CRYPTO_EX_INDEX_SSL_CTX, contexts);
    if (handshakes >= 0)
        CRYPTO_free_ex_index(CRYPTO_EX_INDEX_SSL, handshakes);
}

/* In no header. */
extern const int ZOO_SSL_CONNECTING_STATE;

static int64_t handshake_ms(const struct zkl_driver *d)
{
    int third_ms = d->core.session.timeout_ms / 3;
    return third_ms < HANDSHAKE_MIN_MS   ? HANDSHAKE_MIN_MS
           : third_ms > HANDSHAKE_MAX_MS ? HANDSHAKE_MAX_MS
                                         : third_ms;
}

/* In this state the socket is not connected yet, or the handshake is under way. That is ended after a
 * time, and libzookeeper tries the next server, with the same session. */
void zkl_secure_watch_handshake(const struct zkl_driver *d, struct zkl_handle *h,
                                int64_t now_mono_ns)
{
    if (zoo_state(h->zh) != ZOO_SSL_CONNECTING_STATE)
        h->handshake_mono_ns = 0;
    else if (h->handshake_mono_ns == 0)
        h->handshake_mono_ns = now_mono_ns;
    else if (now_mono_ns - h->handshake_mono_ns > handshake_ms(d) * MS && zkl_io_cut(&h->io))
        h->handshake_mono_ns = 0;
}

/* Ends handshakes while zookeeper_close, which has told the I/O thread to end, waits for it. */
struct cutter {
    struct zkl_io *io;
    atomic_bool closed;
};

static void *cutter_main(void *arg)
{
    struct cutter *cutter = arg;
    while (!atomic_load(&cutter->closed)) {
        zkl_io_cut(cutter->io);
        nanosleep(&(struct timespec){.tv_nsec = CUT_MS * MS}, NULL);
    }
    return NULL;
}

static int close_cutting(struct zkl_handle *h)
{
    struct cutter cutter = {.io = &h->io};
    pthread_t thread;
    bool cuts = zkl_thread_start(&thread, cutter_main, &cutter) == 0;
    if (!cuts)
        zkl_io_cut(&h->io); /* a further one may hold the end up */
    int rc = zookeeper_close(h->zh);
    atomic_store(&cutter.closed, true);
    if (cuts)
        pthread_join(thread, NULL);
    return rc;
}

int zkl_secure_close(struct zkl_handle *h)
{
    return h->driver->config.security.tls ? close_cutting(h) : zookeeper_close(h->zh);
}

/* For the handshake libzookeeper uses select, which writes out of bounds for a descriptor of
 * FD_SETSIZE or more. It makes a pipe and a socket, and the kernel gives the lowest numbers that
 * are free. */
bool zkl_secure_descriptors_do(int *lowest)
{
    *lowest = eventfd(0, EFD_CLOEXEC);
    if (*lowest >= 0)
        close(*lowest);
    return *lowest + DESCRIPTORS_MADE < FD_SETSIZE;
}

/* From zookeeper_log.h, which does not find zookeeper.h if that is in a folder of its own. */
extern ZooLogLevel logLevel;

/* zookeeper_init_ssl takes no callback for its log, and prints until it has one. The level silences
 * it as far as possible. The level is the process's, so it silences other handles for this moment,
 * too. With the mutex. */
static zhandle_t *init_tls(const struct zkl_security *security, const char *addresses,
                           watcher_fn watcher, int timeout_ms, void *context)
{
    watch_handshakes();
    ZooLogLevel level = logLevel;
    logLevel = (ZooLogLevel)0;
    zhandle_t *zh =
        zookeeper_init_ssl(addresses, security->tls, watcher, timeout_ms, NULL, context, FLAGS);
    int error = errno;
    if (zh)
        zoo_set_log_callback(zh, on_log);
    logLevel = level;
    errno = error;
    return zh;
}

#else

bool zkl_secure_has_tls(void)
{
    return false;
}

void zkl_secure_watch_handshake(const struct zkl_driver *d, struct zkl_handle *h,
                                int64_t now_mono_ns)
{
    (void)d;
    (void)h;
    (void)now_mono_ns;
}

int zkl_secure_close(struct zkl_handle *h)
{
    return zookeeper_close(h->zh);
}

bool zkl_secure_descriptors_do(int *lowest)
{
    *lowest = 0;
    return true;
}

bool zkl_tls_files_load(const struct zkl_tls_files *files, char *why, size_t size)
{
    (void)files;
    snprintf(why, size, "there is no TLS"); /* not reached: zkl_secure_has_tls is asked first */
    return false;
}

#endif

/* --- SASL ------------------------------------------------------------------------------------ */

#ifdef ZKL_HAVE_SASL

bool zkl_secure_has_sasl(void)
{
    return true;
}

/* With the mutex. */
static zhandle_t *init_sasl(struct zkl_handle *h, struct zkl_security *security,
                            const char *addresses, watcher_fn watcher, int timeout_ms)
{
    h->login = zkl_login_new(security);
    if (!h->login || sasl_client_init(NULL) != SASL_OK) {
        errno = ENOMEM;
        return NULL;
    }
    zoo_sasl_params_t params = {.service = security->sasl_service,
                                .host = security->sasl_host,
                                .mechlist = security->sasl_mechanism,
                                .callbacks = zkl_login_callbacks(h->login)};
    return zookeeper_init_sasl(addresses, watcher, timeout_ms, NULL, h, FLAGS, on_log, &params);
}

#else

bool zkl_secure_has_sasl(void)
{
    return false;
}

#endif

/* --- either, or none ------------------------------------------------------------------------- */

#if defined ZKL_HAVE_TLS || defined ZKL_HAVE_SASL
static zhandle_t *init_secured(struct zkl_handle *h, struct zkl_security *security,
                               const char *addresses, watcher_fn watcher, int timeout_ms)
{
    zhandle_t *zh = NULL;
    pthread_mutex_lock(&init_mutex);
#ifdef ZKL_HAVE_TLS
    if (security->tls)
        zh = init_tls(security, addresses, watcher, timeout_ms, h);
#endif
#ifdef ZKL_HAVE_SASL
    if (security->sasl_mechanism)
        zh = init_sasl(h, security, addresses, watcher, timeout_ms);
#endif
    int error = errno;
    pthread_mutex_unlock(&init_mutex);
    errno = error;
    return zh;
}
#endif

struct making {
    struct zkl_handle *handle;
    watcher_fn watcher;
};

static zhandle_t *make(void *arg)
{
    const struct making *making = arg;
    struct zkl_handle *h = making->handle;
    struct zkl_driver_config *config = &h->driver->config;
    errno = 0;
#if defined ZKL_HAVE_TLS || defined ZKL_HAVE_SASL
    if (config->security.tls || config->security.sasl_mechanism)
        return init_secured(h, &config->security, h->io.addresses, making->watcher,
                            config->session_timeout_ms);
#endif
    return zookeeper_init2(h->io.addresses, making->watcher, config->session_timeout_ms, NULL, h,
                           FLAGS, on_log);
}

zhandle_t *zkl_secure_init(struct zkl_handle *h, char *addresses, watcher_fn watcher)
{
    struct making making = {.handle = h, .watcher = watcher};
    return zkl_io_open(&h->io, addresses, make, &making);
}

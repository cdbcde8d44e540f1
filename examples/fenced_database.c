/* SPDX-License-Identifier: Apache-2.0 */
/* A row of SQLite refuses a late holder, by one UPDATE that compares tokens: a holder is stopped
 * after its last look at the lock, for longer than its session lives, while another one writes. */
#include <zklock/zklock.h>

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char make[] = "CREATE TABLE report (token INTEGER NOT NULL, author TEXT NOT NULL);"
                           "INSERT INTO report VALUES (0, 'nobody')";
static const char fenced[] = "UPDATE report SET token = ?1, author = ?2 WHERE token <= ?1";

static struct zkl_client *client;
static struct zkl_mutex *mutex;
static sqlite3 *db; /* opened after fork, like the client */

static int lock_and_open(const char *servers, const char *file, struct zkl_grant *grant)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = servers;
    options.session_timeout_ms = 4000;
    return zkl_client_open(&client, &options) ||
           zkl_mutex_new(&mutex, client, "/zklock/examples/database", NULL) ||
           zkl_mutex_acquire(mutex, NULL, grant) || sqlite3_open(file, &db) ||
           sqlite3_busy_timeout(db, 10000);
}

/* Returns the number of rows that were written; 0: the row has a larger token. */
static int write_row(const char *author, uint64_t token)
{
    sqlite3_stmt *update = NULL;
    int rows = -1;
    if (sqlite3_prepare_v2(db, fenced, -1, &update, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(update, 1, (sqlite3_int64)token) == SQLITE_OK &&
        sqlite3_bind_text(update, 2, author, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(update) == SQLITE_DONE)
        rows = sqlite3_changes(db);
    const char *told = rows ? "written" : "REFUSED by the database";
    printf("%s, token %llu: %s\n", author, (unsigned long long)token,
           rows < 0 ? sqlite3_errmsg(db) : told);
    sqlite3_finalize(update);
    return rows;
}

static int hold_and_write(const char *servers, const char *file, const char *author, int pause)
{
    struct zkl_grant grant = ZKL_GRANT_INIT;
    if (lock_and_open(servers, file, &grant))
        return -fprintf(stderr, "HOST:PORT, or ZKLOCK_SERVERS: %s\n", zkl_error_detail());
    if (pause)
        raise(SIGSTOP);
    return write_row(author, grant.token);
}

int main(int argc, char **argv)
{
    const char *servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS"), *tmp = getenv("TMPDIR");
    char file[4096];
    int status, failed;
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(file, sizeof file, "%s/fenced_database-XXXXXX", tmp ? tmp : "/tmp");
    failed = close(mkstemp(file)) || sqlite3_open(file, &db) ||
             sqlite3_exec(db, make, NULL, NULL, NULL) || sqlite3_close(db);
    db = NULL;
    pid_t child = failed ? -1 : fork();
    if (child == 0)
        return hold_and_write(servers, file, "the stopped holder", 1) != 0; /* it must be refused */
    failed = child < 0 || waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status) ||
             hold_and_write(servers, file, "the next holder", 0) != 1;
    if (child > 0 && kill(child, SIGCONT) == 0)
        failed = waitpid(child, &status, 0) != child || status != 0 || failed;
    failed = zkl_mutex_unlock(mutex) || zkl_mutex_free(mutex) || zkl_client_free(client) || failed;
    unlink(file);
    return sqlite3_close(db) || failed;
}

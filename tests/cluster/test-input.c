/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input: a code of its own for each kind, and a sentence that says what to do. */
#include "cluster.h"

#include <string.h>

/* Goal: a path that ZooKeeper's own rules refuse (Unicode beyond them, bytes that are no UTF-8) is
 * refused as a path, by zkl_mutex_new, before anything is asked of the server. */
static void paths_that_no_server_takes_are_refused_at_once(void **state)
{
    static const char *const paths[] = {"/c1-\xc2\x85",
                                        "/private-\xee\x80\x80",
                                        "/surrogate-\xed\xa0\x80",
                                        "/special-\xef\xbf\xbd",
                                        "/no-utf8-\xff",
                                        "/cut-\xc3",
                                        "/beyond-\xf0\x9f\x98\x80"};
    struct zkl_client *client = cluster_client();

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct zkl_mutex *mutex = NULL;
        check_num(zkl_mutex_new(&mutex, client, paths[i]), ==, ZKL_EBADPATH);
    }
    cluster_free(client, NULL);
}

static const struct CMUnitTest tests[] = {
    cluster_test(paths_that_no_server_takes_are_refused_at_once),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "input", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A peer for each language: c (zklock), j (Java, Curator), k (Python, Kazoo) and g (Go, go-zookeeper, with a mutex
 * alone and without a bound). Java and Go are compiled at the first start, into the build folder. Go need not be there;
 * without the others a test is skipped. */
#ifndef ZKCROWD_LANGUAGES_H
#define ZKCROWD_LANGUAGES_H

#include <stdbool.h>
#include <stddef.h>

#define LANGUAGES "cjkg"

/* False, and a sentence that names the package, if a peer can't run here. */
bool languages_available(char *why, size_t size);
/* Start all that do not run, and wait until they are connected. 0, or -1 and a sentence. */
int languages_start(const char *servers, const char *journal, const char *folder, char *why,
                    size_t size);
/* True: it takes part. Known once they were started. */
bool languages_have(char language);

#endif

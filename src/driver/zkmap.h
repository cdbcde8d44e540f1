/* SPDX-License-Identifier: Apache-2.0
 * Translates ZooKeeper's numbers into ours. They are variables in libzookeeper, so no switch can
 * name them. */
#ifndef ZKL_DRIVER_ZKMAP_H
#define ZKL_DRIVER_ZKMAP_H

#include "core/contender.h"

enum zkl_link_event { ZKL_LINK_UP, ZKL_LINK_DOWN, ZKL_LINK_EXPIRED, ZKL_LINK_AUTH_FAILED };

/* The result that a completion received. */
enum zkl_answer zkl_map_rc(int rc);
/* Was a completion called with it because a server answered a request that it had accepted, or
 * because the link broke or did not come? libzookeeper has others of its own, and a server some for
 * what it refused to look at. */
bool zkl_map_is_word(int rc);
/* Is it what libzookeeper says of a request that was out as its link ended, by whatever means but
 * silence? */
bool zkl_map_is_hang_up(int rc);
/* The result of a zoo_a* call: not OK means that nothing was sent. */
enum zkl_answer zkl_map_refusal(int rc);
enum zkl_link_event zkl_map_state(int state);

#endif

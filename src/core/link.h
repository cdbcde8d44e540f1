/* SPDX-License-Identifier: Apache-2.0
 * A link that came up, or a server that is asked again: which contenders continue, and in which
 * order. */
#ifndef ZKL_CORE_LINK_H
#define ZKL_CORE_LINK_H

#include "core.h"

/* The link is up: all that waited for that. */
void zkl_link_go_on(struct zkl_core *core);
/* A server refused something: every contender that still wants an answer asks again. */
void zkl_link_ask_again(struct zkl_core *core);

#endif

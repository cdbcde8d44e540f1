/* SPDX-License-Identifier: Apache-2.0 */
/* Client libraries from 3.5 on work. meson.build detects what those before 3.8 lack. This file has
 * the numbers that servers send all the same, and the substitutes for the rest. Include it behind
 * zookeeper.h. */
#ifndef ZKLOCK_DRIVER_OLDER_H
#define ZKLOCK_DRIVER_OLDER_H

#ifdef ZKL_NO_ZSSLCONNECTIONERROR
#define ZSSLCONNECTIONERROR (-15)
#endif
#ifdef ZKL_NO_ZSESSIONCLOSEDREQUIRESASLAUTH
#define ZSESSIONCLOSEDREQUIRESASLAUTH (-124)
#endif
#ifdef ZKL_NO_ZTHROTTLEDOP
#define ZTHROTTLEDOP (-127)
#endif

/* Before 3.5.6 nodes are made by two flags. */
#ifdef ZKL_NO_ZOO_EPHEMERAL_SEQUENTIAL
#define ZOO_PERSISTENT 0
#define ZOO_EPHEMERAL_SEQUENTIAL (ZOO_EPHEMERAL | ZOO_SEQUENCE)
#endif

/* Before 3.6 libzookeeper asks for the user's name, for its log, whatever the level. */
#ifndef ZOO_NO_LOG_CLIENTENV
#define ZOO_NO_LOG_CLIENTENV 0
#endif

/* Before 3.7 it reads the addresses, which are in digits, again before every wait. */
#ifdef ZKL_NO_RESOLUTION_DELAY
#define zoo_set_servers_resolution_delay(zh, ms) ((void)(zh))
#endif

#endif

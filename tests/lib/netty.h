/* SPDX-License-Identifier: Apache-2.0 */
/* A server with Netty, as TLS needs it. Debian's zookeeper.jar names all jars but one that it needs. */
#ifndef ZKTEST_NETTY_H
#define ZKTEST_NETTY_H

#define NETTY_JARS "/usr/share/java/"
#define NETTY_CODEC NETTY_JARS "netty-codec.jar"
/* For ZKS_CLASSPATH. */
#define NETTY_CLASSPATH NETTY_JARS "zookeeper.jar:" NETTY_JARS "slf4j-simple.jar:" NETTY_CODEC

#endif

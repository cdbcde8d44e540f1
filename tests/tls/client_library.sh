#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# client_library.sh [-s SANITIZER] FOLDER [COMPILER]: build ZooKeeper's client library with OpenSSL and Cyrus SASL in FOLDER
# (tests/run.sh's own), from Debian's source package, once: lib/libzookeeper_mt.so and include/zookeeper. Debian's own builds
# have neither, nor has one by another COMPILER, which is for another machine. Prints FOLDER. Exit status 77: it can't be had
# here, and why is printed; 1: it was not built.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
sanitize=''
[ "$1" != -s ] || { sanitize=-fsanitize=$2 && shift 2; }
folder=$1 compiler=${2:-}
mkdir -p "$folder" && cd "$folder" || exit 1
folder=$PWD

missing() # SENTENCE
{
    echo "$1"
    exit 77
}

generate() # the code of the messages
{
    mkdir -p generated &&
        (cd generated && java -cp /usr/share/java/zookeeper-jute.jar org.apache.jute.compiler.generated.Rcc -l c \
            "$1/zookeeper-jute/src/main/resources/zookeeper.jute")
}

# FIPS_mode has gone with OpenSSL 3.
compile() # SOURCE
{
    client=$1/zookeeper-client/zookeeper-client-c
    sed -i 's/FIPS_mode()/0/' "$client/src/zookeeper.c"
    mkdir -p lib include/zookeeper
    echo '#define PACKAGE_STRING "zookeeper"' >generated/config.h # the rest is said below
    cp "$client"/include/*.h generated/zookeeper.jute.h include/zookeeper/
    have='ARPA_INET_H NETDB_H NETINET_IN_H POLL STRING_H SYS_SOCKET_H SYS_TIME_H UNISTD_H'
    with=-lm
    [ -n "$compiler" ] || have="$have OPENSSL_H CYRUS_SASL_H" with='-lm -lssl -lcrypto -lsasl2'
    sources="$client/src/zookeeper.c $client/src/addrvec.c $client/src/recordio.c $client/src/mt_adaptor.c
        $client/src/hashtable/hashtable.c $client/src/hashtable/hashtable_itr.c generated/zookeeper.jute.c
        $(ls "$client"/src/zk_*.c)"
    [ -z "$compiler" ] || sources=$(echo "$sources" | grep -v zk_sasl)
    # shellcheck disable=SC2046,SC2086 # one word for each
    ${compiler:-${CC:-gcc}} -shared -fPIC -O1 -g -w -pthread $sanitize -D_GNU_SOURCE -DTHREADED $(printf -- '-DHAVE_%s=1 ' $have) \
        -I"$client/include" -I"$client/src" -Igenerated -Wl,-soname,libzookeeper_mt.so.2 -Wl,-z,defs \
        -o lib/libzookeeper_mt.so.2 $sources $with &&
        ln -sf libzookeeper_mt.so.2 lib/libzookeeper_mt.so
}

if [ -z "$compiler" ]; then
    [ -f /usr/include/openssl/ssl.h ] || missing "the package libssl-dev is not installed"
    [ -f /usr/include/sasl/sasl.h ] || missing "the package libsasl2-dev is not installed"
fi
if [ ! -f built ]; then
    sh "$here/../lib/debian_source.sh" "$folder" zookeeper || exit
    { generate "$folder/zookeeper" && compile "$folder/zookeeper"; } >build.log 2>&1 || {
        tail -n 30 build.log >&2
        exit 1
    }
    touch built
fi
echo "$folder"

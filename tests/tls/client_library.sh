#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# client_library.sh FOLDER: build ZooKeeper's client library with OpenSSL and Cyrus SASL in FOLDER (tests/run.sh's own),
# from Debian's source package, once: lib/libzookeeper_mt.so and include/zookeeper. Debian's own builds have neither. The
# package comes by a list of sources in FOLDER, the system's own stays as it is. Prints FOLDER. Exit status 77: it can't be
# had here, and why is printed; 1: it was not built.
set -u
folder=$1
mkdir -p "$folder" && cd "$folder" || exit 1
folder=$PWD

missing() # SENTENCE
{
    echo "$1"
    exit 77
}

apt()
{
    apt-get -q -y -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/sources" -o APT::Sandbox::User=root \
        -o Dir::State::Lists="$folder/lists" "$@"
}

# The system's own lists, of sources instead of binaries.
sources()
{
    mkdir -p sources lists/partial
    cat /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' >sources/debian.sources
    grep -hs '^deb .*debian' /etc/apt/sources.list | sed 's/^deb /deb-src /' >sources/debian.list
}

fetch()
{
    [ ! -d fetched ] || return 0
    sources
    rm -rf zookeeper[-_][0-9]*
    apt update && apt --only-source source zookeeper && mv zookeeper-[0-9]*/ fetched
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
    have=$(echo ARPA_INET_H NETDB_H NETINET_IN_H POLL STRING_H SYS_SOCKET_H SYS_TIME_H UNISTD_H OPENSSL_H CYRUS_SASL_H |
        sed 's/\([A-Z_]*\)/-DHAVE_\1=1/g')
    # shellcheck disable=SC2086 # one word for each
    ${CC:-gcc} -shared -fPIC -O1 -g -w -pthread -D_GNU_SOURCE -DTHREADED $have -I"$client/include" -I"$client/src" -Igenerated \
        -Wl,-soname,libzookeeper_mt.so.2 -Wl,-z,defs -o lib/libzookeeper_mt.so.2 "$client"/src/zookeeper.c \
        "$client"/src/zk_*.c "$client"/src/addrvec.c "$client"/src/recordio.c "$client"/src/mt_adaptor.c \
        "$client"/src/hashtable/hashtable.c "$client"/src/hashtable/hashtable_itr.c generated/zookeeper.jute.c -lssl -lcrypto -lsasl2 &&
        ln -sf libzookeeper_mt.so.2 lib/libzookeeper_mt.so
}

command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || missing "apt-get and dpkg-dev are not here"
[ -f /usr/include/openssl/ssl.h ] || missing "the package libssl-dev is not installed"
[ -f /usr/include/sasl/sasl.h ] || missing "the package libsasl2-dev is not installed"
if [ ! -f built ]; then
    fetch >fetch.log 2>&1 || missing "Debian's source package of zookeeper can't be had: $(tail -n 1 fetch.log)"
    { generate "$folder/fetched" && compile "$folder/fetched"; } >build.log 2>&1 || {
        tail -n 30 build.log >&2
        exit 1
    }
    touch built
fi
echo "$folder"

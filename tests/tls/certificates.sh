#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# certificates.sh FOLDER: make in FOLDER what the tests of TLS need, all of it worthless elsewhere: two CAs (ca, other), and
# of the first one a server's and a client's certificate with their keys, each a second time (server2), and out of date
# (server-expired, client-expired); a client's that may be no server's (client-only); a client's of the second CA
# (client-other); client.key with a passphrase; and the users of SASL.
set -eu
cd "$1"

authority() # NAME
{
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.pem" -days 2 -subj "/CN=$1" -addext basicConstraints=critical,CA:TRUE
}

certificate() # NAME CA END [USE]: END is of openssl ca, YYMMDDHHMMSSZ; USE the one that it may be put to
{
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
    mkdir -p "$2.db" && : >"$2.db/index" && echo 01 >"$2.db/serial"
    cat >"$2.cnf" <<END
[ca]
default_ca = this
[this]
database = $2.db/index
serial = $2.db/serial
new_certs_dir = $2.db
default_md = sha256
policy = any
rand_serial = yes
[any]
commonName = supplied
[use]
extendedKeyUsage = ${4:-}
END
    openssl ca -batch -notext -config "$2.cnf" -cert "$2.pem" -keyfile "$2.key" -in "$1.csr" -out "$1.pem" \
        -startdate 200101000000Z -enddate "$3" ${4:+-extensions use}
    cat "$1.pem" "$1.key" >"$1.both.pem"
}

later=$(date -u -d '+2 days' +%y%m%d%H%M%SZ)
authority ca
authority other
certificate server ca "$later"
certificate server2 ca "$later"
certificate server-other other "$later"
certificate server-expired ca 210101000000Z
certificate client ca "$later"
certificate client-only ca "$later" clientAuth
certificate client-other other "$later"
certificate client-expired ca 210101000000Z
openssl pkey -in client.key -aes128 -passout pass:sesame -out client-closed.key
echo sesame >passphrase
cat >jaas.conf <<END
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_bob="sesame"
    user_alice="rosebud";
};
END

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# certificates.sh FOLDER: make in FOLDER what the tests of TLS need, all of it worthless elsewhere: two CAs (ca, other), and
# of the first one a server's and a client's certificate with their keys, each a second time (server2), and out of date
# (server-expired, client-expired); a client's that may be no server's (client-only); a client's of the second CA
# (client-other); client.key with a passphrase; and the users of SASL.
set -eu
cd "$1"

# All of them begin in 2020: the clocks of clients in chaos are off by up to a year.
sign() # NAME CA END EXTENSION [options of openssl ca]: END is YYMMDDHHMMSSZ
{
    name=$1 ca=$2 end=$3 extension=$4
    shift 4
    mkdir -p "$ca.db" && : >"$ca.db/index" && echo 01 >"$ca.db/serial"
    cat >"$ca.cnf" <<END
[ca]
default_ca = this
[this]
database = $ca.db/index
serial = $ca.db/serial
new_certs_dir = $ca.db
default_md = sha256
policy = any
rand_serial = yes
[any]
commonName = supplied
[more]
$extension
END
    openssl ca -batch -notext -config "$ca.cnf" -keyfile "$ca.key" -in "$name.csr" -out "$name.pem" \
        -startdate 200101000000Z -enddate "$end" -extensions more "$@"
}

request() # NAME
{
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
}

authority() # NAME
{
    request "$1"
    sign "$1" "$1" "$later" 'basicConstraints = critical,CA:TRUE' -selfsign
}

certificate() # NAME CA END [USE]: USE is the one that it may be put to
{
    request "$1"
    sign "$1" "$2" "$3" "${4:+extendedKeyUsage = $4}" -cert "$2.pem"
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

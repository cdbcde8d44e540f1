#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# old.sh FOLDER: build the library of an old commit, and the peer of this suite with it, in FOLDER (tests/run.sh's
# own). Prints the peer's path. Exit status 77: it can't be had here, and why is printed; 1: it was not built.
set -u
# The first commit of the work that this suite is to hold together; the one place where it is named.
commit=00216caf828d5b18c17c3c6faa20a9b973b51ac3

cd "$(dirname "$0")/../.." || exit 1
here=tests/fleet crowd=tests/crowd folder=$1
old=$(sh tests/lib/old_library.sh "$folder" "$commit") || {
    status=$?
    echo "$old"
    exit $status
}
${CC:-gcc} -O1 -g -D_GNU_SOURCE -include $here/old_names.h -I "$old/source/include" -I tests/lib \
    -o "$folder/peer-old" $crowd/peer.c $crowd/handle.c $crowd/steps.c tests/lib/calls.c "$old/build/src/libzklock.a" \
    -lzookeeper_mt -lpthread >"$folder/old.log" 2>&1 || {
    cat "$folder/old.log" >&2
    exit 1
}
echo "$PWD/$folder/peer-old"

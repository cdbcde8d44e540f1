#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# old.sh FOLDER: build the library of an old commit, and the peer of this suite with it, in FOLDER (tests/run.sh's
# own). Prints the peer's path. Exit status 77: it can't be had here, and why is printed; 1: it was not built.
set -u
# The first commit of the work that this suite is to hold together; the one place where it is named.
commit=00216caf828d5b18c17c3c6faa20a9b973b51ac3

cd "$(dirname "$0")/../.." || exit 1
here=tests/fleet folder=$1 old=$1/$commit

# Of this checkout, not of another one that it lies in.
has_commit()
{
    [ -e .git ] && git cat-file -e "$commit^{commit}" 2>/dev/null
}

fetch()
{
    rm -rf "$old" && mkdir -p "$old/source" &&
        git archive --format=tar "$commit" | tar -x -C "$old/source" &&
        [ -f "$old/source/meson.build" ]
}

build()
{
    meson setup "$old/build" "$old/source" -Dc_args=-w -Dcpp_args=-w &&
        ninja -C "$old/build" src/libzklock.a
}

peer()
{
    ${CC:-gcc} -O1 -g -D_GNU_SOURCE -include $here/old_names.h -I "$old/source/include" -o "$folder/peer-old" \
        $here/peer.c $here/peer-handle.c "$old/build/src/libzklock.a" -lzookeeper_mt -lpthread
}

mkdir -p "$folder" || exit 1
if [ ! -f "$old/build/src/libzklock.a" ]; then
    if ! command -v git >/dev/null || ! has_commit; then
        echo "git, or commit $commit of a whole checkout, is not here"
        exit 77
    fi
    if ! { fetch && build; } >"$folder/old.log" 2>&1; then
        tail -n 20 "$folder/old.log" >&2
        rm -rf "$old"
        exit 1
    fi
fi
peer >"$folder/old.log" 2>&1 || {
    cat "$folder/old.log" >&2
    exit 1
}
echo "$PWD/$folder/peer-old"

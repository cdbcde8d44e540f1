#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# old_library.sh FOLDER REVISION: build the library of an old revision of this checkout in FOLDER, once. Prints the
# folder in which it is: source/ and build/. Exit status 77: it can't be had here, and why is printed; 1: it was not built.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=$1 revision=$2

# Of this checkout, not of another one that it lies in.
if ! [ -e .git ] || ! command -v git >/dev/null ||
    ! commit=$(git -c safe.directory='*' rev-parse --quiet --verify "$revision^{commit}" 2>/dev/null); then
    echo "git, or revision $revision of a whole checkout, is not here"
    exit 77
fi
old=$folder/$commit

fetch()
{
    rm -rf "$old" && mkdir -p "$old/source" &&
        git -c safe.directory='*' archive --format=tar "$commit" | tar -x -C "$old/source" &&
        [ -f "$old/source/meson.build" ]
}

# Its file has a version in its name, which differs from revision to revision.
shared()
{
    ninja -C "$old/build" -t targets all | sed -n 's/^\(src\/libzklock\.so\.[0-9.]*\): .*/\1/p'
}

build()
{
    meson setup "$old/build" "$old/source" -Dc_args=-w -Dcpp_args=-w &&
        ninja -C "$old/build" src/libzklock.a "$(shared)"
}

mkdir -p "$folder" || exit 1
if [ ! -f "$old/built" ]; then
    if ! { fetch && build && touch "$old/built"; } >"$folder/old.log" 2>&1; then
        tail -n 20 "$folder/old.log" >&2
        rm -rf "$old"
        exit 1
    fi
fi
echo "$old"

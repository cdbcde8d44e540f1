#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sources.sh COMPILER STANDARD ROOT BUILD
#
# Goal: the library builds with a newer standard than its own, as a program that takes its sources in may want. Method: each
# source file is compiled, without code.
set -u
compiler=$1 standard=$2 root=$3 build=$4
command -v "$compiler" >/dev/null 2>&1 || {
    echo "SKIP: $compiler is not installed"
    exit 77
}
"$compiler" -std="$standard" -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -DTHREADED -I"$root/src" -I"$root/include" \
    -I"$build/include" "$root"/src/core/*.c "$root"/src/api/*.c "$root"/src/driver/*.c "$root"/src/secret/*.c

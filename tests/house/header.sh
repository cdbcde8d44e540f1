#!/bin/sh
# header.sh COMPILER STANDARD INCLUDE_DIR NAME: zklock/NAME compiles by itself, twice included, without a
# warning, as a program of somebody else would include it.
set -eu
compiler=$1 standard=$2 include=$3 name=$4

if ! command -v "$compiler" >/dev/null; then
    echo "$compiler is not installed"
    exit 77
fi
case $standard in
c++*) language=c++ ;;
*) language=c ;;
esac
printf '#include <zklock/%s>\n#include <zklock/%s>\nint header_is_used;\n' "$name" "$name" |
    "$compiler" -x $language "-std=$standard" -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include" -

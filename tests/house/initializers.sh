#!/bin/sh
# initializers.sh COMPILER STANDARD INCLUDE_DIR: initializers.c compiles, as C or C++, and names each initializer there is.
set -eu
compiler=$1 standard=$2 include=$3
here=$(dirname "$0")
command -v "$compiler" >/dev/null || {
    echo "$compiler is not installed"
    exit 77
}
case $standard in
c++*) language=c++ ;;
*) language=c ;;
esac
for name in $(sed -n 's/^#define \(ZKL_[A-Z_]*_INIT\) .*/\1/p' "$include"/zklock/*.h); do
    grep -q "= {*$name[;,]" "$here/initializers.c" || {
        echo "initializers.c does not have $name"
        exit 1
    }
done
"$compiler" -x $language "-std=$standard" -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include" "$here/initializers.c"

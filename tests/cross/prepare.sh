#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# prepare.sh MACHINE FOLDER: what the tests need on another machine that its cross compiler does not have, cmocka and
# ZooKeeper's client library, from Debian's source packages, in FOLDER, once. Prints the name of a file for meson's
# --cross-file, to follow MACHINE.ini. Exit status 77: it can't be had here, and why is printed; 1: it was not built.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
compiler=$(sed -n "s/^c = '\(.*\)'/\1/p" "$here/$1.ini")
emulator=$(sed -n "s/^exe_wrapper = \['\([^']*\)'.*/\1/p" "$here/$1.ini")
mkdir -p "$2" && cd "$2" || exit 1

for program in "$compiler" "$emulator"; do
    command -v "$program" >/dev/null || {
        echo "$program is not installed"
        exit 77
    }
done

sh "$here/../tls/client_library.sh" "$PWD" "$compiler" >said || {
    status=$?
    cat said
    exit "$status"
}
if [ ! -f lib/libcmocka.so ]; then
    sh "$here/../lib/debian_source.sh" "$PWD" cmocka || exit
    have='INTTYPES_H MALLOC_H SETJMP_H SIGNAL_H STDINT_H STRINGS_H SYS_TIME_H TIME_H UNISTD_H STRUCT_TIMESPEC CLOCK_REALTIME
        GCC_THREAD_LOCAL_STORAGE'
    # shellcheck disable=SC2046,SC2086 # one word for each
    "$compiler" -shared -fPIC -O1 -g -w -D_GNU_SOURCE $(printf -- '-DHAVE_%s=1 ' $have) -Icmocka/include \
        -Wl,-soname,libcmocka.so.0 -o lib/libcmocka.so.0 cmocka/src/cmocka.c >cmocka.build.log 2>&1 || {
        tail -n 30 cmocka.build.log >&2
        exit 1
    }
    cp cmocka/include/*.h include/
    printf 'Name: cmocka\nDescription: tests\nVersion: %s\nLibs: -L%s -lcmocka\nCflags: -I%s\n' \
        "$(sed -n 's/^project(cmocka VERSION \([0-9.]*\).*/\1/p' cmocka/CMakeLists.txt)" "$PWD/lib" "$PWD/include" >lib/cmocka.pc
    ln -sf libcmocka.so.0 lib/libcmocka.so
fi
cat >libraries.ini <<EOF
[properties]
pkg_config_libdir = '$PWD/lib'

[built-in options]
c_args = ['-I$PWD/include']
c_link_args = ['-L$PWD/lib', '-Wl,-rpath,$PWD/lib']
EOF
echo "$PWD/libraries.ini"

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2016,SC2034,SC2086,SC2154
# For run.sh: the packages that a suite needs, installed by examples/setup.sh where they are missing.

# Suites: what they need beside the tools of all, and what is left out where it can't be had; "-": without it they fail.
needs='
compilers house fuzz clang-address clang-thread sanitize all: clang libclang-rt-dev llvm: clang
coverage: gcovr: -
house all: mandoc: mandoc
house all: clang-format: clang-format
house all: codespell: codespell
interop together linear long all: default-jdk-headless libcurator-recipes-java python3-kazoo: Curator and Kazoo
interop together linear long all: $(sh tests/lib/go.sh --packages): go-zookeeper
cluster together long all: python3-prometheus-client: a second reader of figures
chaos linear tls long all: iproute2: cuts between servers
examples together long all: libuv1-dev: the example with libuv
examples together long all: libsqlite3-dev: the example with SQLite
models all: spin: spin
proofs long: cbmc z3 kissat: cbmc
tls long: libssl-dev libsasl2-dev libsasl2-modules dpkg-dev openssl libnetty-java: TLS and SASL
debian long: debhelper dpkg-dev lintian debootstrap autopkgtest: the Debian packages
cross: qemu-user dpkg-dev: -
cross: gcc-i686-linux-gnu libc6-dev-i386-cross: i686
cross: gcc-s390x-linux-gnu libc6-dev-s390x-cross: s390x
cross: gcc-powerpc-linux-gnu libc6-dev-powerpc-cross: powerpc
distros: git debootstrap: debootstrap
package all: abigail-tools: abidiff
package all: cmake: cmake
package fleet long all: git: git: no tarball, and no old library
valgrind all: valgrind: valgrind
'

install() # SUITE: what it can't do without, then what it would skip
{
    if [ "$1" = ci ]; then
        install all && install distros
        return
    fi
    zkl_install_packages "$zkl_build_packages python3 libcmocka-dev g++" || return 1
    while IFS=: read -r suites_of packages without; do
        case " $suites_of " in
        *" $1 "*) ;;
        *) continue ;;
        esac
        eval "zkl_install_packages \"$packages\"" && continue
        [ "$without" != ' -' ] || return 1
        echo "going on without$without"
    done <<END
$needs
END
}

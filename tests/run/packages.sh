# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2086,SC2154
# For run.sh: the packages that a suite needs, installed by examples/setup.sh where they are missing.

install() # SUITE: what it can't do without, then what it would skip
{
    if [ "$1" = ci ]; then
        install all && install distros
        return
    fi
    zkl_install_packages "$zkl_build_packages python3 libcmocka-dev g++" || return 1
    case $1 in
    compilers | house | fuzz | clang-* | sanitize | all)
        zkl_install_packages "clang libclang-rt-dev llvm" || echo "going on without clang"
        ;;
    coverage) zkl_install_packages gcovr || return 1 ;;
    esac
    case $1 in
    house | all)
        zkl_install_packages mandoc || echo "going on without mandoc"
        zkl_install_packages clang-format || echo "going on without clang-format"
        zkl_install_packages codespell || echo "going on without codespell"
        ;;
    esac
    case $1 in
    interop | together | linear | long | all)
        zkl_install_packages "default-jdk-headless libcurator-recipes-java python3-kazoo" ||
            echo "going on without Curator and Kazoo"
        zkl_install_packages "$(sh tests/lib/go.sh --packages)" || echo "going on without go-zookeeper"
        ;;
    esac
    case $1 in
    cluster | together | long | all)
        zkl_install_packages python3-prometheus-client || echo "going on without a second reader of figures"
        ;;
    esac
    case $1 in
    chaos | linear | tls | long | all) zkl_install_packages iproute2 || echo "going on without cuts between servers" ;;
    esac
    case $1 in
    examples | together | long | all)
        zkl_install_packages libuv1-dev || echo "going on without the example with libuv"
        zkl_install_packages libsqlite3-dev || echo "going on without the example with SQLite"
        ;;
    esac
    case $1 in
    planted | mutants | linear | all) zkl_install_packages patch || return 1 ;;
    esac
    case $1 in
    models | all) zkl_install_packages spin || echo "going on without spin" ;;
    esac
    case $1 in
    proofs | long) zkl_install_packages "cbmc z3 kissat" || echo "going on without cbmc" ;;
    esac
    case $1 in
    tls | long)
        zkl_install_packages "libssl-dev libsasl2-dev libsasl2-modules dpkg-dev openssl libnetty-java" ||
            echo "going on without TLS and SASL"
        ;;
    esac
    case $1 in
    debian | long)
        zkl_install_packages "debhelper dpkg-dev lintian debootstrap autopkgtest" || echo "going on without the Debian packages"
        ;;
    esac
    case $1 in
    cross)
        zkl_install_packages "qemu-user dpkg-dev" || return 1
        for machine in i686:i386 s390x:s390x powerpc:powerpc; do
            zkl_install_packages "gcc-${machine%:*}-linux-gnu libc6-dev-${machine#*:}-cross" || echo "going on without $machine"
        done
        ;;
    esac
    case $1 in
    distros) zkl_install_packages "git debootstrap" || echo "going on without debootstrap" ;;
    esac
    case $1 in
    package | all)
        zkl_install_packages abigail-tools || echo "going on without abidiff"
        zkl_install_packages cmake || echo "going on without cmake"
        ;;
    esac
    case $1 in
    package | fleet | long | all) zkl_install_packages git || echo "going on without git: no tarball, and no old library" ;;
    esac
    case $1 in
    valgrind | all) zkl_install_packages valgrind || echo "going on without valgrind" ;;
    esac
}

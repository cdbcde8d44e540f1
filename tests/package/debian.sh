#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debian.sh build FOLDER          the Debian packages of the last commit, made in FOLDER as docs/packaging/README.md says, and
#                                 looked at by lintian
# debian.sh try FOLDER [SYSTEM]   somebody installs them in a bare Debian and does what that page says; autopkgtest runs the
#                                 packages' own tests; the packages are removed, and leave nothing
#
# SYSTEM is the folder of a bare Debian of this machine's release, which the test changes; without it debootstrap makes one
# below FOLDER. Exit status 77: it can't be had here, and why is printed.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
page=$root/docs/packaging/README.md
packages='libzklock1 libzklock-dev zklock zklock-dev'

skip() # SENTENCE
{
    echo "$1"
    exit 77
}

fail() # SENTENCE
{
    echo "debian: $1" >&2
    exit 1
}

needs() # PROGRAM PACKAGE
{
    command -v "$1" >/dev/null || skip "$1 (package $2) is not installed"
}

quietly() # LOG COMMAND...
{
    log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 60 "$log"
        fail "failed: $*"
    }
}

block() # NAME: the commands of that block of the page
{
    found=$(sed -n "/^\`\`\`sh $1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$page")
    [ -n "$found" ] || fail "$page has no block $1"
    echo "$found"
}

# --- build -----------------------------------------------------------------------------------------------------

# What is committed; without git, the sources as they are.
unpack() # FOLDER
{
    version=$(sed -n "s/^ *version: '\(.*\)',\$/\1/p" "$root/meson.build" | head -n 1)
    tree=$1/zklock-$version tarball=$1/zklock_$(echo "$version" | tr - '~').orig.tar
    if [ -e "$root/.git" ] && command -v git >/dev/null; then
        git -c safe.directory='*' -C "$root" archive --format=tar --prefix="zklock-$version/" HEAD >"$tarball"
    else
        tar -C "$root" --exclude='./build*' --exclude=./.git --transform "s,^\.,zklock-$version," -cf "$tarball" .
    fi
    tar -C "$1" -xf "$tarball"
    gzip -nf "$tarball"
}

build() # FOLDER
{
    needs dpkg-buildpackage dpkg-dev
    needs dh debhelper
    needs lintian lintian
    rm -rf "$1"
    mkdir -p "$1"
    unpack "$1"
    cd "$tree"
    export CCACHE_DISABLE=1 DEB_BUILD_OPTIONS="parallel=$(getconf _NPROCESSORS_ONLN)"
    echo "building the packages in $1"
    cp -r docs/packaging/debian .
    quietly "$1/source.log" dpkg-source --build .
    rm -r debian
    quietly "$1/build.log" sh -ec "$(block build)"
    grep -qE '^Ok: +[1-9]' "$1/build.log" || fail "no test was run as the packages were built: $1/build.log"
    cd "$1"
    as_root=''
    [ "$(id -u)" -ne 0 ] || as_root=--allow-root
    # lintian leaves files behind.
    mkdir "$1/tmp"
    TMPDIR=$1/tmp lintian $as_root --show-overrides --fail-on error,warning ./*.changes ./*.dsc || fail "lintian is not content"
    rm -rf "$1/tmp"
    for name in $packages; do
        [ "$(find . -name "${name}_*.deb" | wc -l)" -eq 1 ] || fail "there is no package $name"
    done
    echo "built: $(ls ./*.deb | tr '\n' ' ')"
}

# --- try -------------------------------------------------------------------------------------------------------

# Of this machine's release, from where this machine has its own.
bare() # FOLDER
{
    needs debootstrap debootstrap
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' "Codename: $release" | head -n 1)
    [ -n "$mirror" ] || skip "this machine knows no source of Debian's packages for a bare system"
    echo "making a bare Debian, $release"
    rm -rf --one-file-system "$1"
    quietly "$1.log" debootstrap --variant=minbase "$release" "$1" "$mirror"
    apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | sort -u \
        >"$1/etc/apt/sources.list"
    apt-config dump | grep '^Acquire::' >"$1/etc/apt/apt.conf.d/99outside" || :
    cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

# In mounts of its own, which end with it.
inside() # FOLDER SYSTEM
{
    for name in proc dev sys; do
        mountpoint -q "$2/$name" || mount --rbind "/$name" "$2/$name"
    done
    chrooted="env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive ZKL_TEST_RUN=${ZKL_TEST_RUN:-} chroot"
    here=$2/tmp/zklock
    rm -rf "$here"
    mkdir -p "$here/home"
    cp "$1"/*.deb "$here"
    chown 65534:65534 "$here/home"

    echo "installing the packages"
    $chrooted "$2" apt-get -q update >"$1/apt.log" 2>&1 || skip "no packages can be had in $2: $(tail -n 1 "$1/apt.log")"
    command=$(block install | sed 's/apt-get install/& -q -y --no-install-recommends/')
    quietly "$1/install.log" $chrooted "$2" sh -ec "cd /tmp/zklock && $command"
    echo "building and running the demo"
    $chrooted --userspec=65534:65534 "$2" sh -ec "cd /tmp/zklock/home && export TMPDIR=\$PWD && $(block use)
        wait \$!" >"$1/use.log" 2>&1 || {
        cat "$1/use.log"
        fail 'what the page says does not work'
    }
    tail -n 1 "$1/use.log"

    own_tests='the packages'"'"' own tests were not run: autopkgtest is not installed'
    if command -v autopkgtest >/dev/null; then
        own_tests=''
        echo "running the packages' own tests"
        rm -rf "$1/autopkgtest"
        # It takes TMPDIR for one of the other system, too.
        quietly "$1/autopkgtest.log" env TMPDIR=/tmp autopkgtest --no-built-binaries --output-dir "$1/autopkgtest" \
            "$1"/libzklock1_*.deb "$1"/libzklock-dev_*.deb "$1"/zklock_*.deb "$1"/zklock-dev_*.deb "$1"/zklock_*.dsc -- chroot "$2"
        cat "$1/autopkgtest/summary"
    fi

    quietly "$1/purge.log" $chrooted "$2" dpkg --purge $packages
    left=$(cd "$2" && find etc usr var/lib var/cache/zklock -xdev -name '*zklock*' 2>/dev/null | head -n 5)
    [ -z "$left" ] || fail "left behind by the packages: $left"
    rm -rf "$here"
    [ -z "$own_tests" ] || skip "$own_tests"
}

try() # FOLDER [SYSTEM]
{
    ls "$1"/zklock_*.deb >/dev/null 2>&1 || skip "the packages were not built"
    [ "$(id -u)" -eq 0 ] || skip "only root can try the packages in a bare system"
    unshare --mount true 2>/dev/null || skip "no mounts of its own can be had here for a bare system"
    system=${2:-}
    if [ -z "$system" ]; then
        system=$1/bare
        trap 'rm -rf --one-file-system "$system"' EXIT
        bare "$system"
    fi
    [ -x "$system/usr/bin/apt-get" ] || fail "$system is no bare Debian"
    unshare --mount --propagation private sh "$0" inside "$1" "$system"
}

case ${1:-} in
build | try | inside)
    [ $# -ge 2 ] || fail 'what folder?'
    mkdir -p "$2"
    folder=$(cd "$2" && pwd -P)
    step=$1
    shift 2
    "$step" "$folder" "$@"
    ;;
*) sed -n '3,/^set/s/^# \{0,1\}//p' "$0" ;;
esac

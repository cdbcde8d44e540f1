#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# release.sh RELEASE SUITE...: in a bare Debian (bookworm, trixie, sid) what is committed here is cloned, the demo is run as
# the README has it, and then `sh tests/run.sh SUITE` for each. Prints the versions of all that takes part, and a line for
# each suite; the whole output is in build-tests/distros/RELEASE.log. As root, with debootstrap or mmdebstrap, and a mirror.
# ZKL_DISTROS=FOLDER: the systems are FOLDER/RELEASE, made there if need be, and stay, with what was installed; else they are
# made in TMPDIR, and go. Exit status: 1 if anything failed, 77 and a sentence if there can be no such system here.
set -u
cd "$(dirname "$0")/../.." || exit 1
release=$1
shift
logs=$PWD/build-tests/distros log=$PWD/build-tests/distros/$release.log

missing() # SENTENCE
{
    echo "$1"
    exit 77
}

# The first that the system here knows; what else it knows of how to reach one is taken over.
mirror()
{
    apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | head -n 1
}

make_system() # FOLDER
{
    if command -v debootstrap; then
        debootstrap --variant=minbase "$release" "$1" "$(mirror)"
    else
        mmdebstrap --variant=minbase "$release" "$1" "$(mirror)"
    fi || return 1
    grep -l 'Acquire::' /etc/apt/apt.conf.d/* 2>/dev/null | xargs -r cp -t "$1/etc/apt/apt.conf.d"
    cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

# In namespaces of its own: no mount and no process is left, whatever becomes of this script.
inside() # COMMAND...
{
    unshare --mount --pid --fork --kill-child --propagation private sh -c '
        root=$1 && shift && mount --bind "$root" "$root" && mount -t proc proc "$root/proc" &&
            mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" &&
            exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"' \
        inside "$system" ZKL_TEST_LONG="${ZKL_TEST_LONG:-}" chroot "$system" sh -c 'cd /root/zklock && exec "$@"' sh "$@" </dev/null
}

# shellcheck disable=SC2016
versions='
version() { dpkg-query -W -f "\${Version}\n" "$@" 2>/dev/null | head -n 1 | sed "s/^[0-9]*://; s/[-+~].*//"; }
. /etc/os-release
echo "$PRETTY_NAME: client $(version libzookeeper-mt2 libzookeeper-mt2t64), server $(version libzookeeper-java), glibc $(version libc6)," \
    "gcc $(gcc -dumpfullversion), clang $(version clang), meson $(version meson), Curator $(version libcurator-recipes-java)," \
    "Kazoo $(version python3-kazoo), go-zookeeper $(version golang-github-go-zookeeper-zk-dev golang-github-samuel-go-zookeeper-dev)," \
    "Java $(version default-jre-headless)"
'

# The last line of run.sh.
row() # NAME SECONDS STATUS
{
    result=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log.part" | tail -n 1)
    [ -n "$result" ] || result=$([ "$3" -eq 0 ] && echo "passed" || echo "failed")
    printf '%-10s %5d s  %s\n' "$1" "$2" "$result"
    grep -a '^FAILED: ' "$log.part" | sort -u | sed 's/^/    /'
    cat "$log.part" >>"$log"
    rm -f "$log.part"
}

part() # NAME COMMAND...
{
    name=$1 began=$(date +%s)
    shift
    inside "$@" >"$log.part" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=1
    row "$name" $(($(date +%s) - began)) $status
}

[ "$(id -u)" -eq 0 ] || missing "a bare system can be made by root only"
command -v debootstrap >/dev/null || command -v mmdebstrap >/dev/null || missing "neither debootstrap nor mmdebstrap is here"
[ -n "$(mirror)" ] || missing "apt knows no mirror here"
unshare --mount --pid --fork true 2>/dev/null || missing "no namespaces can be made here"

folder=${ZKL_DISTROS:-}
[ -n "$folder" ] || {
    folder=$(mktemp -d) || exit 1
    trap 'rm -rf --one-file-system "$folder"' EXIT
    trap 'exit 1' INT TERM HUP
}
system=$folder/$release failed=0
mkdir -p "$logs" "$folder"
: >"$log"
if [ ! -f "$system/complete" ]; then
    rm -rf --one-file-system "$system"
    make_system "$system" >>"$log" 2>&1 || missing "no bare $release can be made: $(tail -n 1 "$log")"
    touch "$system/complete"
fi
rm -rf "$system/root/zklock"
git clone -q . "$system/root/zklock" || exit 1
# A mirror that can't be reached says nothing about the code.
echo 'Acquire::Retries "3";' >"$system/etc/apt/apt.conf.d/80retries"
inside apt-get -q update >>"$log" 2>&1 || missing "no packages of $release can be had: $(tail -n 1 "$log")"

echo "$release, $(git log -1 --format='%h, ')$(date +%Y-%m-%d)"
part demo sh examples/demo.sh
for suite in "$@"; do
    part "$suite" sh tests/run.sh "$suite"
done
inside sh -c "$versions"
exit $failed

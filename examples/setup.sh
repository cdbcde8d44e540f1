# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# For examples/demo.sh and tests/run.sh, which read this file in with zkl_root set to the source
# folder: install what is missing, and build.

zkl_build_packages='gcc libc6-dev meson ninja-build pkg-config libzookeeper-mt-dev libjansson-dev
    libzookeeper-java default-jre-headless'

zkl_say() {
    printf '%s\n' "$*"
}

zkl_complain() {
    printf '%s\n' "$*" >&2
}

# Whatever does the package's work will do, wherever it comes from; and a package that is installed.
zkl_have_package() {
    case $1 in
    gcc | meson | pkg-config) command -v "$1" ;;
    ninja-build) command -v ninja ;;
    default-jre-headless) command -v java ;;
    default-jdk-headless) command -v javac ;;
    libzookeeper-java) test -e /usr/share/java/zookeeper.jar ;;
    *) false ;;
    esac >/dev/null 2>&1 ||
        dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

# Run a command whose output is of interest only if it fails.
zkl_quietly() {
    if ! zkl_output=$("$@" 2>&1 </dev/null); then
        zkl_complain "$zkl_output"
        zkl_complain "failed: $*"
        return 1
    fi
}

zkl_apt_get() {
    zkl_quietly env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
}

# zkl_install_packages "NAME..."
zkl_install_packages() {
    zkl_missing=
    for zkl_package in $1; do
        zkl_have_package "$zkl_package" || zkl_missing="$zkl_missing $zkl_package"
    done
    [ -n "$zkl_missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        zkl_complain "missing, and no apt-get is here to install it (Debian's names):$zkl_missing"
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        zkl_complain "packages are missing; install them as root:" \
            "apt-get install --no-install-recommends$zkl_missing"
        return 1
    fi
    zkl_say "installing$zkl_missing (a minute or two) ..."
    # The Java packages fail to install where a minimal system has left this folder out.
    mkdir -p /usr/share/man/man1
    zkl_apt_get update || return 1
    # shellcheck disable=SC2086 # one word for each package
    zkl_apt_get install --no-install-recommends $zkl_missing || return 1
    # The Java package's set-up leaves this behind, empty.
    rmdir /tmp/hsperfdata_root 2>/dev/null || :
}

# True if the folder was made by meson from this source folder, and can still be used.
zkl_is_configured() {
    [ -f "$1/build.ninja" ] && [ -f "$1/meson-private/coredata.dat" ] &&
        grep -qsF "\"source\": \"$zkl_root\"" "$1/meson-info/meson-info.json" &&
        ninja -C "$1" build.ninja </dev/null >/dev/null 2>&1
}

zkl_setup() {
    zkl_dir=$1
    shift
    if zkl_is_configured "$zkl_dir"; then
        [ $# -eq 0 ] || zkl_quietly meson configure "$zkl_dir" "$@"
        return
    fi
    # Half configured, or of another source folder or another meson. Only what is meson's own goes.
    rm -rf "$zkl_dir/meson-private" "$zkl_dir/meson-info" "$zkl_dir/meson-logs" \
        "$zkl_dir/build.ninja" "$zkl_dir/.ninja_log" "$zkl_dir/.ninja_deps"
    zkl_quietly meson setup "$zkl_dir" "$zkl_root" "$@"
}

# zkl_is_built BUILDDIR TARGET...: true if zkl_build would have nothing to do.
zkl_is_built() {
    zkl_dir=$1
    shift
    [ -f "$zkl_dir/build.ninja" ] &&
        ninja -C "$zkl_dir" -n "$@" </dev/null 2>/dev/null | grep -q '^ninja: no work to do'
}

# zkl_build BUILDDIR "MESON-OPTION..." TARGET...: configure if need be, and build these alone.
zkl_build() {
    zkl_dir=$1 zkl_options=$2
    shift 2
    if ! mkdir -p "$zkl_dir" 2>/dev/null || ! [ -w "$zkl_dir" ]; then
        zkl_complain "cannot write to the folder $zkl_dir: build in a copy of the sources that is yours"
        return 1
    fi
    zkl_say "building in $zkl_dir ..."
    # shellcheck disable=SC2086 # one word for each option
    zkl_is_configured "$zkl_dir" || zkl_setup "$zkl_dir" $zkl_options || return 1
    # On a terminal ninja counts the steps, in one line.
    if [ -t 1 ]; then
        ninja -C "$zkl_dir" "$@" </dev/null
    else
        zkl_quietly ninja --quiet -C "$zkl_dir" "$@"
    fi
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2086,SC2154
# For run.sh: the builds, each in a folder of its own, and what of compilers works here.

# Builds in $out/NAME, configured anew as files come and go; only $targets, if there are some, or what the tests of the suites
# $built_of need.
build() # NAME COMPILER [meson options]
{
    dir=$out/$1 log=$out/$1.log cc=$2
    case $cc in
    clang*) cxx=clang++${cc#clang} ;;
    *) cxx=g++${cc#gcc} ;;
    esac
    shift 2
    echo "building $dir with $cc $*"
    mkdir -p "$out"
    if [ ! -f "$dir/build.ninja" ] ||
        ! run env CC="$cc" CXX="$cxx" $personality meson setup --reconfigure "$dir" "$@" >"$log" 2>&1; then
        rm -rf "$dir"
        run env CC="$cc" CXX="$cxx" $personality meson setup "$dir" "$@" >"$log" 2>&1 || {
            tail -n 30 "$log"
            return 1
        }
    fi
    if [ -z "$built_of" ]; then
        run ninja -C "$dir" $targets >"$log" 2>&1
    else
        run python3 tests/run/show.py "$dir" 90 ninja -C "$dir" $(python3 tests/run/targets.py "$dir" $built_of)
    fi || {
        grep -E -A 12 'FAILED|error|warning' "$log" | head -n 100
        return 1
    }
}

plain() # the build that is not instrumented; of one suite that runs alone, only what its tests need
{
    case $alone in
    unit | sim | explore | cluster | interop) built_of=$alone ;;
    esac
    [ "${plain_built:-}" = yes ] || build gcc gcc --werror || {
        fail "the build with gcc"
        built_of=''
        return 1
    }
    built_of='' plain_built=yes
}

# Can this compiler build with these sanitizers, and does the result run here? The thread sanitizers of
# gcc 12 and clang 14 want fewer random bits in addresses than newer kernels use.
sanitizer_works() # COMPILER SANITIZERS
{
    personality=''
    command -v "$1" >/dev/null && mkdir -p $out || return 1
    echo 'int main(void) { return 0; }' >$out/probe.c
    "$1" -fsanitize="$2" -o $out/probe $out/probe.c >/dev/null 2>&1 || return 1
    $out/probe >/dev/null 2>&1 && return
    personality="setarch $(uname -m) -R"
    $personality $out/probe >/dev/null 2>&1
}

sanitizers_of() # COMPILER-KIND
{
    case $1 in
    *-address) echo address,undefined ;;
    *) echo thread ;;
    esac
}

# Without optimisation in a third of the time, and what is run mostly waits. There gcc, but not clang, warns of
# what can't happen. clang's runtime is linked into programs only, so a library has undefined symbols.
build_sanitized() # COMPILER-KIND
{
    werror=--werror
    [ "${1%-*}" = clang ] || werror=''
    build "$1" "${1%-*}" $werror -Doptimization=0 -Db_sanitize="$(sanitizers_of "$1")" -Db_lundef=false
}

# The old library, from git, and its peer; what a suite with fleet in it needs first.
old_library()
{
    echo "building the library of an old commit"
    FLEET_OLD=$(run sh tests/fleet/old.sh "$out/fleet")
    case $? in
    0) export FLEET_OLD ;;
    77) why=$FLEET_OLD && return 77 ;;
    *) return 1 ;;
    esac
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh examples/demo.sh
#     Install what is missing (as root, on Debian or Ubuntu), build, and show four acts on a private
#     ZooKeeper server: without lock, with lock, with crashes, with a pause; then draw one. That takes
#     a minute on two cores.
# sh examples/demo.sh OPTION...
#     Run the contention demo with these options instead (--help lists them), on a private server unless
#     --servers is among them.
#
# Nothing but the folder build/ is left behind, with the picture in it whose path is printed.
set -eu
exec </dev/null

zkl_root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
# A folder of its own, as what is built in build/ by hand is optimized, and all of it.
build=$zkl_root/build/demo
private=tests/lib/zk-private
worker=examples/contention-worker
# shellcheck source=examples/setup.sh
. "$zkl_root/examples/setup.sh"

# On two cores that have nothing else to do.
say_how_long() {
    run='as long as the options say'
    [ $# -gt 0 ] || run='about 40 s for five acts'
    build_first='about 15 s to build, then '
    ! zkl_is_built "$build" "$private" "$worker" || build_first=
    zkl_say "this takes $build_first$run"
}

needs_server() {
    for option; do
        case $option in
        --servers | --servers=* | --help) return 1 ;;
        esac
    done
}

# Beside JSON the standard output has nothing else.
tell=1
for option; do
    [ "$option" != --json ] || tell=2
done
zkl_install_packages "$zkl_build_packages" >&$tell
say_how_long "$@" >&$tell
zkl_build "$build" '-Doptimization=0 -Ddebug=false -Dcpp=disabled -Dtests=short' "$private" "$worker" >&$tell

private=$build/$private
worker=$build/$worker

# From here on this shell is replaced, so that a signal meets the program that cleans up.
if [ $# -eq 0 ]; then
    zkl_say "starting a private ZooKeeper server ..."
    exec "$private" --quiet -- sh "$zkl_root/examples/acts.sh" "$worker" "$build-lines" \
        "$build-timeline.svg"
elif needs_server "$@"; then
    exec "$private" --quiet -- python3 "$zkl_root/examples/contention/contention.py" "$worker" "$@"
else
    exec python3 "$zkl_root/examples/contention/contention.py" "$worker" "$@"
fi

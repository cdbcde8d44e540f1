#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh examples/demo.sh
#     Install what is missing (as root, on Debian or Ubuntu), build, and show four acts on a private
#     ZooKeeper server: without lock, with lock, with crashes, with a pause; then draw one.
# sh examples/demo.sh OPTION...
#     Run contention with these options instead (--help lists them), on a private server unless
#     --servers is among them.
#
# Nothing but the folder build/ is left behind, with the picture in it whose path is printed.
set -eu
exec </dev/null

zkl_root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
build=$zkl_root/build
# shellcheck source=examples/setup.sh
. "$zkl_root/examples/setup.sh"

# Beside JSON the standard output has nothing else.
tell=1
for option; do
    [ "$option" != --json ] || tell=2
done
zkl_install_packages "$zkl_build_packages" >&$tell
zkl_build "$build" tests/lib/zk-private examples/contention >&$tell

private=$build/tests/lib/zk-private
contention=$build/examples/contention

needs_server() {
    for option; do
        case $option in
        --servers | --servers=* | --help) return 1 ;;
        esac
    done
}

# From here on this shell is replaced, so that a signal meets the program that cleans up.
if [ $# -eq 0 ]; then
    zkl_say "starting a private ZooKeeper server ..."
    exec "$private" --quiet -- sh "$zkl_root/examples/acts.sh" "$contention" "$build/demo-lines" \
        "$build/demo-timeline.svg"
elif needs_server "$@"; then
    exec "$private" --quiet -- "$contention" "$@"
else
    exec "$contention" "$@"
fi

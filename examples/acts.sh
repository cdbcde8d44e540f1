#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# acts.sh WORKER LINES PICTURE: the demo's acts, on the servers in ZKLOCK_SERVERS. LINES is a file of
# its own for the final line of each act; it is removed in the end. PICTURE is drawn by the last act.
set -eu
worker=$1
lines=$2
picture=$3
child=
failures=0

clean_up() {
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null || :
        wait "$child" || :
    fi
    rm -f "$lines"
}

trap 'clean_up' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# act TITLE SENTENCE OPTION...
act() {
    printf '\n=== %s\n%s\n\n' "$1" "$2"
    printf '%s: ' "$1" >>"$lines"
    shift 2
    # In the background, so that a signal to this shell is not kept waiting for the end of the act.
    python3 "$(dirname -- "$0")/contention/contention.py" "$worker" --summary "$lines" "$@" &
    child=$!
    if ! wait "$child"; then
        failures=$((failures + 1))
        printf 'this act did NOT end as it should\n'
        printf '(failed)\n' >>"$lines"
    fi
    child=
}

rm -f "$lines"

act 'Act 1, without lock' \
    'Processes read a counter, add one and write it back, with no lock between them: for 4 s.' \
    --no-lock --seconds 4

act 'Act 2, with lock' \
    'The same under a lock of zklock, first come, first served: for 6 s.' \
    --path /demo/lock --seconds 6

act 'Act 3, with crashes' \
    'Holders of the lock are killed; it comes free when their session times out (1 s): for 10 s.' \
    --path /demo/crashes --crash --seconds 10

act 'Act 4, with a pause' \
    'A holder is stopped until its session is over, then it goes on and tries to write: for 6 s.' \
    --path /demo/pause --pause --seconds 6

act 'Act 5, drawn' \
    'Crashes and pauses by turns, and each holder takes its time, so that there is something to see.' \
    --path /demo/drawn --crash --pause --processes 3 --work 60 --seconds 8 --svg "$picture"

printf '\n=== Summary\n'
cat "$lines"
if [ "$failures" -gt 0 ]; then
    printf 'demo: %d of 5 acts did not end as they should\n' "$failures"
    exit 1
fi
printf 'demo: without the lock updates are lost; with it none is, crashes and pauses included\n'
printf 'demo: who waited and who held, and when: %s\n' "$picture"

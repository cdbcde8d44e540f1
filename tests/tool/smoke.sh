#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# smoke.sh ZKLOCK VERSION, with ZKLOCK_SERVERS set.
# Goal: each command does what its name says. Method: one line for each, on a server of its own.
set -eu
zklock=$1
export XDG_CONFIG_HOME=/nonexistent HOME=/nonexistent

wrong() # SENTENCE
{
    echo "smoke.sh: $1" >&2
    exit 1
}

says() # WORD COMMAND...: what it prints has that word
{
    word=$1
    shift
    said=$("$@" 2>&1) || wrong "$* ended with $?: $said"
    case $said in
    *"$word"*) ;;
    *) wrong "$*: no \"$word\" in: $said" ;;
    esac
}

ends() # STATUS COMMAND...
{
    status=0 expected=$1
    shift
    "$@" >/dev/null 2>&1 || status=$?
    [ "$status" -eq "$expected" ] || wrong "$* ended with $status, not $expected"
}

says "zklock $2" "$zklock" --version
for command in run status revoke break forget doctor; do
    says "usage: zklock $command" "$zklock" "$command" --help
done
ends 64 "$zklock" no-such-command

ends 7 "$zklock" run /smoke/a -- sh -c 'exit 7'
ends 1 "$zklock" run /smoke/a -- "$zklock" run -n /smoke/a -- true
says 'waits 0' "$zklock" run --permits 2 /smoke/s -- "$zklock" run -n --permits 2 /smoke/s -- echo 'waits 0'
says "/smoke/a" "$zklock" run /smoke/a -- "$zklock" status /smoke
# shellcheck disable=SC2016
says asked "$zklock" run /smoke/a -- sh -c 'trap "" TERM && "$0" revoke /smoke/a' "$zklock"
# shellcheck disable=SC2016
ends 79 "$zklock" run /smoke/a -- sh -c '"$0" break --yes "$ZKLOCK_NODE" && exec sleep 60' "$zklock"
ends 0 "$zklock" run --not-within 3600 /smoke/job -- true
ends 0 "$zklock" forget /smoke/job
says '0 problems' "$zklock" doctor /smoke

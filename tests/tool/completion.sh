#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# completion.sh ZKLOCK ZKLOCK-DEV COMPLETION: what bash offers for the words of both.
# Goal: subcommands, options and the command after "--" are offered. Method: bash's own variables are set
# as it sets them itself.
zklock=$1 dev=$2
# shellcheck source=/dev/null
. "$3"
failed=0 program=$zklock completes=_zklock

offered() # WANTED WORD...: all of WANTED is offered for the last word
{
    local wanted=$1 one
    shift
    COMP_WORDS=("$program" "$@") COMP_CWORD=$#
    $completes
    for one in $wanted; do
        case " ${COMPREPLY[*]} " in
        *" $one "*) ;;
        *)
            echo "for \"$*\" there is no $one, only: ${COMPREPLY[*]}"
            failed=1
            ;;
        esac
    done
}

offered 'run status --help --version' ''
offered 'run' r
offered '-n --nonblock --permits --servers --session-timeout' run -
offered '--shared' run /a --sh
offered 'true' run /a -- tru
for command in $("$zklock" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    offered --help "$command" --h
done
[ "${COMP_WORDS[1]}" = "$command" ] || failed=1
program=$dev completes=_zklock_dev
offered '--nodes --help --version' --
complete -p zklock zklock-dev >/dev/null || failed=1
exit $failed

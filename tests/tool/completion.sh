#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# completion.sh ZKLOCK COMPLETION: what bash offers for zklock's words.
# Goal: subcommands, options and the command after "--" are offered. Method: bash's own variables are set
# as it sets them itself.
zklock=$1
# shellcheck source=/dev/null
. "$2"
failed=0

offered() # WANTED WORD...: all of WANTED is offered for the last word
{
    local wanted=$1 one
    shift
    COMP_WORDS=("$zklock" "$@") COMP_CWORD=$#
    _zklock
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
complete -p zklock >/dev/null || failed=1
exit $failed

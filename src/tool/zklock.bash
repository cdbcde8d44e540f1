# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion for bash, of the words of zklock: the subcommands, the options of each as its --help lists them, and
# behind "--" the words of the command that zklock run is to run; and of those of zklock-dev.

_zklock_words() # ARGUMENT...: the options in what zklock prints
{
    "$zklock" "$@" --help 2>/dev/null | grep -oE -- '(^|[ ,[])--?[a-zA-Z][a-z-]*' | tr -d ' ,['
}

_zklock()
{
    local zklock=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "--help --version
            $("$zklock" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')" -- "$word")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" = -- ] || continue
        if declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif [ $((i + 1)) -eq "$COMP_CWORD" ]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$word")
        fi
        return
    done
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_zklock_words "${COMP_WORDS[1]}")" -- "$word")
    fi
}

_zklock_dev()
{
    local zklock=${COMP_WORDS[0]}
    mapfile -t COMPREPLY < <(compgen -W "$(_zklock_words)" -- "${COMP_WORDS[COMP_CWORD]}")
}

complete -o bashdefault -o default -F _zklock zklock
complete -F _zklock_dev zklock-dev

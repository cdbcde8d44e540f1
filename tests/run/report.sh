# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2086,SC2154
# For run.sh: what passed, failed and was skipped, and how it is told.

passed=0 failed=0 skipped=0 failures='' times=''

remember() # LINES: said once more at the end, if there are any
{
    [ -z "$1" ] || failures="$failures$1
"
}

fail() # SENTENCE
{
    failed=$((failed + 1))
    remember "$suite: $1"
    echo "FAILED: $1"
}

skip() # SENTENCE
{
    skipped=$((skipped + 1))
    echo "SKIPPED: $1"
}

timed() # SUITE [options]: the suite, with its seconds and results
{
    echo
    echo "=== $1: $(echo "$suites" | awk -v s="$1" '$1 == s { $1 = $2 = ""; print substr($0, 3) }')"
    before="$1 $passed $failed $skipped $(date +%s)"
    suite "$@"
    set -- $before
    seconds=$(($(date +%s) - $5))
    budget=$(echo "$suites" | awk -v s="$1" '$1 == s { print $2 }')
    line=$(printf '%-14s %4d s of %4d  %3d passed, %d failed, %d skipped' "$1" $seconds "$budget" \
        $((passed - $2)) $((failed - $3)) $((skipped - $4)))
    [ $seconds -le "$budget" ] || line="$line, over its budget"
    echo "=== $line"
    times="$times$line
"
}

tell_left_out() # behind the suite quick
{
    cat <<'END'

Left out: most of the tests with real servers, the pages' programs, larger bounds and another compiler, which
`sh tests/run.sh all` runs in 16 minutes; sanitizers and valgrind, models, planted bugs, what the tarball installs, chaos
and the tests that are slow, which `sh tests/run.sh ci` adds. `sh tests/run.sh --help` has the name of each suite.
END
}

finish() # the end of every run; the last line is the plain one
{
    echo
    printf '%s' "$times"
    if [ -n "$failures" ]; then
        echo
        printf '%s' "$failures" | sed 's/^/FAILED: /'
    fi
    echo
    last="$passed passed, $failed failed"
    [ $skipped -eq 0 ] || last="$last, $skipped skipped"
    echo "$last"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
    exit
}

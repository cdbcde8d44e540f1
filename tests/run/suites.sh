# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2086,SC2154
# For run.sh: each suite, and how tests are run and swept up after.

tests() # BUILD_NAME [options of meson test]
{
    dir=$out/$1
    shift
    logs=$dir/meson-logs/run-$suite
    reports=$PWD/$out/reports
    rm -rf "$logs"* "$work" "$reports"
    mkdir -p "$work" "$reports"
    slower='-t 12' # a test that hangs ends too, and one on a busy machine is through before
    [ "${ZKL_TEST_LONG:-}" = 1 ] && slower='-t 30'

    run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" ZKL_SIM_SCHEDULES=$schedules \
        ASAN_OPTIONS="halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1:log_path=$reports/r" \
        LSAN_OPTIONS="print_suppressions=0:suppressions=$PWD/tests/lib/lsan.supp" \
        UBSAN_OPTIONS="halt_on_error=1:abort_on_error=1:print_stacktrace=1:log_path=$reports/r" \
        TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:log_path=$reports/r:suppressions=$PWD/tests/lib/tsan.supp" \
        ${built_of:+python3 tests/run/show.py "$out/$built_of" 80} \
        $personality meson test -C "$dir" --no-rebuild --num-processes "$at_once" --print-errorlogs --logbase "run-$suite" \
        "$@" $slower
    status=$?

    results=$(python3 tests/run/results.py "$logs*.json" $each) || results='0 0 0'
    echo "$results" | sed '$d'
    remember "$(echo "$results" | sed -n "s/^FAILED: /$suite: /p")"
    set -- $(echo "$results" | tail -n 1)
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    if [ $(($1 + $2 + $3)) -eq 0 ]; then
        fail "no test was run"
    elif [ "$status" -ne 0 ] && [ "$2" -eq 0 ]; then
        fail "meson test ended with status $status"
    fi

    # What a sanitizer said, if only in a process whose end nobody looked at.
    if [ -n "$(ls -A "$reports")" ]; then
        cat "$reports"/*
        [ "$2" -gt 0 ] || fail "a sanitizer reported something in a test that passed"
        remember "$(sed -n "s/^SUMMARY: /$suite: /p" "$reports"/* | sort -u | head -n 5)"
    fi
    sweep
    rm -rf "$reports"
}

# No process and no file of a test outlives its suite. Each of its processes has ZKL_TEST_RUN in the
# environment, this script has not.
sweep()
{
    tries=0
    while
        left=$(grep -lszx -e "ZKL_TEST_RUN=$run_id" /proc/[0-9]*/environ | tr -dc '0-9\n')
        [ -n "$left" ] && [ $tries -lt 30 ]
    do
        sleep 0.1
        tries=$((tries + 1))
    done
    for pid in $left; do
        fail "left behind: process $pid, $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c 1-100)"
        kill -KILL "$pid" 2>/dev/null
    done
    if [ -n "${ZKS_KEEP:-}" ]; then
        echo "the servers' files stay in $work until the next suite"
        return
    fi
    if [ -n "$(ls -A "$work" 2>/dev/null)" ]; then
        fail "files were left behind: $(ls -A "$work" | head -n 5 | tr '\n' ' ')"
    fi
    rm -rf "$work"
}

# More of them at once: they wait most of the time.
waiting() # tests ...
{
    at_once=$((at_once * 2))
    "$@"
    at_once=$((at_once / 2))
}

# What mostly waits, for servers and timeouts: in one go no long test keeps the processors idle at each suite's end.
together() # [options]
{
    plain || return
    each=each
    waiting tests gcc --suite docs --suite lib --suite cluster --suite tool --suite fault --suite window \
        --suite curator --suite interop --suite examples $rest $fast "$@"
    each=''
}

# Before each commit: of the tests those of meson's suite quick, and built only what they need.
quick() # [options]
{
    built_of=quick
    if build gcc gcc --werror; then
        passed=$((passed + 1))
        waiting tests gcc --suite quick "$@"
    else
        fail "the build with gcc"
    fi
    built_of='' rest='--no-suite quick'
}

# clang's warnings don't depend on how it builds: what clang-thread needs anyway will do, or what is built soonest.
compilers() # [COMPILER...]: those, with the unit tests, for compilers that are not the release's own
{
    if [ $# -gt 0 ]; then
        for cc in "$@"; do
            if ! command -v "$cc" >/dev/null; then
                fail "$cc is not installed"
            elif build "$cc" "$cc" --werror; then
                tests "$cc" --suite unit
            else
                fail "the build with $cc"
            fi
        done
        return
    fi
    if plain; then
        passed=$((passed + 1))
    fi
    if ! command -v clang >/dev/null; then
        skip "clang is not installed"
        return
    fi
    set -- build clang clang --werror -Doptimization=0
    if [ -n "$fast" ]; then
        built_of='unit examples'
    elif sanitizer_works clang thread; then
        set -- build_sanitized clang-thread
    fi
    if "$@"; then
        passed=$((passed + 1))
    else
        fail "the build with clang"
    fi
    personality='' built_of=''
}

sanitizer() # COMPILER-KIND [options]
{
    kind=$1 sanitizers=$(sanitizers_of "$1")
    shift
    if ! sanitizer_works "${kind%-*}" "$sanitizers"; then
        skip "${kind%-*} with -fsanitize=$sanitizers is not installed or does not run here"
    elif built_of=${brief:+unit sim cluster} && build_sanitized "$kind"; then
        built_of=''
        schedules=${brief:+1000}
        schedules=${schedules:-2000}
        case $kind in
        *-thread) tests "$kind" -t 4 $checked $unchecked_threads $brief "$@" ;;
        *) tests "$kind" -t 4 $checked $unchecked $brief "$@" ;;
        esac
    else
        fail "the build of $kind"
    fi
    built_of='' personality='' schedules=20000
}

by_itself() # COMMAND...: it is the test, with its files in $work
{
    rm -rf "$work"
    mkdir -p "$work"
    run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" "$@"
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skip "what is said above, of $*" ;;
    *) fail "$*" ;;
    esac
    sweep
}

demo() # [options]
{
    if [ $# -gt 0 ]; then
        by_itself sh examples/demo.sh "$@"
        return
    fi
    by_itself python3 tests/demo/script.py
    plain && tests gcc --suite demo
}

models() # [options]
{
    if ! command -v spin >/dev/null; then
        skip "spin is not installed"
        return
    fi
    by_itself python3 tests/models/run.py ${brief:+--short} "$@"
}

proofs() # [options]
{
    why=$(python3 tests/proofs/run.py --missing) || {
        skip "$why"
        return
    }
    by_itself python3 tests/proofs/run.py "$@"
}

fleet() # [options]
{
    plain || return
    old_library
    case $? in
    0) tests gcc --suite fleet --verbose "$@" ;;
    77) skip "$why" ;;
    *) fail "the build of the old library" ;;
    esac
}

# This library with a libzookeeper that has TLS and SASL, which Debian's has not. Its own stays as it is.
tls() # [address] [whole] [chaos [options] | options]
{
    built=tls how='' instrument='' of='--suite tls'
    targets='src/tool/zklock tests/tls/test-sasl tests/tls/test-tls tests/unit/test-security tests/chaos/chaos'
    if [ "${1:-}" = address ]; then
        shift
        built=tls-address how='-Db_sanitize=address,undefined -Db_lundef=false' instrument='-s address'
        if ! sanitizer_works gcc address,undefined; then
            skip "gcc with -fsanitize=address,undefined does not run here"
            return
        fi
    fi
    echo "building a client library with TLS and SASL"
    client=$(run sh tests/tls/client_library.sh $instrument "$out/$built-client")
    case $? in
    0) ;;
    77)
        skip "$client"
        return
        ;;
    *)
        fail "the build of the client library with TLS and SASL"
        return
        ;;
    esac
    if [ "${1:-}" = whole ]; then
        shift
        targets='' of='--suite tls --suite unit --suite cluster --suite fault'
    fi
    export CPPFLAGS="-I$client/include" LDFLAGS="-L$client/lib -Wl,-rpath,$client/lib"
    if build $built gcc -Doptimization=0 $how; then
        unset CPPFLAGS LDFLAGS
        if [ "${1:-}" = chaos ]; then
            shift
            by_itself $personality "$out/$built/tests/chaos/chaos" --tls "$@"
        else
            tests $built $of "$@"
        fi
    else
        fail "the build with TLS and SASL"
    fi
    unset CPPFLAGS LDFLAGS
    targets='' personality=''
}

debian() # [FOLDER]: a bare Debian, to be changed
{
    by_itself sh tests/package/debian.sh build "$out/debian"
    by_itself sh tests/package/debian.sh try "$out/debian" "$@"
}

# On other machines, with a libzookeeper and a cmocka for each; no servers.
cross() # [options]
{
    schedules=500
    for machine in tests/cross/*.ini; do
        machine=$(basename "$machine" .ini)
        libraries=$(run sh tests/cross/prepare.sh "$machine" "$out/cross-libraries/$machine")
        case $? in
        0) ;;
        77)
            skip "$machine: $libraries"
            continue
            ;;
        *)
            fail "the build of the libraries for $machine"
            continue
            ;;
        esac
        if build "cross-$machine" gcc --werror --cross-file "tests/cross/$machine.ini" --cross-file "$libraries" \
            -Dtests=short -Dtool=false -Ddev=false -Dexamples=false -Dcpp=disabled; then
            meson test -C "$out/cross-$machine" --list 2>/dev/null | grep -q 'unit / name' ||
                fail "cmocka of $machine was not found"
            tests "cross-$machine" -t 10 --suite unit --suite short "$@"
        else
            fail "the build for $machine"
        fi
    done
    schedules=20000
}

# Other releases, each in a folder that tests/distros/release.sh makes.
distros() # [--long] [RELEASE...]
{
    of='quick interop' releases=trixie
    if [ "${1:-}" = --long ]; then
        export ZKL_TEST_LONG=1
        of='compilers house unit sim explore lib cluster tool fault window curator interop chaos' releases='bookworm trixie sid'
        shift
    fi
    [ $# -gt 0 ] || set -- $releases
    for release in "$@"; do
        rm -rf "$work"
        mkdir -p "$work"
        run env TMPDIR="$work" sh tests/distros/release.sh "$release" $of
        case $? in
        0) passed=$((passed + 1)) ;;
        77) skip "$release: no bare system can be made here" ;;
        *) fail "$release, see build-tests/distros/$release.log" ;;
        esac
        sweep
    done
}

# The figures are shown. The program, which has the suite's name, bounds itself.
program() # SUITE [options]
{
    plain || return
    of=$1
    shift
    if [ $# -eq 0 ]; then
        tests gcc --suite "$of" --verbose ${brief:+--no-suite slow} $rest
        return
    fi
    words=$*
    case $of in
    soak) set -- python3 tests/soak/soak.py --build "$out/gcc" "$@" ;;
    *) set -- "$out/gcc/tests/$of/$of" "$@" ;;
    esac
    rm -rf "$work"
    mkdir -p "$work"
    run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" "$@"
    case $? in
    0) passed=$((passed + 1)) ;;
    2) usage "$of does not take: $words" ;;
    77) skip "$of needs java and ZooKeeper" ;;
    *) fail "$of $words" ;;
    esac
    sweep
}

# One target from its corpus and what earlier runs found. What it crashes with is kept.
fuzz_one() # NAME SECONDS
{
    found=$out/fuzz-found/$1 crashes=$out/fuzz-crashes log=$out/fuzz-$1.log program=$out/fuzz/tests/fuzz/fuzz-$1
    mkdir -p "$found" "$crashes"
    echo "$2 s of $program"
    if run env ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        $personality "$program" -max_total_time="$2" -print_final_stats=1 -timeout=20 -max_len=2000 \
        -len_control=0 -entropic=0 -artifact_prefix="$crashes/$1-" "$found" "tests/fuzz/corpus/$1" >"$log" 2>&1; then
        crashed=0 passed=$((passed + 1))
    else
        crashed=1
        grep -E 'not true|Assert|runtime error|ERROR|^ +#[0-9]+ .*/(src|tests)/' "$log" | head -n 20
        fail "$1 crashed; replay: $program $(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    figures="$figures, $1 ${runs:-0} runs in $2 s and $crashed crashes"
}

fuzz() # [--minutes M]
{
    seconds=10 figures=''
    case "$#${1:-}" in
    0) ;;
    2--minutes)
        case $2 in
        '' | *[!0-9]* | 0*) usage "fuzz --minutes takes a whole number" ;;
        esac
        seconds=$(($2 * 20))
        ;;
    *) usage "fuzz takes nothing but --minutes M" ;;
    esac
    probe='int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }'
    if ! sanitizer_works clang address,undefined ||
        ! echo "$probe" | clang -fsanitize=fuzzer -x c -o $out/probe - >/dev/null 2>&1; then
        skip "clang with -fsanitize=fuzzer (package libclang-rt-dev) is not installed or does not run here"
        return
    fi
    targets=fuzzers
    if build fuzz clang -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link; then
        for name in tests/fuzz/corpus/*; do
            fuzz_one "${name##*/}" $seconds
        done
        echo "fuzz${figures#,}"
    else
        fail "the build with clang and -fsanitize=fuzzer"
    fi
    targets='' personality=''
}

# A line that can't be reached says why in one of these forms, and does not count; nor do labels, as
# what they lead to does.
not_reached='/\* not reached: |assert\(!"'
label='^ *(default|case ZKL_[A-Z_]*_(KINDS|TYPES)):$'

covered() # FOLDER BOUND
{
    if ! run gcovr --add-tracefile $out/coverage.json --filter "$1/" --fail-under-line "$2" \
        --print-summary >$out/coverage.txt 2>$out/coverage.log; then
        fail "less than $2 % of the lines of $1 are reached"
    else
        passed=$((passed + 1))
    fi
    grep "^$1/" $out/coverage.txt
    figures="$figures, $1 $(sed -n 's/^lines: //p' $out/coverage.txt)"
}

# `sh tests/run.sh coverage` builds with gcc's `--coverage`, runs the suites unit, sim (2,000
# schedules), lib, cluster, fault and curator, and has gcovr count. It fails below all lines of
# src/core, and 92 % of src/driver and of src/api.
#
# A line that can't be reached is `assert(!"WHY")`, or ends with `/* not reached: WHY */`. It does
# not count, nor does the label before it, and it is listed. There are six, for an event to a
# contender that has ended, for one of no type to a session, and for what is the number of a list's
# kinds. Processes that a test kills, or that leave by `_exit`, write no counts.
coverage() # [options]
{
    figures='' schedules=2000
    if ! build coverage gcc --buildtype=debug -Db_coverage=true -Dc_args=-fprofile-update=atomic; then
        fail "the build with gcc and --coverage"
        return
    fi
    find $out/coverage -name '*.gcda' -delete
    tests coverage -t 4 --suite unit --suite sim --suite lib --suite cluster --suite fault --suite curator "$@"
    schedules=20000
    if ! run gcovr --root . --exclude-lines-by-pattern "$label|.*($not_reached)" --json $out/coverage.json \
        $out/coverage/src >$out/coverage.log 2>&1; then
        cat $out/coverage.log
        fail "gcovr"
        return
    fi
    covered src/core 100
    covered src/driver 92
    covered src/api 92
    echo "not reached, with a reason:"
    grep -rnE "$not_reached" src || echo none
    echo "coverage${figures#,}, $(grep -rE "$not_reached" src | wc -l) lines not counted"
}

long() # [options]
{
    export ZKL_TEST_LONG=1
    plain || return
    old_library || echo "going on without the old library"
    tests gcc $checked --suite window --suite interop --suite fleet --suite soak --suite chaos --suite examples "$@"
    proofs
    tls
    tls address whole
    debian
}

suite() # NAME [options]
{
    suite=$1
    shift
    case $suite in
    quick) quick "$@" ;;
    together) together "$@" ;;
    compilers) compilers "$@" ;;
    house | unit | docs | package | lib | cluster | tool | fault | window | curator | interop | examples) plain && tests gcc --suite "$suite" $rest "$@" ;;
    fuzz) fuzz "$@" ;;
    coverage) coverage "$@" ;;
    sim | explore | soak | chaos) program "$suite" "$@" ;;
    demo) demo "$@" ;;
    bench)
        [ $# -gt 0 ] || set -- --short
        by_itself sh tests/bench/run.sh "$@"
        ;;
    models) models "$@" ;;
    linear)
        if [ $# -eq 0 ]; then
            plain && tests gcc --suite linear --verbose
        else
            plain && by_itself python3 tests/linear/run.py "$@"
        fi
        ;;
    fleet) fleet "$@" ;;
    tls) tls "$@" ;;
    debian) debian "$@" ;;
    cross) cross "$@" ;;
    distros) distros "$@" ;;
    proofs) proofs "$@" ;;
    planted) by_itself python3 tests/planted/mutants.py --short ${brief:+--every 4} --planted ;;
    mutants) by_itself python3 tests/planted/mutants.py "$@" ;;
    gcc-* | clang-*) sanitizer "$suite" "$@" ;;
    valgrind)
        if command -v valgrind >/dev/null; then
            schedules=100 at_once=$(getconf _NPROCESSORS_ONLN)
            plain && tests gcc --setup valgrind $checked $unchecked --no-suite forks $brief ${brief:+--no-suite cluster} "$@"
        else
            skip "valgrind is not installed"
        fi
        ;;
    sanitize)
        for each in gcc-address gcc-thread clang-address clang-thread; do
            suite=$each
            sanitizer $each "$@"
        done
        suite=sanitize
        ;;
    long) long "$@" ;;
    esac
}

#!/bin/sh
# run.sh                    install what is missing, then run every suite but "sanitize" and "long", the
#                           slow tests only without sanitizers and valgrind
# run.sh SUITE [options]    one suite; the options go to `meson test`: test names, --verbose, --repeat=N
# run.sh --help             the suites, with what each may take
#
# The last line is "N passed, N failed", with ", N skipped" behind it if there were any: the results of
# meson's own logs, a test that a suite runs under several compilers counted for each. Exit status: 0 if
# nothing failed, else 1. ZKL_TEST_LONG=1 makes tests run their full length. Everything is built and
# left in build-tests/, which git ignores; nothing else stays.
set -u
cd "$(dirname "$0")/.." || exit 1

# Name, budget in seconds on two cores, what it does. The order is that of a run of everything.
suites='
compilers      60  gcc and clang build everything, each warning an error
house          20  the rules that can be read off sources and built files
unit           15  the pure parts, without a server
lib            60  the test library itself
cluster       120  the promises against real ZooKeeper servers
fault         180  the promises while servers, links, processes and memory fail
examples      120  the programs of examples/
demo           60  examples/demo.sh itself, with a short run
gcc-address   330  unit, cluster and fault under gcc with address and undefined behaviour sanitizers
gcc-thread    330  unit, cluster and fault under gcc with the thread sanitizer
clang-address 330  the same with clang
clang-thread  330  the same with clang
valgrind      600  unit, cluster and fault under valgrind
sanitize     1300  the four of gcc and clang with sanitizers, in one go
long         3600  unit, cluster, fault and examples at full length
'
not_in_all='sanitize long'
checked='--suite unit --suite cluster --suite fault' # what sanitizers and valgrind look at,
brief=''                                             # in a run of everything without the slow ones

passed=0 failed=0 skipped=0 failures='' times='' child='' personality='' suite=setup
out=build-tests work=$PWD/build-tests/tmp

fail() # SENTENCE
{
    failed=$((failed + 1))
    failures="$failures$suite: $1
"
    echo "FAILED: $1"
}

skip() # SENTENCE
{
    skipped=$((skipped + 1))
    echo "SKIPPED: $1"
}

# In the background, so that a signal to this script ends the command and its tests at once.
run() # COMMAND...
{
    "$@" &
    child=$!
    wait "$child"
    set -- $?
    child=''
    return "$1"
}

# --- packages and builds ---------------------------------------------------------------------------

install() # SUITE: what it can't do without, then what it would skip
{
    zkl_install_packages "$zkl_build_packages python3 libcmocka-dev g++" || return 1
    case $1 in
    compilers | house | clang-* | sanitize | all)
        zkl_install_packages "clang libclang-rt-dev llvm" || echo "going on without clang"
        ;;
    esac
    case $1 in
    valgrind | all) zkl_install_packages valgrind || echo "going on without valgrind" ;;
    esac
}

build() # NAME COMPILER [meson options]: builds in $out/NAME, configured anew as files come and go
{
    dir=$out/$1 log=$out/$1.log cc=$2 cxx=g++
    [ "$cc" = clang ] && cxx=clang++
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
    run ninja -C "$dir" >"$log" 2>&1 || {
        grep -E -A 12 'FAILED|error|warning' "$log" | head -n 100
        return 1
    }
}

plain() # the build that is not instrumented
{
    [ "${plain_built:-}" = yes ] || build gcc gcc --werror || {
        fail "the build with gcc"
        return 1
    }
    plain_built=yes
}

# --- tests -----------------------------------------------------------------------------------------

# Counts one of meson's logs: a line for what was not a success, then "PASSED FAILED SKIPPED".
count='
import glob, json, sys
total = {"passed": 0, "FAILED": 0, "SKIPPED": 0}
for path in glob.glob(sys.argv[1]):
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        word = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "SKIPPED"}.get(test["result"], "FAILED")
        total[word] += 1
        if word != "passed":
            text = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
            print(word, test["name"], test["result"], *text[-1:] if word == "SKIPPED" else [], sep=": ")
print(*total.values())
'

tests() # BUILD_NAME [options of meson test]
{
    dir=$out/$1
    shift
    logs=$dir/meson-logs/run-$suite
    reports=$PWD/$out/reports
    rm -rf "$logs"* "$work" "$reports"
    mkdir -p "$work" "$reports"
    slower=''
    [ "${ZKL_TEST_LONG:-}" = 1 ] && slower='-t 30'

    run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" \
        ASAN_OPTIONS="halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1:log_path=$reports/r" \
        UBSAN_OPTIONS="halt_on_error=1:abort_on_error=1:print_stacktrace=1:log_path=$reports/r" \
        TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:log_path=$reports/r:suppressions=$PWD/tests/lib/tsan.supp" \
        $personality meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "run-$suite" \
        "$@" $slower
    status=$?

    results=$(python3 -c "$count" "$logs*.json") || results='0 0 0'
    echo "$results" | sed '$d'
    new=$(echo "$results" | sed -n "s/^FAILED: /$suite: /p")
    [ -z "$new" ] || failures="$failures$new
"
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
    if [ -n "$(ls -A "$work" 2>/dev/null)" ]; then
        fail "files were left behind: $(ls -A "$work" | head -n 5 | tr '\n' ' ')"
    fi
    rm -rf "$work"
}

# --- suites ----------------------------------------------------------------------------------------

compilers()
{
    for compiler in gcc clang; do
        if ! command -v $compiler >/dev/null; then
            skip "$compiler is not installed"
        elif build $compiler $compiler --werror; then
            passed=$((passed + 1))
            [ $compiler = gcc ] && plain_built=yes
        else
            fail "the build with $compiler"
        fi
    done
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

sanitizer() # COMPILER-KIND [options]
{
    case $1 in
    *-address) sanitizers=address,undefined ;;
    *) sanitizers=thread ;;
    esac
    build=$1 compiler=${1%-*}
    shift
    if ! sanitizer_works "$compiler" $sanitizers; then
        skip "$compiler with -fsanitize=$sanitizers is not installed or does not run here"
    # clang's runtime is linked into programs only, so a library has undefined symbols.
    elif build "$build" "$compiler" -Db_sanitize=$sanitizers -Db_lundef=false; then
        tests "$build" -t 4 $checked $brief "$@"
    else
        fail "the build with $compiler and $sanitizers"
    fi
    personality=''
}

demo() # [options]
{
    [ $# -gt 0 ] || set -- --processes 2 --threads 2 --seconds 3
    rm -rf "$work"
    mkdir -p "$work"
    if run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" sh examples/demo.sh "$@"; then
        passed=$((passed + 1))
    else
        fail "sh examples/demo.sh $*"
    fi
    sweep
}

suite() # NAME [options]
{
    suite=$1
    shift
    case $suite in
    compilers) compilers ;;
    house | unit | lib | cluster | fault | examples) plain && tests gcc --suite "$suite" "$@" ;;
    demo) demo "$@" ;;
    gcc-* | clang-*) sanitizer "$suite" "$@" ;;
    valgrind)
        if command -v valgrind >/dev/null; then
            plain && tests gcc --setup valgrind $checked --no-suite forks $brief "$@"
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
    long) ZKL_TEST_LONG=1 && export ZKL_TEST_LONG && plain && tests gcc $checked --suite examples "$@" ;;
    esac
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

interrupted() # SIGNAL
{
    trap '' INT TERM HUP
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
    wait
    fail "interrupted by SIG$1"
    sweep
    finish
}

names=$(echo "$suites" | awk '{ print $1 }')
case ${1:-all} in
all) ;;
-h | --help)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    echo "$suites" | awk 'NF { printf "%-14s up to %4d s  ", $1, $2; $1 = $2 = ""; print substr($0, 3) }'
    exit
    ;;
*)
    echo "$names" | grep -qx -e "$1" || {
        echo "run.sh: no suite $1; there are:" $names >&2
        exit 2
    }
    ;;
esac

exec </dev/null
run_id=$$-$(date +%s)
for signal in INT TERM HUP; do
    # shellcheck disable=SC2064
    trap "interrupted $signal" $signal
done

# shellcheck disable=SC2034
zkl_root=$PWD
. examples/setup.sh
if ! install "${1:-all}"; then
    fail "packages are missing and were not installed"
    finish
fi

if [ "${1:-all}" = all ]; then
    brief='--no-suite slow'
    for name in $names; do
        case " $not_in_all " in
        *" $name "*) ;;
        *) timed "$name" ;;
        esac
    done
else
    timed "$@"
fi
finish

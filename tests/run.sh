#!/bin/sh
# run.sh                    install what is missing, then run every suite but "gcc-thread", "clang-address",
#                           "sanitize", "tls", "debian", "coverage", "proofs", "linear", "fleet", "mutants" and "long", and with
#                           sanitizers only unit, sim (that of threads: without sim) and cluster without its slow
#                           tests, with valgrind only unit and sim
# run.sh SUITE [options]    one suite; the options go to `meson test`: test names, --verbose, --repeat=N;
#                           those of sim, explore, demo, soak, chaos, linear, bench, models, proofs and mutants to the
#                           program: sim --schedules N --seed S, explore --full, chaos --minutes 30 --seed 1,
#                           linear --long, linear planted, soak --help, models --help
# run.sh fuzz --minutes M   that long for all targets together, instead of some seconds for each
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
compilers     150  gcc and clang build everything, each warning an error
house          40  the rules that can be read off sources and built files
unit           15  the pure parts, without a server
sim           120  20,000 random schedules of several processes on an ensemble in memory
explore        90  every schedule of two or three clients within small bounds, each state once; --full: larger ones
models        480  the rule that proves a session, against what servers do with sessions: every state within named bounds
fuzz           90  10 s of libFuzzer for each target of tests/fuzz
planted       120  the planted bugs still apply and build (in a run of everything, one in four is built), and what the simulation sees of them at once
docs           60  the commands and programs of README, docs and man pages run or compile
package       120  the tarball builds, its unit tests pass, and programs build with what it installs; those of other headers, and of the previous release, run
lib            60  the test library itself
cluster       180  the promises against real ZooKeeper servers
tool          120  the zklock command: children, signals, terminals, loss, cron jobs
fault         330  the promises while servers, links, processes and memory fail
window        150  what a holder may believe, aimed at the worst moments of three servers; leaders that are killed
curator        90  the scenarios that Apache Curator tests its lock recipes with
interop       150  C, Java (Curator) and Python (Kazoo) on one lock
fleet         240  the library of an old commit and this one on the same paths, with every option
soak          150  multi-locks and single locks of 8 processes on 6 paths at once
bench          60  tests/bench for some seconds: that it runs, and that its witness sees who does not lock
chaos         200  three servers and many clients under faults of servers, links, clients and clocks
linear        240  the calls of a short soak, chaos and interop, judged for linearizability by a judge of its own
examples      120  the programs of examples/
demo           90  examples/demo.sh itself, with a short run; its JSON, picture and live progress
gcc-address   360  unit, sim, cluster, fault, curator and tool under gcc with address and undefined behaviour sanitizers
gcc-thread    360  unit, sim, cluster, fault, curator and tool under gcc with the thread sanitizer
clang-address 360  the same with clang
clang-thread  360  the same with clang
valgrind      660  unit, sim, cluster, fault, curator and tool under valgrind
sanitize     1450  the four of gcc and clang with sanitizers, in one go
tls           240  TLS and SASL: the client library with both, from the source package of Debian, and real servers
debian        900  the Debian packages: built, looked at by lintian, installed and tried in a bare Debian; debian FOLDER: in this one
coverage      900  unit, sim, lib, cluster, fault and curator, and how many lines of src they reach
proofs       1800  names, queue, window and histogram of src/core by CBMC: every input within named bounds
mutants      3600  each planted bug, and 200 random changes of src/core: which suite catches it
long         3600  unit, sim, cluster, tool, fault, window, curator, fleet, soak and examples at full length, the proofs, tls and debian
'
# Of each sanitizer one compiler is enough for a run of everything; "sanitize" has all four.
not_in_all='gcc-thread clang-address sanitize tls debian coverage proofs linear fleet mutants long'
# What sanitizers and valgrind look at; in a run of everything less, to stay under half an hour.
checked='--suite unit --suite sim --suite cluster --suite fault --suite curator --suite tool'
# What shows nothing more there: who harms what in the simulation, which has one thread.
unchecked='--no-suite once' unchecked_threads='--no-suite once --no-suite sim'
brief='' schedules=20000 targets=''
# Most tests wait most of the time.
at_once=$(($(getconf _NPROCESSORS_ONLN) * 2))

passed=0 failed=0 skipped=0 failures='' times='' child='' personality='' suite=setup
out=build-tests work=$PWD/build-tests/tmp

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
    compilers | house | fuzz | clang-* | sanitize | all)
        zkl_install_packages "clang libclang-rt-dev llvm" || echo "going on without clang"
        ;;
    coverage) zkl_install_packages gcovr || return 1 ;;
    esac
    case $1 in
    house | all)
        zkl_install_packages mandoc || echo "going on without mandoc"
        zkl_install_packages clang-format || echo "going on without clang-format"
        ;;
    esac
    case $1 in
    interop | linear | long | all)
        zkl_install_packages "default-jdk-headless libcurator-recipes-java python3-kazoo" ||
            echo "going on without Curator and Kazoo"
        ;;
    esac
    case $1 in
    cluster | long | all)
        zkl_install_packages python3-prometheus-client || echo "going on without a second reader of figures"
        ;;
    esac
    case $1 in
    chaos | linear | all) zkl_install_packages iproute2 || echo "going on without cuts between servers" ;;
    esac
    case $1 in
    examples | long | all) zkl_install_packages libuv1-dev || echo "going on without the example with libuv" ;;
    esac
    case $1 in
    planted | mutants | linear | all) zkl_install_packages patch || return 1 ;;
    esac
    case $1 in
    models | all) zkl_install_packages spin || echo "going on without spin" ;;
    esac
    case $1 in
    proofs | long) zkl_install_packages "cbmc z3 kissat" || echo "going on without cbmc" ;;
    esac
    case $1 in
    tls | long)
        zkl_install_packages "libssl-dev libsasl2-dev libsasl2-modules dpkg-dev openssl libnetty-java" ||
            echo "going on without TLS and SASL"
        ;;
    esac
    case $1 in
    debian | long)
        zkl_install_packages "debhelper dpkg-dev lintian debootstrap autopkgtest" || echo "going on without the Debian packages"
        ;;
    esac
    case $1 in
    package | all)
        zkl_install_packages abigail-tools || echo "going on without abidiff"
        zkl_install_packages cmake || echo "going on without cmake"
        ;;
    esac
    case $1 in
    package | fleet | long | all) zkl_install_packages git || echo "going on without git: no tarball, and no old library" ;;
    esac
    case $1 in
    valgrind | all) zkl_install_packages valgrind || echo "going on without valgrind" ;;
    esac
}

# Builds in $out/NAME, configured anew as files come and go; only $targets, if there are some.
build() # NAME COMPILER [meson options]
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
    run ninja -C "$dir" $targets >"$log" 2>&1 || {
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

# Counts one of meson's logs: a line for what was not a success, with what it says of the reason, then
# "PASSED FAILED SKIPPED".
count='
import glob, json, sys
total = {"passed": 0, "FAILED": 0, "SKIPPED": 0}

def reasons(test, word):
    output, errors = ((test.get(k) or "").strip().splitlines() for k in ("stdout", "stderr"))
    if word == "SKIPPED":
        return (output or errors)[-1:]
    counts = ("[  PASSED  ]", "[  FAILED  ]")
    told = (line.split(" --- ")[-1].strip() for line in errors if not line.startswith(counts) and "TEST(S)" not in line)
    return [line for line in told if line][:4]

for path in glob.glob(sys.argv[1]):
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        word = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "SKIPPED"}.get(test["result"], "FAILED")
        total[word] += 1
        if word != "passed":
            print(word, test["name"], test["result"], *reasons(test, word), sep=": ")
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
    slower='-t 4' # a test that hangs ends too, and one on a busy machine is through before
    [ "${ZKL_TEST_LONG:-}" = 1 ] && slower='-t 30'

    run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" ZKL_SIM_SCHEDULES=$schedules \
        ASAN_OPTIONS="halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1:log_path=$reports/r" \
        LSAN_OPTIONS=print_suppressions=0 \
        UBSAN_OPTIONS="halt_on_error=1:abort_on_error=1:print_stacktrace=1:log_path=$reports/r" \
        TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:log_path=$reports/r:suppressions=$PWD/tests/lib/tsan.supp" \
        $personality meson test -C "$dir" --no-rebuild --num-processes "$at_once" --print-errorlogs --logbase "run-$suite" \
        "$@" $slower
    status=$?

    results=$(python3 -c "$count" "$logs*.json") || results='0 0 0'
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

# --- suites ----------------------------------------------------------------------------------------

# clang's warnings don't depend on how it builds: what clang-thread needs anyway will do.
compilers()
{
    if plain; then
        passed=$((passed + 1))
    fi
    if ! command -v clang >/dev/null; then
        skip "clang is not installed"
        return
    fi
    set -- build clang clang --werror
    if sanitizer_works clang thread; then
        set -- build_sanitized clang-thread
    fi
    if "$@"; then
        passed=$((passed + 1))
    else
        fail "the build with clang"
    fi
    personality=''
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

sanitizers_of() # COMPILER-KIND
{
    case $1 in
    *-address) echo address,undefined ;;
    *) echo thread ;;
    esac
}

# Without optimisation in a third of the time, and what is run mostly waits. There gcc, but not clang, warns of
# what can't happen. clang's runtime is linked into programs only, so a library has undefined symbols.
build_sanitized() # COMPILER-KIND
{
    werror=--werror
    [ "${1%-*}" = clang ] || werror=''
    build "$1" "${1%-*}" $werror -Doptimization=0 -Db_sanitize="$(sanitizers_of "$1")" -Db_lundef=false
}

sanitizer() # COMPILER-KIND [options]
{
    kind=$1 sanitizers=$(sanitizers_of "$1")
    shift
    if ! sanitizer_works "${kind%-*}" "$sanitizers"; then
        skip "${kind%-*} with -fsanitize=$sanitizers is not installed or does not run here"
    elif build_sanitized "$kind"; then
        schedules=${brief:+1000}
        schedules=${schedules:-2000}
        case $kind in
        *-thread) tests "$kind" -t 4 $checked $unchecked_threads $brief "$@" ;;
        *) tests "$kind" -t 4 $checked $unchecked $brief "$@" ;;
        esac
    else
        fail "the build of $kind"
    fi
    personality='' schedules=20000
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
    by_itself sh examples/demo.sh --processes 2 --threads 2 --seconds 3
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

# The old library, from git, and its peer; what a suite with fleet in it needs first.
old_library()
{
    echo "building the library of an old commit"
    FLEET_OLD=$(run sh tests/fleet/old.sh "$out/fleet")
    case $? in
    0) export FLEET_OLD ;;
    77) why=$FLEET_OLD && return 77 ;;
    *) return 1 ;;
    esac
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
tls() # [options]
{
    echo "building a client library with TLS and SASL"
    client=$(run sh tests/tls/client_library.sh "$out/tls-client")
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
    targets='src/tool/zklock tests/tls/test-sasl tests/tls/test-tls tests/unit/test-security'
    export CPPFLAGS="-I$client/include" LDFLAGS="-L$client/lib -Wl,-rpath,$client/lib"
    if build tls gcc -Doptimization=0; then
        unset CPPFLAGS LDFLAGS
        tests tls --suite tls "$@"
    else
        fail "the build with TLS and SASL"
    fi
    unset CPPFLAGS LDFLAGS
    targets=''
}

debian() # [FOLDER]: a bare Debian, to be changed
{
    by_itself sh tests/package/debian.sh build "$out/debian"
    by_itself sh tests/package/debian.sh try "$out/debian" "$@"
}

# The figures are shown. The program, which has the suite's name, bounds itself.
program() # SUITE [options]
{
    plain || return
    each=$1
    shift
    if [ $# -eq 0 ]; then
        tests gcc --suite "$each" --verbose ${brief:+--no-suite slow}
        return
    fi
    rm -rf "$work"
    mkdir -p "$work"
    run env TMPDIR="$work" ZKL_TEST_RUN="$run_id" "$out/gcc/tests/$each/$each" "$@"
    case $? in
    0) passed=$((passed + 1)) ;;
    2) usage "$each does not take: $*" ;;
    77) skip "$each needs java and ZooKeeper" ;;
    *) fail "$each $*" ;;
    esac
    sweep
}

usage() # SENTENCE
{
    echo "run.sh: $1" >&2
    exit 2
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

# A line that can't be reached says why in this form, and does not count.
not_reached='/\* not reached: '

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
    if ! run gcovr --root . --exclude-lines-by-pattern ".*$not_reached" --json $out/coverage.json \
        $out/coverage/src >$out/coverage.log 2>&1; then
        cat $out/coverage.log
        fail "gcovr"
        return
    fi
    covered src/core 100
    covered src/driver 92
    covered src/api 92
    echo "not reached, with a reason:"
    grep -rn "$not_reached" src || echo none
    echo "coverage${figures#,}, $(grep -r "$not_reached" src | wc -l) lines not counted"
}

long() # [options]
{
    export ZKL_TEST_LONG=1
    plain || return
    old_library || echo "going on without the old library"
    tests gcc $checked --suite window --suite interop --suite fleet --suite soak --suite examples "$@"
    proofs
    tls
    debian
}

suite() # NAME [options]
{
    suite=$1
    shift
    case $suite in
    compilers) compilers ;;
    house | unit | docs | package | lib | cluster | tool | fault | window | curator | interop | examples) plain && tests gcc --suite "$suite" "$@" ;;
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
# Two at once would clear away each other's files.
if mkdir -p $out 2>/dev/null && touch $out/lock 2>/dev/null && exec 9>>$out/lock && ! flock -n 9; then
    echo "run.sh: another run is at work in $PWD/$out: wait until it has ended, or run this one in a copy of the sources" >&2
    exit 2
fi
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
    brief='--no-suite slow --no-suite curator --no-suite fault --no-suite tool'
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

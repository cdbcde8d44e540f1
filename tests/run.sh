#!/bin/sh
# run.sh                    what a change is tried with before it is committed: the suite "quick", in three minutes
# run.sh all                install what is missing, then what finds most in 16 minutes: quick, both compilers, house,
#                           sim, explore and together without its slow tests. What quick has run is not run again
# run.sh ci                 that with the slow tests, models, fuzz, planted, package, soak, bench, chaos, demo, the short form
#                           of distros, and under two sanitizers and valgrind: with sanitizers only unit, sim (that of
#                           threads: without sim) and cluster without its slow tests, with valgrind only unit and sim
# run.sh SUITE [options]    one suite; the options go to `meson test`: test names, --verbose, --repeat=N;
#                           those of sim, explore, demo, soak, chaos, linear, bench, models, proofs and mutants to the
#                           program: sim --schedules N --seed S, explore --full, chaos --minutes 30 --seed 1,
#                           linear --long, linear planted, soak --help, models --help; tls chaos --minutes 5, and
#                           with tls address both under the address sanitizer, which looks into libzookeeper, too;
#                           tls address whole: unit, cluster and fault as well
# run.sh compilers CC...    unit, built with each of these compilers, which are installed (gcc-13, clang-18)
# run.sh fuzz --minutes M   that long for all targets together, instead of some seconds for each
# run.sh --help             the suites, with what each may take
#
# The last line is "N passed, N failed", with ", N skipped" behind it if there were any: the results of
# meson's own logs, a test that a suite runs under several compilers counted for each. Exit status: 0 if
# nothing failed, else 1. ZKL_TEST_LONG=1 makes tests run their full length. Everything is built and
# left in build-tests/, which git ignores; nothing else stays.
set -u
cd "$(dirname "$0")/.." || exit 1

# Name, budget in seconds on two cores, what it does. The order is that in which all and ci run theirs.
suites='
quick         180  what finds most per second: unit, the rules that are read off in a moment, short forms of sim and explore, the basic cluster programs, an ensemble that fails, each command and each example once
compilers     170  gcc and clang build everything, each warning an error; in all, clang no tests but those of unit
house          80  the rules that can be read off sources and built files
unit           15  the pure parts, without a server
sim           120  20,000 random schedules of several processes on an ensemble in memory
explore        90  every schedule of two or three clients within small bounds, each state once; --full: larger ones
models        480  the rule that proves a session, against what servers do with sessions: every state within named bounds
fuzz           90  10 s of libFuzzer for each target of tests/fuzz
planted       120  the planted bugs still apply and build (in CI, one in four is built), and what the simulation sees of them at once
docs           60  the commands and programs of README, docs and man pages run or compile
package       180  the tarball builds, its unit tests pass, and programs build with what it installs; those of other headers, and of the previous release, run
together      900  docs, lib, cluster, tool, fault, window, curator, interop and examples in one go: most of it waits
lib            60  the test library itself
cluster       180  the promises against real ZooKeeper servers
tool          120  the zklock command: children, signals, terminals, loss, cron jobs
fault         330  the promises while servers, links, processes and memory fail
window        150  what a holder may believe, aimed at the worst moments of three servers; leaders that are killed
curator        90  the scenarios that Apache Curator tests its lock recipes with
interop       150  C, Java (Curator), Python (Kazoo) and Go (go-zookeeper) on one lock
fleet         240  the library of an old commit and this one on the same paths, with every option
soak          150  multi-locks and single locks of 8 processes on 6 paths at once
bench          60  tests/bench for some seconds: that it runs, and that its witness sees who does not lock
chaos         200  three servers and many clients under faults of servers, links, clients and clocks
linear        240  the calls of a short soak, chaos and interop, judged for linearizability by a judge of its own
examples      120  the programs of examples/
demo           90  examples/demo.sh itself, with short runs; its JSON, picture and live progress
gcc-address   360  unit, sim, cluster, fault, curator and tool under gcc with address and undefined behaviour sanitizers
gcc-thread    360  unit, sim, cluster, fault, curator and tool under gcc with the thread sanitizer
clang-address 360  the same with clang
clang-thread  360  the same with clang
valgrind      660  unit, sim, cluster, fault, curator and tool under valgrind
sanitize     1450  the four of gcc and clang with sanitizers, in one go
tls           420  TLS and SASL: the client library with both, from the source package of Debian, and real servers
debian        900  the Debian packages: built, looked at by lintian, installed and tried in a bare Debian; debian FOLDER: in this one
cross         600  unit and a short simulation on other machines, of 32 bits and of big endian, by cross compilers and qemu
distros      7200  the demo and suites in bare systems of Debian 13, or --long: of 12, 13 and sid, in full
coverage      900  unit, sim, lib, cluster, fault and curator, and how many lines of src they reach
proofs       1800  names, queue, window and histogram of src/core by CBMC: every input within named bounds
mutants      3600  each planted bug, and 200 random changes of src/core: which suite catches it
long         7200  unit, sim, cluster, tool, fault, window, curator, fleet, soak, chaos and examples at full length, the proofs, tls, all of that against an instrumented libzookeeper, and debian
'
# Of each sanitizer one compiler is enough for CI; "sanitize" has all four. "quick" has all of "unit", and "together" what
# it names.
all='quick compilers house sim explore together'
ci="$all models fuzz planted package soak bench chaos demo gcc-address clang-thread valgrind"
# What sanitizers and valgrind look at; in CI less, to stay well under its 45 minutes.
checked='--suite unit --suite sim --suite cluster --suite fault --suite curator --suite tool'
# What shows nothing more there: who harms what in the simulation, which has one thread.
unchecked='--no-suite once' unchecked_threads='--no-suite once --no-suite sim'
brief='' fast='' rest='' alone='' built_of='' each='' schedules=20000 targets=''
# Most tests wait most of the time.
at_once=$(($(getconf _NPROCESSORS_ONLN) * 2))

child='' personality='' suite=setup
out=build-tests work=$PWD/build-tests/tmp

# What counts and tells, what installs packages, what builds, and what runs each suite.
. tests/run/report.sh
. tests/run/packages.sh
. tests/run/build.sh
. tests/run/suites.sh

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

usage() # SENTENCE
{
    echo "run.sh: $1" >&2
    exit 2
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
[ $# -gt 0 ] || set -- quick
case $1 in
all | ci) ;;
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

zkl_root=$PWD
. examples/setup.sh
if ! install "$1"; then
    fail "packages are missing and were not installed"
    finish
fi

if [ "$1" = all ] || [ "$1" = ci ]; then
    brief='--no-suite slow --no-suite curator --no-suite fault --no-suite tool'
    in_it=$all fast='--no-suite slow'
    [ "$1" = all ] || in_it="$ci distros" fast=''
    for name in $names; do
        case " $in_it " in
        *" $name "*) timed "$name" ;;
        esac
    done
else
    alone=$1
    timed "$@"
    [ "$1" != quick ] || tell_left_out
fi
finish

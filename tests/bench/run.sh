#!/bin/sh
# run.sh [--peers NAME,...] [--workloads NAME,...] [--rounds N] [--seconds S] [--fsync no|yes|both] [--servers 1|3|5]
#        [--tick MS] [--out FILE.jsonl] [--table FILE.md] [--capacity FILE.md] [--charts DIR] [--short]
#
# zklock beside the raw client library, Curator and Kazoo: see docs/benchmarks.md, and --help. Missing packages
# are installed first (as root). Built for speed in build-tests/bench; nothing else stays.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
zkl_root=$(cd "$here/../.." && pwd) || exit 1
out=$zkl_root/build-tests/bench
. "$zkl_root/examples/setup.sh"

jars=/usr/share/java
class_path=$jars/curator-recipes.jar:$jars/curator-framework.jar:$jars/curator-client.jar:$jars/zookeeper.jar:$jars/slf4j-simple.jar

compile_java() {
    [ -e $jars/curator-recipes.jar ] && command -v javac >/dev/null 2>&1 || return 0
    [ -z "$(find "$out/classes/Peer.class" -newer "$here/../crowd/Peer.java" 2>/dev/null)" ] || return 0
    zkl_quietly javac -J-XX:-UsePerfData -Xlint:all,-path -cp $class_path -d "$out/classes" "$here/../crowd/Peer.java"
}

compile_go() {
    sh "$zkl_root/tests/lib/go.sh" "$here/../crowd/peer.go" "$out/goworker" || [ $? -eq 77 ]
}

main() {
    case " $* " in
    *' --help '* | *' -h '*) ;;
    *)
        zkl_install_packages "$zkl_build_packages python3 iproute2" || return 1
        case " $* " in
        *' --short '* | *' --from '*) ;;
        *)
            zkl_install_packages "default-jdk-headless libcurator-recipes-java python3-kazoo" ||
                zkl_say "going on without Curator and Kazoo"
            zkl_install_packages "$(sh "$zkl_root/tests/lib/go.sh" --packages)" ||
                zkl_say "going on without go-zookeeper"
            ;;
        esac
        case " $* " in
        *' --charts'*) zkl_install_packages gnuplot-nox || return 1 ;;
        esac
        zkl_say "building in build-tests/bench ..."
        mkdir -p "$out" && zkl_setup "$out" -Dbuildtype=release &&
            zkl_quietly ninja --quiet -C "$out" tests/bench/bench-zklock tests/bench/bench-floor tests/bench/bench-local \
                tests/bench/bench-readers \
                tests/lib/zk-private &&
            compile_java && compile_go || return 1
        ;;
    esac
    exec python3 -B "$here/bench.py" --root "$zkl_root" --build "$out" "$@"
}

main "$@"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [RUN...] [OPTION...]: runs the programs of other suites, which write down each call, and judges what they wrote.

Runs: soak, chaos, interop; "open", a soak and an interop race in which somebody does not lock, which has to be seen;
"planted", the library with each bug of tests/linear/bugs, which has to be seen too. None: the first four.
The status is 77 if one was skipped and no other failed."""
import argparse
import gc
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "tests/planted"))

import calls
import judge
import planted
import tree

SKIPPED = 77
SHORT = {"soak": 6, "chaos": 20}
LONG = {"soak": 60, "chaos": 600}
PLANTED = {"soak": 60, "chaos": 20}  # at the most: a soak ends when its own witness sees the bug
SECONDS_MAX = 3600
BUILT = {"soak": ["tests/crowd/host", "tests/crowd/peer"], "chaos": ["tests/chaos/chaos"]}  # what they need


class Skipped(Exception):
    pass


def recorded(command, must_pass=True, say=print):
    """The paths of what it wrote down."""
    say("running " + " ".join(map(str, command)))
    with tempfile.TemporaryDirectory(prefix="zkl-linear-") as folder:
        file = os.path.join(folder, "calls")
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False,
                              env=dict(os.environ, ZKL_CALLS=file))
        said = done.stdout.decode("utf-8", "replace").splitlines()
        if done.returncode == SKIPPED:
            raise Skipped(said[-1] if said else str(command))
        if must_pass and done.returncode != 0:
            raise RuntimeError("\n".join(said[-30:]))
        if not os.path.exists(file):
            raise RuntimeError("\n".join(["it wrote nothing down:"] + said[-30:]))
        say(said[-1])
        with open(file, encoding="ascii") as lines:
            return calls.read(lines)


def judged(paths, broken=()):
    return judge.judge(paths, broken) == 0


def have_tokens(paths):
    """The library's own grants all have one; Curator's and Kazoo's have none."""
    without = [path for path in paths.values() if path.tokenless]
    for path in without:
        print(f"FAILED: {path.name}: {path.tokenless} of {path.grants} grants have no token")
    return not without


def is_seen(paths, prefix):
    """Some path that begins so is not linearizable; all is said."""
    seen = []

    def say(line):
        print(line)
        words = line.split()
        if line.endswith(": not linearizable"):
            seen.append(words[-3].rstrip(":"))

    judge.judge({name: path for name, path in paths.items() if name.startswith(prefix)}, say=say)
    return bool(seen)


def command_of(program, build):
    """Those that are Python's take their peers from the build folder."""
    return {"soak": [sys.executable, ROOT / "tests/soak/soak.py", "--build", build],
            "exclusion": [sys.executable, ROOT / "tests/interop/exclusion.py", build],
            "chaos": [build / "tests/chaos/chaos"]}[program]


# --- the runs -------------------------------------------------------------------------------------------------------

class Runs:
    def __init__(self, build, seconds, options):
        self.build = build
        self.seconds = seconds
        self.options = options

    def soak(self):
        paths = recorded([*command_of("soak", self.build), "--seconds", self.seconds["soak"]])
        return judged(paths) and have_tokens(paths)

    def chaos(self):
        paths = recorded([*command_of("chaos", self.build), "--seconds", self.seconds["chaos"], "--seed", self.options.seed])
        all_there = all("/chaos/" + name in paths for name in ("mutex", "rwlock", "permits", "single"))
        return judged(paths) and have_tokens(paths) and all_there

    def interop(self):
        exclusion = command_of("exclusion", self.build)
        if self.seconds is LONG:
            return judged(recorded(exclusion), ["/open", "/plain"])
        return judged(recorded([*exclusion, "test_*_java"]))

    def open(self):
        """Both are right to say that something is wrong, but for the judge."""
        seen = is_seen(recorded([*command_of("soak", self.build), "--no-lock", 2, "--seconds", 3]), "/soak/")
        paths = recorded([*command_of("exclusion", self.build), "test_no_lock"])
        return judged(paths, ["/open"]) and seen

    def planted(self):
        bugs = [bug for bug in planted.load(HERE / "bugs") if bug.name in (self.options.bug or [bug.name])]
        with tempfile.TemporaryDirectory(prefix="zkl-linear-") as folder:
            copy = tree.Tree(ROOT, os.path.join(folder, "copy"), "-Doptimization=1")
            return all([self.planted_one(copy, bug) for bug in bugs])

    def planted_one(self, copy, bug):
        """"Caught by: PROGRAM PATH": its own witness may see it too."""
        (program, prefix), = bug.tests
        print(f"--- {bug.name}: {bug.says}")
        try:
            copy.apply(bug.changes)
            copy.build(*BUILT[program])
            command = [*command_of(program, copy.build_path), "--seconds", PLANTED[program]]
            seen = is_seen(recorded(command, must_pass=False), prefix)
        finally:
            copy.restore()
        print(f"--- {bug.name}: {'seen' if seen else 'NOT SEEN'}")
        return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="soak, chaos, interop, open, planted")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-tests/gcc", help="the build folder")
    parser.add_argument("--long", action="store_true", help="soak 60 s, chaos 10 min, all races of interop")
    parser.add_argument("--seed", type=int, default=1, help="of the chaos")
    parser.add_argument("--bug", action="append", metavar="NAME", help="of those planted, only this one")
    options = parser.parse_args()
    seconds = LONG if options.long or os.environ.get("ZKL_TEST_LONG") == "1" else SHORT
    runs = Runs(options.build, seconds, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    gc.disable()
    failed = skipped = 0
    for name in options.runs or ["soak", "chaos", "interop", "open"]:
        if name not in ("soak", "chaos", "interop", "open", "planted"):
            parser.error(f"no run {name}")
        print(f"=== {name}", flush=True)
        try:
            if not getattr(runs, name)():
                print(f"FAILED: {name}")
                failed += 1
        except Skipped as why:
            print(why)
            skipped += 1
        except (RuntimeError, calls.Bad, tree.Broken, subprocess.TimeoutExpired) as fault:
            print(f"FAILED: {name}: {fault}")
            failed += 1
    return 1 if failed else SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())

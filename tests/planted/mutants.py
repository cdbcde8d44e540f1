#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the tests find bugs? Bugs planted by hand, and random changes of operators in src/core, each tried in
a copy of the sources in a temporary folder.

Without options: all planted bugs, and 200 random ones of the usual seed. Exit status 1 if a planted bug is
not caught, does not apply or does not build, or if a random one survives without a reason in
survivors.txt."""

# --- Planted bugs
#
# `sh tests/run.sh mutants` asks the tests whether they would find a bug. It works on copies of the sources in a
# temporary folder, two at a time. It ends with the figures, and status 1 where something is not as it should be.
#
# - `tests/planted/bugs` has bugs made by hand, each with a sentence of what it breaks. One counts only if the
#   unit tests and a short run of the demo don't see it (four are seen by unit tests that came after them). So
#   most show in a combination only: for a reader, at the second wake, after a reconnect. Then the simulation is
#   asked, and explore where the bug names it. Where they see nothing, the programs of the suites `cluster` and
#   `fault` that it names are asked. `mutants --planted [NAME...]` does only that, `--table` prints each bug
#   with what saw it.
# - 200 changes of single operators, constants, conditions and statements of src/core are drawn by a seed from all
#   there are (`mutants --random 200 --seed 1`). The unit tests and 2,000 schedules see them, or they stand in
#   `tests/planted/survivors.txt` with the reason why not. One without a reason fails.
#
# --- What is known to survive
#
# Each test was meant to be seen red by breaking the code in a copy; most were. Known to survive: a leftover call
# record that is not freed at close, a delayed first delete of the janitor (the retry covers it), and checks that back
# each other up.
import argparse
import os
import pathlib
import queue
import shutil
import signal
import sys
import tempfile
import threading

sys.dont_write_bytecode = True

import planted
import random_mutants
import tree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def in_parallel(folder, jobs, items, attempt, *options):
    """attempt(copy of the sources, item) for each item."""
    waiting = queue.Queue()
    faults = []
    for item in items:
        waiting.put(item)

    def work(place):
        try:
            copy = tree.Tree(ROOT, folder / str(place), *options)
            while not tree.stopping.is_set():
                attempt(copy, waiting.get_nowait())
        except queue.Empty:
            pass
        except BaseException as fault:  # told by the main thread
            faults.append(fault)
            tree.stop()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise next((fault for fault in faults if not isinstance(fault, tree.Stopped)), faults[0])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="only the planted bugs, or these")
    parser.add_argument("--random", type=int, metavar="N", help="only this many random ones")
    parser.add_argument("--seed", type=int, default=1, help="of the random ones")
    parser.add_argument("--schedules", type=int, help="at most so many are simulated for each")
    parser.add_argument("--explore", action="store_true",
                        help="show the planted bugs of src/core to tests/explore, and to nothing else")
    parser.add_argument("--quick", action="store_true",
                        help="show them to what `sh tests/run.sh` runs, and to nothing else; random ones not to servers")
    parser.add_argument("--short", action="store_true", help="do the bugs still apply and build?")
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="of all bugs, which are applied, only each Nth is built; with --short")
    parser.add_argument("--table", action="store_true", help="print the planted bugs as Markdown, too")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def do_planted(folder, options):
    bugs = planted.load(HERE / "bugs")
    chosen = [bug for bug in bugs if not options.planted or bug.name in options.planted]
    if options.planted and len(chosen) != len(set(options.planted)):
        sys.exit("mutants.py: no such bug; there are: " + " ".join(bug.name for bug in bugs))

    alone = "explore" if options.explore else "quick" if options.quick else None
    if options.explore:
        chosen = [bug for bug in chosen if bug.of_core]

    def attempt(copy, bug):
        if alone:
            planted.try_alone(copy, bug, alone)
        elif options.short:
            built = bugs.index(bug) % options.every == 0
            planted.try_short(copy, bug, (options.schedules or 100) if built else 0)
        else:
            planted.try_one(copy, bug, options.schedules or 60000)
        found = bug.found[alone] if alone else ', '.join(bug.caught_by()) or 'applies'
        print(f"  {bug.name}: {bug.fault or found}", flush=True)

    # Without optimisation a copy builds in half the time. In this order, what a bug leaves to be built again is
    # often what the next one changes.
    in_order = sorted(chosen, key=lambda bug: bug.files)
    in_parallel(folder, options.jobs, in_order, attempt, *(["-Doptimization=0"] if options.short else []))
    if alone:
        return planted.report_alone(chosen, alone)
    passed = planted.report(chosen, options.short or bool(options.planted))
    if options.table:
        print(planted.table(chosen))
    return passed


def main():
    options = parse()
    if options.explore and options.planted is None:
        options.planted = []
    wants_both = options.planted is None and options.random is None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="zkl-mutants-"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: tree.stop())
    if not options.short:
        os.nice(10)  # it takes an hour, and whoever started it goes on working
    passed = True
    try:
        if options.planted is not None or wants_both:
            passed = do_planted(folder / "planted", options)
        if options.random is not None or (wants_both and not options.short):
            mutants = random_mutants.choose(ROOT, options.seed)
            count = 200 if options.random is None else options.random
            results = random_mutants.Results(mutants, count, options.schedules or 2000, options.quick)
            in_parallel(folder / "random", options.jobs, range(count), results.attempt)
            passed = results.report(HERE / "survivors.txt") and passed
    except tree.Stopped:
        print("FAILED: interrupted")
        passed = False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

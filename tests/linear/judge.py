#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py FILE [--broken PATH]...: are the calls that programs wrote into FILE linearizable, path by path?

What is asked, and of whom, is in spec.py and calls.py; how it is found out, in search.py. The status is 1 if some path
is not, or if one of those is that are named as broken."""
import argparse
import collections
import gc
import sys
import time

sys.dont_write_bytecode = True

import calls
import search


def halves_of(path):
    return collections.Counter(operation.holds[0].half for operation in path.operations if operation.holds)


def figures(path, result, seconds):
    halves = ", ".join(f"{count} {half}" for half, count in sorted(halves_of(path).items()))
    return (f"{path.name}: {path.grants} grants ({halves}), {path.lost} lost or in doubt, {len(path.operations)} "
            f"operations, {result.tried} states in {seconds:.1f} s")


def judge(paths, broken=(), say=print):
    """The number of paths that are not as they should be."""
    faults = 0
    for name in sorted(paths):
        begun = time.monotonic()
        result = search.search(paths[name].operations)
        say(figures(paths[name], result, time.monotonic() - begun))
        if result.fine is None:
            say(f"FAILED: {name}: given up: too many states")
        elif not result.fine:
            say(f"{'' if name in broken else 'FAILED: '}{name}: not linearizable")
            for line in search.describe(result):
                say(f"  {line}")
        elif name in broken:
            say(f"FAILED: {name}: linearizable, and was to be broken")
        faults += result.fine is None or result.fine == (name in broken)
    for name in sorted(set(broken) - set(paths)):
        say(f"FAILED: {name}: nothing was called there")
        faults += 1
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("file")
    parser.add_argument("--broken", action="append", default=[], metavar="PATH", help="must not be linearizable")
    options = parser.parse_args()
    gc.disable()  # nothing of it goes before the end
    try:
        with open(options.file, encoding="ascii") as lines:
            paths = calls.read(lines)
    except (OSError, calls.Bad) as fault:
        sys.exit(f"judge.py: {fault}")
    faults = judge(paths, options.broken)
    print(f"linear: {len(paths)} paths, {sum(path.grants for path in paths.values())} grants, "
          f"{sum(path.lost for path in paths.values())} lost or in doubt, {faults} not as they should be")
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main())

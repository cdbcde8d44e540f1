# SPDX-License-Identifier: Apache-2.0
"""The planted bugs: tests/planted/bugs/NAME.txt, each with a sentence of what it breaks and a line
"Caught by:" with "sim" or "explore", and with the programs of other suites that are asked when the simulation
misses it: "fault replies races" are tests/fault/test-replies and test-races. "unit": unit tests that came later
see it too. Then each change: a line with the file, and the function that it is in (without one: anywhere), and lines
as in a patch, with no more around them than makes the place the only one there."""
import re
import textwrap

from tree import Broken, replaced

SUITES = ("unit", "demo", "sim", "cluster", "fault", "explore", "quick")
LEAST = 25  # planted bugs in all,
LEAST_BY_SIM = 18  # and of those by the simulation alone
# In a hundred, by `sh tests/run.sh`; and of those of the core, by tests/explore.
LEAST_ALONE = {"quick": 95, "explore": 80}


def change_of(part):
    """(file, function or "", the lines that are there, the lines that are to be there)"""
    place, *lines = part.splitlines(keepends=True)
    name, _, function = place.strip().partition(" ")
    return name, function, *("".join(line[1:] for line in lines if line[0] in signs) for signs in (" -", " +"))


class Bug:
    def __init__(self, path):
        self.name = path.stem
        text = path.read_text()
        self.says = " ".join(text.partition("\nCaught by:")[0].split())
        suites = set()
        self.tests = []
        for part in re.search(r"^Caught by: (.*)$", text, re.M).group(1).split(", "):
            suite, *names = part.split()
            suites.add(suite)
            self.tests += [(suite, name) for name in names]
        self.by_unit, self.by_sim, self.by_explore = (name in suites for name in ("unit", "sim", "explore"))
        self.changes = [change_of(part) for part in re.split(r"^\n", text, flags=re.M)[1:]]
        self.files = [name for name, *_ in self.changes]
        self.of_core = any(name.startswith("src/core/") for name in self.files)
        self.found = {suite: "" for suite in SUITES}
        self.fault = ""  # why it does not count

    def caught_by(self):
        return [suite for suite in ("sim", "explore", "cluster", "fault") if self.found[suite] not in ("", "-")]


def load(folder):
    return [Bug(path) for path in sorted(folder.glob("*.txt"))]


def look_with_sim(tree, bug, schedules):
    if not bug.of_core:
        return
    found = tree.fails_sim(schedules)
    bug.found["sim"] = f"{found[0]}: {found[1]}" if found else "-"


def look_with_servers(tree, bug):
    if not bug.tests:
        return  # without a target all would be built
    tree.build(*(f"tests/{suite}/test-{name}" for suite, name in bug.tests))
    for suite, name in bug.tests:
        found = tree.fails_test(suite, name)
        bug.found[suite] = found or bug.found[suite] or "-"
        if found:
            return


def look_with_explore(tree):
    tree.build("tests/explore/explore")
    return tree.fails_explore() or "-"


def with_bug(look):
    """Look at the tree while it has the bug."""
    def attempt(tree, bug, *options):
        try:
            tree.apply(bug.changes)
            look(tree, bug, *options)
        except Broken as why:
            bug.fault = "does not apply or build: " + str(why)[-400:]
        finally:
            tree.restore()
    return attempt


@with_bug
def try_alone(tree, bug, suite):
    """What one suite sees of it: the small exhaustive configurations of explore, or `sh tests/run.sh`."""
    bug.found[suite] = look_with_explore(tree) if suite == "explore" else tree.fails_quick() or "-"


def report_alone(bugs, suite):
    for bug in bugs:
        print(f"{bug.name:34} {bug.fault or shorten(bug.found[suite], 120)}")
    missed = [bug for bug in bugs if bug.found[suite] in ("", "-")]
    for bug in missed:
        print(f"not seen: {bug.name}: " + ", ".join(["sim"] * bug.by_sim + [" ".join(test) for test in bug.tests]))
    print(f"{len(bugs)} planted bugs: {len(bugs) - len(missed)} seen by {suite} alone")
    return len(missed) * 100 <= len(bugs) * (100 - LEAST_ALONE[suite]) and not any(bug.fault for bug in bugs)


def judge(bug):
    for suite in ("unit", "demo"):
        if bug.found[suite] != "passes" and not (suite == "unit" and bug.by_unit):
            bug.fault = f"{suite} catches it: it does not count"
            return
    if not bug.caught_by():
        bug.fault = "not caught"
    elif bug.by_sim and "sim" not in bug.caught_by():
        bug.fault = "the simulation was to catch it"


@with_bug
def try_one(tree, bug, schedules):
    bug.found["unit"] = tree.fails_unit() or "passes"
    tree.build("tests/sim/sim", "examples/contention-worker", "tests/lib/zk-private")
    bug.found["demo"] = tree.fails_demo() or "passes"
    look_with_sim(tree, bug, schedules)
    if bug.by_explore:
        bug.found["explore"] = look_with_explore(tree)
    if not bug.caught_by():
        look_with_servers(tree, bug)
    judge(bug)


@with_bug
def try_short(tree, bug, schedules):
    """Does it still apply, and (but for 0 schedules) build? A bug of the core is shown to the simulation for a
    moment."""
    if schedules > 0 and bug.of_core:
        tree.build("tests/sim/sim")
        look_with_sim(tree, bug, schedules)
    elif schedules > 0:
        tree.build("src/libzklock.a")


def shorten(text, room):
    return text if len(text) <= room else text[:room - 3] + "..."


def table(bugs):
    """As Markdown."""
    return "\n".join(item(bug) for bug in bugs)


def item(bug):
    schedule = bug.found["sim"].partition(":")[0]
    seen = [f"simulation (schedule {schedule})"] if schedule else []
    seen += [f"{suite} {bug.found[suite]}" for suite in ("explore", "cluster", "fault") if suite in bug.caught_by()]
    text = f"- `{bug.name}`: {bug.says} Seen by {'; '.join(seen) or 'nothing'}."
    return textwrap.fill(text, 80, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def report(bugs, short):
    for bug in bugs:
        found = [f"{suite} {bug.found[suite]}" for suite in SUITES if bug.found[suite]]
        print(f"{bug.name:34} {shorten('; '.join(found), 150)}")
    faults = [bug for bug in bugs if bug.fault]
    for bug in faults:
        print(f"FAILED: {bug.name}: {bug.fault}")
    by_sim = sum("sim" in bug.caught_by() for bug in bugs)
    caught = sum(bool(bug.caught_by()) for bug in bugs)
    print(f"{len(bugs)} planted bugs: {caught} caught, {by_sim} of them by the simulation alone, "
          f"{len(faults)} failed")
    few = not short and (len(bugs) - len(faults) < LEAST or by_sim < LEAST_BY_SIM)
    return not faults and not few

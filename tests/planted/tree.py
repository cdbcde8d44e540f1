# SPDX-License-Identifier: Apache-2.0
"""A copy of the sources in a temporary folder, to break and to test: changing, building, and running the
suites of one copy."""
import os
import pathlib
import re
import shutil
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from processes import Stopped, run, stop, stopping

# Bounds of one command in seconds, with room for a busy machine: they only end a hang.
BUILD_SECONDS = 7200  # what hangs is no compiler
UNIT_SECONDS = 120
SIM_SECONDS = 300
EXPLORE_SECONDS = 1800
SERVER_SECONDS = 300
QUICK_SECONDS = 900

QUICK_SCHEDULES = 8000  # as in tests/sim/meson.build

BUSY_UNIT = ("contender", "holding", "group", "permits", "query")

servers = threading.Lock()  # one private ZooKeeper at a time


class Broken(Exception):
    """A change that has no place, or several; a copy that does not build."""


def must(command, seconds, **options):
    status, output, _ = run(command, seconds, **options)
    if status != 0:
        raise Broken(output)


def unit_name(command):
    """Of a program of the suite unit, or of the transcript that it runs."""
    return pathlib.Path(command[-1]).stem.removeprefix("test-")


def replaced(text, function, old, new):
    """The text of a file with other lines in the place of these, which must stand in the function (or the file) once."""
    body = re.search(rf"^[^\n;]*\b{function}\([^;]*?\)\n\{{.*?^\}}\n" if function else r"(?s).*", text, re.M | re.S)
    if not body or ("\n" + body[0]).count("\n" + old) != 1:
        raise Broken(f"not once in {function or 'the file'}:\n{old}")
    at = body.start() + ("\n" + body[0]).index("\n" + old)
    return text[:at] + new + text[at + len(old):]


class Tree:
    def __init__(self, root, folder, *options):
        self.root = root
        self.path = pathlib.Path(folder)
        self.build_path = self.path / "build"
        self.touched = set()
        skip = shutil.ignore_patterns("build*", ".git", "__pycache__")
        shutil.copytree(root, self.path, ignore=skip)
        must(["meson", "setup", str(self.build_path), "-Ddebug=false", *options], BUILD_SECONDS, cwd=self.path,
             env=dict(os.environ, CC="gcc"))
        unit = root / "tests/unit"
        self.unit = [("tests/unit/transcript", str(path)) for path in sorted(unit.glob("*.txt"))]
        self.unit += [("tests/unit/" + path.stem,) for path in sorted(unit.glob("test-*.c"))]
        self.unit.sort(key=lambda command: unit_name(command) not in BUSY_UNIT)

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes):
        for name, *change in changes:
            self.write(name, replaced((self.path / name).read_text(), *change))

    def write(self, name, text):
        self.touched.add(name)
        (self.path / name).write_text(text)

    def restore(self):
        """As it was. The new times make ninja build it again."""
        for name in self.touched:
            (self.path / name).write_text((self.root / name).read_text())
        self.touched = set()

    def build(self, *targets):
        must(["ninja", "-C", str(self.build_path), "-j", "1", *targets], BUILD_SECONDS)

    # --- suites: what fails, or None ------------------------------------------------------------

    def program(self, name, *arguments, seconds=SERVER_SECONDS):
        return run([self.build_path / name, *arguments], seconds)[:2]

    def fails_unit(self):
        """Each is built only if those before it pass: most bugs are seen by the first ones."""
        for command in self.unit:
            self.build(command[0])
            status, _ = self.program(*command, seconds=UNIT_SECONDS)
            if status != 0:
                return unit_name(command)
        return None

    def fails_sim(self, schedules, at_once=500):
        """The number of the first schedule that fails, and what was said."""
        for first in range(1, schedules + 1, at_once):
            count = min(at_once, schedules + 1 - first)
            status, output = self.program("tests/sim/sim", "--jobs", "1", "--schedules", str(count),
                                          "--seed", str(first), seconds=SIM_SECONDS)
            if status == 0:
                continue
            found = re.search(r"^seed (\d+): (.*)$", output, re.M)
            if found:
                return found.groups()
            return f"{first}..{first + count - 1}", "it hangs" if status is None else "it crashes"
        return None

    def fails_explore(self, bounds="--short"):
        """The first configuration that goes wrong, and how."""
        status, output = self.program("tests/explore/explore", bounds, "--jobs", "1", "--first",
                                      seconds=EXPLORE_SECONDS)
        if status == 0:
            return None
        found = re.search(r"^(.*): WRONG, .*\n +(.*)$", output, re.M)
        if found:
            return ": ".join(" ".join(part.split()) for part in found.groups())
        return "it does not end" if status is None else "it crashes: " + output[-100:]

    def fails_quick(self, with_servers=True):
        """What of the suite quick goes red, what takes little first; without its house rules, some of which look at lines and
        need git."""
        unit = self.fails_unit()
        if unit:
            return f"unit {unit}"
        self.build("tests/sim/sim")
        sim = self.fails_sim(QUICK_SCHEDULES)
        if sim:
            return f"sim {sim[0]}"
        self.build("tests/explore/explore")
        found = self.fails_explore("--small")
        if found:
            return f"explore {found}"
        return self.fails_quick_tests() if with_servers else None

    def fails_quick_tests(self):
        """Those of it that have servers."""
        _, targets, _ = run(["python3", str(self.root / "tests/run/targets.py"), str(self.build_path), "quick"], BUILD_SECONDS)
        self.build(*targets.split())
        with servers:
            status, output, _ = run(["meson", "test", "-C", str(self.build_path), "--setup", "everything", "--no-rebuild",
                                  "--num-processes", "4", "-t", "4", "--maxfail", "1", "--suite", "quick", "--no-suite", "unit",
                                  "--no-suite", "sim", "--no-suite", "explore", "--no-suite", "house"], QUICK_SECONDS)
        if status == 0:
            return None
        found = re.findall(r"^ *\d+/\d+ \w+:([\w-]+)\S* / (.*\S) +(?:FAIL|TIMEOUT|ERROR)", output, re.M)
        return " ".join(found[0]) if found else "it does not end"

    def fails_demo(self):
        contention = ["python3", str(self.root / "examples/contention/contention.py"), str(self.build_path / "examples/contention-worker")]
        with servers:
            status, _ = self.program("tests/lib/zk-private", "--quiet", "--", *contention,
                                     "--processes", "2", "--threads", "2", "--seconds", "3")
        return None if status == 0 else "demo"

    def fails_test(self, suite, name):
        with servers:
            status, output = self.program(f"tests/{suite}/test-{name}")
        if status == 0:
            return None
        found = re.findall(r"^\[  FAILED  \] (\w+)$", output, re.M)
        return f"{name}: {found[0]}" if found else name

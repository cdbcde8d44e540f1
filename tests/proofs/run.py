#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proofs of leaves of src/core by CBMC: each harness here, for every input within the bounds that are printed.

run.py            all but those that are open, each with its planted change, which it has to see
run.py --list     their names, and what is proved
run.py --trace NAME...   with the steps of what fails
run.py NAME...    some only
run.py --missing  whether CBMC 6 is here: else the reason, and exit status 1

A line for each: "proved" or what failed, the number of properties, the seconds, the bounds. Every loop is unwound as
often as its bound says, and that no loop could go on is one of the properties (--unwinding-assertions); so are
accesses beside an object, null and dangling pointers, overflow of signed numbers and pointers, shifts out of
range, division by zero, conversions that change a value, and the code's own asserts. Exit status 1 if
anything is not as expected. The last line: "proofs: N passed, N failed"."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CBMC_MIN = 6
# It only ends a hang.
SECONDS_MAX = 1800
CHECKS = ("--unwinding-assertions --bounds-check --pointer-check --pointer-overflow-check --signed-overflow-check "
          "--undefined-shift-check --div-by-zero-check --conversion-check --slice-formula").split()


class Proof:
    """function of harness: every loop of the code unwound so often, macros that set its bounds, the bounds in
    words, and a change of source that it has to see."""

    def __init__(self, function, harness, source, unwind, macros, bounds, old, new):
        self.function, self.harness, self.source = function, harness, source
        self.unwind, self.macros, self.bounds = unwind, macros, bounds
        self.old, self.new = old, new


NAME, QUEUE, WINDOW, HISTOGRAM = "src/core/name.c", "src/core/queue.c", "src/core/proof.c", "src/core/histogram.c"
TIMES = "times to 2^62 ns, timeouts 1 to 2^31-1 ms, ticks 0 to 2^31-1 ms"
PROOFS = [
    Proof("any_data_is_a_number_of_permits_or_none", "names.c", NAME, 12, "", "up to 8 bytes",
          "size > 6", "size > 7"),
    Proof("any_text_is_copied_without_an_overrun", "names.c", NAME, 20, "CHILD_BYTES=8", "texts up to 8 bytes",
          "if (length >= size)", "if (length > size)"),
    Proof("any_path_is_judged_without_an_overrun", "names.c", NAME, 20, "CHILD_BYTES=6", "texts up to 6 bytes",
          "if (*at == end || ", "if ("),
    Proof("any_child_is_parsed_without_an_overrun", "names.c", NAME, 24, "CHILD_BYTES=12 NAME_BYTES=2",
          "names up to 12 bytes, those of locks up to 2",
          "while (number > child && is_digit(number[-1]))", "while (is_digit(number[-1]))"),
    Proof("any_named_child_is_recognised_without_an_overrun", "names.c", NAME, 66, "CHILD_BYTES=10",
          "names up to 50 bytes",
          "(size_t)(digits - child) < around || ", ""),
    Proof("parse_of_format_is_the_identity", "names.c", NAME, 66, "NAME_BYTES=3",
          "all 2^32 numbers, 2^122 GUIDs, roles and namings; names of locks up to 3 bytes",
          "if (*text == '-')\n        number = -number;", ""),
    Proof("the_longest_name_fits", "names.c", NAME, 130, "", "all names of 64 letters and digits, all numbers",
          "stpcpy(stpcpy(out, naming->name), marker);", "stpcpy(stpcpy(stpcpy(out, naming->name), marker), \"-\");"),
    Proof("a_look_is_what_the_specification_says", "queue.c", QUEUE, 6, "CHILDREN=4",
          "lists of up to 4, of any numbers, roles and peers, with ours, without it, or from the end",
          "look.ahead = look.predecessor;", ""),
    Proof("numbers_and_names_are_a_total_order", "queue.c", QUEUE, 6, "", "all 2^32 numbers, names up to 2 bytes",
          "return sequence_a < sequence_b ? -1 : 1;", "return (int32_t)((uint32_t)sequence_a - (uint32_t)sequence_b);"),
    Proof("somebody_always_goes_first", "queue.c", QUEUE, 6, "", "three of any numbers and roles",
          "if (place->sequence == sequence && one_reads)", "if (place->sequence == sequence)"),
    Proof("a_found_child_begins_with_the_prefix", "queue.c", QUEUE, 6, "CHILDREN=4", "lists of up to 4",
          "strncmp(children[i], prefix, length) == 0", "strncmp(children[i], prefix, length) >= 0"),
    Proof("an_answer_moves_the_window_forward_only", "window.c", WINDOW, 5, "ANSWERED=3",
          TIMES + "; 3 answers remembered",
          "proof->touched_boot = later(proof->touched_boot, stamp.proves_boot);",
          "proof->touched_boot = stamp.proves_boot;"),
    Proof("a_stamp_proves_nothing_later_than_its_sending", "window.c", WINDOW, 5, "ANSWERED=3",
          TIMES + "; 3 answers remembered",
          "proof->old_boot = later(proof->old_boot, nth(proof, 0)->sent_boot);",
          "proof->old_boot = later(proof->old_boot, nth(proof, 0)->at_boot + told_after(proof) + 1);"),
    Proof("a_new_link_proves_nothing_at_once", "window.c", WINDOW, 5, "ANSWERED=3", TIMES + "; 3 answers remembered",
          "first ? now_boot : now_boot + zkl_proof_late(proof)", "now_boot"),
    Proof("a_larger_timeout_is_not_believed", "window.c", WINDOW, 5, "ANSWERED=3", TIMES,
          "announced < proof->timeout_ns", "announced != proof->timeout_ns"),
    Proof("the_moment_that_is_told_is_enough", "window.c", WINDOW, 5, "ANSWERED=3", TIMES + "; 3 answers remembered",
          "int64_t settled = later(now_boot, proof->settled_boot);", "int64_t settled = now_boot;"),
    Proof("there_is_always_room_for_an_answer", "window.c", WINDOW, 34, "ANSWERED=32",
          TIMES + "; as many answers as there is room for",
          "told_after(proof) / (ZKL_ANSWERED_MAX - 2)", "told_after(proof) / (ZKL_ANSWERED_MAX + 2)"),
    Proof("each_time_lies_between_its_buckets_bounds", "histogram.c", HISTOGRAM, 2, "", "all 2^64 times",
          "(units >> (doublings - 1)) & 1", "(units >> doublings) & 1"),
    Proof("bounds_grow", "histogram.c", HISTOGRAM, 2, "", "all buckets",
          "(3 + (bucket & 1))", "(3 + (bucket & 2))"),
    Proof("a_bucket_is_at_most_half_as_wide_again", "histogram.c", HISTOGRAM, 2, "", "all buckets",
          "return (int64_t)(bucket + 1) * UNIT_NS;", "return (int64_t)(bucket + 1) * UNIT_NS / 2;"),
    Proof("merging_adds", "histogram.c", HISTOGRAM, 73, "", "all pairs of times",
          "if (from->max_ns > into->max_ns)\n        into", "into"),
]


# Not seen to end yet: run only where they are named.
OPEN = {
    "any_text_is_copied_without_an_overrun",
    "any_path_is_judged_without_an_overrun",
    "any_child_is_parsed_without_an_overrun",
    "any_named_child_is_recognised_without_an_overrun",
    "parse_of_format_is_the_identity",
    "the_longest_name_fits",
    "an_answer_moves_the_window_forward_only",
    "a_stamp_proves_nothing_later_than_its_sending",
    "the_moment_that_is_told_is_enough",
    "there_is_always_room_for_an_answer",
}


class Failed(Exception):
    """CBMC did not do its work."""


live = set()  # processes
stopping = threading.Event()


def stop(*_):
    stopping.set()
    for process in list(live):
        os.killpg(process.pid, signal.SIGKILL)


def missing():
    """Why there can be no proofs here, or None."""
    if not shutil.which("cbmc"):
        return "cbmc is not installed (Debian 13 has version 6; older ones have none that will do)"
    version = subprocess.run(["cbmc", "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"(\d+)\.", version)
    if not match or int(match.group(1)) < CBMC_MIN:
        return f"cbmc {version.split()[0] if version else '?'} is older than {CBMC_MIN}"
    return None


def run(command):
    if stopping.is_set():
        raise Failed("stopped")
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    live.add(process)
    try:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"no end within {SECONDS_MAX} s") from error
    finally:
        live.discard(process)
    if stopping.is_set():
        raise Failed("stopped")
    return output


def changed(proof, folder):
    """The source with its planted change, elsewhere."""
    text = (ROOT / proof.source).read_text(encoding="utf-8")
    if text.count(proof.old) != 1:
        raise Failed(f"{proof.source} does not have once: {proof.old}")
    path = pathlib.Path(folder) / pathlib.Path(proof.source).name
    path.write_text(text.replace(proof.old, proof.new), encoding="utf-8")
    return path


def prove(proof, source, traced):
    """What CBMC failed to prove, and of how many properties."""
    output = run(["cbmc", HERE / proof.harness, HERE / "libc.c", source, "-I", "include", "-I", "src", "-I", "src/core",
                  "-D_GNU_SOURCE", *(f"-D{macro}" for macro in proof.macros.split()), "--function", proof.function,
                  "--unwind", str(proof.unwind), *CHECKS, *(["--trace"] if traced else [])])
    summary = re.search(r"\*\* (\d+) of (\d+) failed", output)
    if not summary or "VERIFICATION" not in output:
        raise Failed("cbmc said: " + output.strip()[-400:])
    failures = re.findall(r"^\[.*\] (line \d+ .*): FAILURE$", output, re.MULTILINE)
    if traced and failures:
        print(output)
    return failures, int(summary.group(2))


def look_at(proof, traced):
    """Whether it is as expected, and what there is to say."""
    started = time.monotonic()
    try:
        failures, properties = prove(proof, proof.source, traced)
        with tempfile.TemporaryDirectory(prefix="proofs-") as folder:
            seen, _ = prove(proof, changed(proof, folder), False)
    except Failed as error:
        return False, f"{proof.function}: FAILED: {error}"
    seconds = time.monotonic() - started
    word = f"NOT PROVED: {failures[0]}" if failures else "proved"
    planted = f"the change is seen ({seen[0]})" if seen else "THE PLANTED CHANGE IS NOT SEEN"
    return (not failures and bool(seen),
            f"{proof.function}: {word}; {properties} properties, {seconds:.1f} s, unwound {proof.unwind} times; for "
            f"{proof.bounds}; {planted}")


def arguments():
    parser = argparse.ArgumentParser(description="Proofs of leaves of src/core by CBMC.")
    parser.add_argument("--missing", action="store_true", help="whether CBMC is missing, and why it is")
    parser.add_argument("--list", action="store_true", help="the proofs and their bounds")
    parser.add_argument("--trace", action="store_true", help="show the steps of what fails")
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - {p.function for p in PROOFS}
    if unknown:
        parser.error("no proof " + ", ".join(sorted(unknown)))
    return chosen


def main():
    chosen = arguments()
    why = missing()
    proofs = [p for p in PROOFS if (p.function in chosen.names if chosen.names else p.function not in OPEN)]
    if chosen.missing:
        print(why or "cbmc is here")
        return 1 if why else 0
    if chosen.list:
        for proof in proofs:
            print(f"{proof.function}: {proof.source}, for {proof.bounds}")
        return 0
    if why:
        print("skipped: " + why)
        return 77
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for good, text in pool.map(lambda p: look_at(p, chosen.trace), proofs):
            passed += good
            print(text, flush=True)
    print(f"proofs: {passed} passed, {len(proofs) - passed} failed")
    return 1 if passed < len(proofs) else 0


sys.exit(main())

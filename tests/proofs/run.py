#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proofs of leaves of src/core by CBMC: each harness here, for every input within the bounds that are printed.

run.py            all, each with its planted change, which it has to see
run.py --list     their names, and what is proved
run.py --trace NAME...   with the steps of what fails
run.py NAME...    some only
run.py --missing  whether CBMC 6 is here: else the reason, and exit status 1

A line for each: "proved" or what failed, the number of properties, the seconds of the processor, the bounds. Every
loop is unwound as often as its bound says, and that no loop could go on is one of the properties
(--unwinding-assertions); so are
accesses beside an object, null and dangling pointers, overflow of signed numbers and pointers, shifts out of
range, division by zero, conversions that change a value, and the code's own asserts. Exit status 1 if
anything is not as expected. The last line: "proofs: N passed, N failed"."""

# `sh tests/run.sh proofs` has CBMC look at leaves of `src/core` for every input within bounds. It needs version 6, as
# in Debian 13, with z3 and kissat, and is skipped where they are missing or older. The harnesses are
# `tests/proofs/*.c`; their list, bounds and planted changes are in `tests/proofs/run.py`.
#
# The line of each proof says how often loops are unwound, and CBMC also proves that none could go on
# (`--unwinding-assertions`). Proofs that don't say "accesses to memory aside" prove three things: no access leaves
# its object, no signed number overflows, no conversion changes a value. Each proof then runs on a copy of the source
# with a planted change, and an assertion has to fail. A loop that goes on does not count, as what lies behind it
# holds of nothing. Limits and figures are seconds of the processor. `--list` names the proofs, `--trace NAME` shows
# the steps of a failure.
#
# Above each harness stands what it proves.
#
# What makes the proofs end:
#
# - Lengths of texts are constants, one run for each, and loops run as often as that. `strlen` gets a length and
#   proves it.
# - Some proofs have each assertion as a run of its own (`apart`), as all together did not end.
# - The ring of answers has 4 places instead of 32 (`ZKL_ANSWERED_MAX`).
# - A function that is called from many places is proved once, for all that may come, and a stand-in takes its place
#   above (`given` in run.py, `assumed_...` in the harnesses). The stand-in checks what it is called with, and answers
#   anything that the proof allows. It is written by hand, and no tool checks that the two agree.
#
# What the bounds leave out: longer texts and lists, and names of named locks of other lengths, than each line says;
# more than two answers remembered; percentiles (floating point); and all that is above these leaves.
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent / "lib"))
sys.dont_write_bytecode = True

import processes

CBMC_MIN = 6
# Of the processor, for one run of CBMC or its solver: how fast the machine is at other work does not matter.
SECONDS_MAX = 900
CHECKS = ("--unwinding-assertions --bounds-check --pointer-check --pointer-overflow-check --signed-overflow-check "
          "--undefined-shift-check --div-by-zero-check --conversion-check --slice-formula").split()
# What the harness says, and that no loop goes on, but not how memory is touched.
MEANING = "--unwinding-assertions --no-standard-checks --slice-formula".split()


class Proof:
    """function of harness, for each of the cases (macros): every loop unwound so often, but for those in sets;
    bounds in words; a change of source, or of the header planted, that the last case has to see. With z3, or kissat,
    it is the solver.
    Without conversions an explicit cast may change a value.
    Apart: each assertion of the harness is a run of its own, another one is all else; together they take far longer
    than one by one. Without checks accesses to memory are left to other proofs.
    Given: (file, old, new) of what the harness stands in for, or calls though it is static."""

    def __init__(self, function, harness, source, unwind, cases, bounds, old, new, sets="", z3=False, apart=False,
                 kissat=False, planted=None, checks=True, conversions=True, given=()):
        self.function, self.harness, self.source = function, harness, source
        self.unwind, self.cases, self.bounds = unwind, cases, bounds
        self.old, self.new, self.planted = old, new, planted or source
        self.sets, self.z3, self.kissat, self.apart = sets, z3, kissat, apart
        self.checks, self.conversions, self.given = checks, conversions, given


NAME, QUEUE, WINDOW, HISTOGRAM = "src/core/name.c", "src/core/queue.c", "src/core/proof.c", "src/core/histogram.c"
WINDOW_H = "src/core/proof.h"
TIMES = "times to 2^62 ns, timeouts 1 to 2^31-1 ms, ticks 0 to 2^31-1 ms"
RING = TIMES + "; room for 4 answers, up to 2 there"
RING_MACROS = "ANSWERED=2 ZKL_ANSWERED_MAX=4"
SMALL = "times to 2^34 ns, timeouts 1 to 4000 ms, ticks 0 to 4000 ms"
SMALL_MACROS = "TIME_BITS=34 TIMEOUT_MS_MAX=4000"
# Ten digits, a minus and nine, a minus and ten: each number is written in one of these ways.
NUMBERS = ["DIGITS=10 MINUS=0", "DIGITS=9 MINUS=1", "DIGITS=10 MINUS=1"]
# One of each, at the ends.
VALUES = ["DIGITS=10 MINUS=0 VALUE=0", "DIGITS=10 MINUS=0 VALUE=2147483647", "DIGITS=9 MINUS=1 VALUE=1",
          "DIGITS=10 MINUS=1 VALUE=2147483648"]
MARKERS = ["lock-", "__READ__", "__WRIT__", "lease-", "__lock__", "__rlock__", "_lock_"]
ROLES = ["LOCK", "READ", "WRITE", "PERMIT"]
KINDS = [f"NAMES=ZKL_NAMES_{names} ROLE=ZKL_ROLE_{role}" for names in ("CURATOR", "KAZOO") for role in ROLES]


def named(*lengths):
    return [f"NAMES=ZKL_NAMES_NAMED NAME_BYTES={length}" for length in lengths]


def each(kinds, more):
    return [f"{kind} {other}" for kind in kinds for other in more]


def lengths(*numbers):
    return [f"LENGTH={length}" for length in numbers]


def put_before(function, text):
    """A change of the source: text stands before the function."""
    return function, text + function


# What harnesses call though it is static, and what they stand in for.
CALLED_NUMBER = (NAME, *put_before("static bool ends_with(", """
bool called_number(const char *text, int32_t *sequence)
{
    return parse_number(text, sequence);
}
"""))
CALLED_AFTER_LAST = (NAME, *put_before("static const char *after_session(", """
const char *called_after_last(const char *child, const char *marker, int32_t *sequence)
{
    return after_last(child, marker, sequence);
}
"""))
CALLED_PARSE = (NAME, *put_before("bool zkl_name_parse(", """
const char *called_parse(const char *child, const struct zkl_naming *naming, struct zkl_node_name *place)
{
    return parse(child, naming, place);
}
"""))
CALLED_TOLD = (WINDOW, *put_before("void zkl_proof_begin(", """
int64_t called_told(const struct zkl_proof *proof)
{
    return told_after(proof);
}
"""))
ASSUMED_NUMBER = (NAME, *put_before("static bool ends_with(", """
bool assumed_number(const char *text, int32_t *sequence);
#define parse_number assumed_number
"""))
ASSUMED_AFTER_LAST = (NAME, *put_before("static const char *after_session(", """
const char *assumed_after_last(const char *child, const char *marker, int32_t *sequence);
#define after_last assumed_after_last
"""))
ASSUMED_PARTS = [
    (WINDOW, "    int64_t round = proof->tick_ns > 0", "    int64_t assumed_told(void);\n    return assumed_told();\n"
     "    int64_t round = proof->tick_ns > 0"),
    (WINDOW_H, "return proof->timeout_ns / 16;", "int64_t assumed_late(void);\n    return assumed_late();"),
    (WINDOW_H, "return touched_boot + proof->timeout_ns - zkl_proof_late(proof) - proof->timeout_ns / 8;",
     "int64_t assumed_fresh(void);\n    return touched_boot + assumed_fresh();"),
]

PROOFS = [
    Proof("any_data_is_a_number_of_permits_or_none", "names.c", NAME, 12, [""], "up to 8 bytes",
          "size > 6", "size > 7"),
    Proof("any_text_is_copied_without_an_overrun", "names.c", NAME, 12,
          [*(f"LENGTH={length} ROOM={room}" for length in (0, 3, 6) for room in range(1, 9) if room != 6),
           "LENGTH=6 ROOM=6"],
          "texts of 0, 3 and 6 bytes, room for 1 to 8", "if (length >= size)", "if (length > size)"),
    Proof("any_path_is_judged_without_an_overrun", "names.c", NAME, 12, lengths(*range(4)), "paths up to 3 bytes",
          "start += length + 1;", "start += length + 2;", conversions=False,
          sets="zkl_absolute_fault.0:LENGTH strcspn.0:LENGTH component_fault.0:LENGTH next_character.0:4 "
               "strlen.0:LENGTH"),
    Proof("any_text_is_a_number_or_none", "names.c", NAME, 70, lengths(*range(12, 61), *range(12)),
          "texts up to 60 bytes", "if (length == 10)", "if (length == 11)", given=[CALLED_NUMBER]),
    Proof("any_text_is_looked_at_for_a_marker", "names.c", NAME, 130,
          each([f'MARKER="{marker}"' for marker in MARKERS], lengths(60, *range(13))),
          "texts up to 12 bytes, and of 60, whatever they are; all markers; with parse_number() as it is proved to be",
          "while (number > child && is_digit(number[-1]))", "while (is_digit(number[-1]))",
          sets="after_last.0:LENGTH", kissat=True, given=[CALLED_AFTER_LAST, ASSUMED_NUMBER]),
    Proof("any_child_is_parsed_without_an_overrun", "names.c", NAME, 130,
          each(["ROLE=ZKL_ROLE_PERMIT", *named(2), "NAMES=ZKL_NAMES_CURATOR"], lengths(60, *range(13))),
          "names up to 12 bytes, and of 60, whatever they are, read by each naming, for named locks of 2 bytes; with "
          "parse_number() and after_last() as they are proved to be",
          "digits > 0 && at[digits] == '-'", "digits > 0",
          sets="strspn.0:LENGTH", kissat=True, given=[CALLED_PARSE, ASSUMED_NUMBER, ASSUMED_AFTER_LAST]),
    Proof("any_mark_is_looked_for_without_an_overrun", "names.c", NAME, 50,
          lengths(12, 32, 33, 39, 40, 41, *range(5)),
          "names up to 4 bytes, and of 12, 32, 33 and 39 to 41, whatever they are",
          "strspn(guid, digits) == 32 && guid", "guid", sets="strspn.0:LENGTH", kissat=True),
    Proof("a_formatted_guid_is_a_uuid", "names.c", NAME, 40, [""], "all 2^128 random numbers",
          "hex[0x8 | (random[8] >> 4 & 0x3)]", "hex[0x8 | (random[8] >> 4 & 0x7)]"),
    Proof("a_prefix_is_as_specified", "names.c", NAME, 130, [*KINDS, *named(1, 2, 3, 64)],
          "all GUIDs, roles and namings; names of locks of 1, 2, 3 and 64 bytes, whatever they are",
          "stpcpy(stpcpy(out, naming->name), marker);", "stpcpy(stpcpy(stpcpy(out, naming->name), marker), \"-\");"),
    Proof("each_number_is_read", "names.c", NAME, 40, NUMBERS, "all 2^32 numbers; accesses to memory aside",
          "if (*text == '-')\n        number = -number;", "", sets="after_last.0:12", checks=False, kissat=True),
    Proof("parse_of_format_is_the_identity", "names.c", NAME, 130,
          each([*each(KINDS, ["TEXT_MAX=9 SPAN_MAX=57"]), *each(named(1, 2, 3), ["TEXT_MAX=9 SPAN_MAX=61"]),
                *each(named(64), ["TEXT_MAX=64 SPAN_MAX=122"])], VALUES),
          "where the number stands, and the role: all GUIDs, roles and namings of who writes and who reads; the "
          "numbers 0, 2^31-1, -1 and -2^31; names of locks of 1, 2, 3 and 64 bytes; accesses to memory aside",
          "number > child && number[-1] == '-')", "number > child && number[-1] == '+')",
          sets="after_last.0:12 strspn.0:SPAN_MAX strlen.1:TEXT_MAX memcmp.0:TEXT_MAX", checks=False),
    Proof("a_mark_is_read", "names.c", NAME, 130, each([*KINDS, *named(1)], NUMBERS[:1]),
          "all GUIDs, roles and namings; accesses to memory aside",
          "strspn(guid, digits) > ZKL_GUID_LEN", "strspn(guid, digits) > ZKL_GUID_LEN + 1",
          sets="strspn.0:40", checks=False),
    Proof("a_look_is_what_the_specification_says", "queue.c", QUEUE, 6, ["CHILDREN=4"],
          "lists of up to 4, of any numbers, roles and peers, with ours, without it, or from the end",
          "look.before++;", ""),
    Proof("numbers_and_names_are_a_total_order", "queue.c", QUEUE, 6, [""], "all 2^32 numbers, names up to 2 bytes",
          "return sequence_a < sequence_b ? -1 : 1;", "return (int32_t)((uint32_t)sequence_a - (uint32_t)sequence_b);"),
    Proof("somebody_always_goes_first", "queue.c", QUEUE, 6, [""], "three of any numbers and roles",
          "if (place->sequence == sequence && one_shares)", "if (place->sequence == sequence)"),
    Proof("a_found_child_begins_with_the_prefix", "queue.c", QUEUE, 6, ["CHILDREN=4"], "lists of up to 4",
          "strncmp(children[i], prefix, length) == 0", "strncmp(children[i], prefix, length) >= 0"),
    Proof("an_answer_moves_the_window_forward_only", "window.c", WINDOW, 5, [RING_MACROS],
          RING,
          "proof->touched_boot = later(proof->touched_boot, stamp.proves_boot);",
          "proof->touched_boot = stamp.proves_boot;", apart=True),
    Proof("a_later_touch_has_a_later_end", "window.c", WINDOW, 5, [""], TIMES,
          ": proof->touched_boot + proof->timeout_ns - zkl_proof_late(proof);",
          ": proof->touched_boot + proof->timeout_ns;", z3=True, planted=WINDOW_H),
    Proof("a_stamp_proves_nothing_later_than_its_sending", "window.c", WINDOW, 5, [RING_MACROS],
          RING,
          "proof->old_boot = later(proof->old_boot, answered_at(proof, 0)->sent_boot);",
          "proof->old_boot = later(proof->old_boot, answered_at(proof, 0)->at_boot + told_after(proof) + 1);", apart=True),
    Proof("a_new_link_proves_nothing_at_once", "window.c", WINDOW, 5, [RING_MACROS], RING,
          "first ? now_boot : now_boot + zkl_proof_late(proof)", "now_boot"),
    Proof("a_larger_timeout_is_not_believed", "window.c", WINDOW, 5, [""], TIMES,
          "announced < proof->timeout_ns", "announced != proof->timeout_ns"),
    Proof("the_parts_of_a_timeout_are_no_more_than_it", "window.c", WINDOW, 5, [RING_MACROS], TIMES,
          "        round = proof->timeout_ns / 2;", "", z3=True, given=[CALLED_TOLD]),
    Proof("the_moment_that_is_told_is_enough", "window.c", WINDOW, 5, [RING_MACROS],
          RING + "; with P + 2 D, D and what is fresh any parts of the timeout, as is proved",
          "int64_t settled = later(now_boot, proof->settled_boot);", "int64_t settled = now_boot;", apart=True,
          given=ASSUMED_PARTS),
    Proof("there_is_always_room_for_an_answer", "window.c", WINDOW, 5,
          [f"ANSWERED=3 ZKL_ANSWERED_MAX=4 {SMALL_MACROS}"],
          SMALL + "; room for 4 answers",
          "told_after(proof) / (ZKL_ANSWERED_MAX - 2)", "told_after(proof) / (ZKL_ANSWERED_MAX + 2)", apart=True),
    Proof("each_time_lies_between_its_buckets_bounds", "histogram.c", HISTOGRAM, 2, [""], "all 2^64 times",
          "(units >> (doublings - 1)) & 1", "(units >> doublings) & 1"),
    Proof("bounds_grow", "histogram.c", HISTOGRAM, 2, [""], "all buckets",
          "(3 + (bucket & 1))", "(3 + (bucket & 2))"),
    Proof("a_bucket_is_at_most_half_as_wide_again", "histogram.c", HISTOGRAM, 2, [""], "all buckets",
          "return (int64_t)(bucket + 1) * UNIT_NS;", "return (int64_t)(bucket + 1) * UNIT_NS / 2;"),
    Proof("merging_adds", "histogram.c", HISTOGRAM, 73, [""], "all pairs of times",
          "if (from->max_ns > into->max_ns)\n        into", "into"),
]


class Failed(Exception):
    """CBMC did not do its work."""


def missing():
    """Why there can be no proofs here, or None."""
    if not shutil.which("cbmc"):
        return "cbmc is not installed (Debian 13 has version 6; older ones have none that will do)"
    version = subprocess.run(["cbmc", "--version"], capture_output=True, text=True, check=False).stdout
    for solver in ("z3", "kissat"):
        if not shutil.which(solver):
            return f"{solver} is not installed"
    match = re.match(r"(\d+)\.", version)
    if not match or int(match.group(1)) < CBMC_MIN:
        return f"cbmc {version.split()[0] if version else '?'} is older than {CBMC_MIN}"
    return None


def run(command):
    """What it said, and its seconds of the processor, those of its solver with it."""
    status, output, seconds = processes.run(["prlimit", f"--cpu={SECONDS_MAX}", *command], threading.TIMEOUT_MAX, cwd=ROOT)
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Failed(f"no end within {SECONDS_MAX} s of the processor")
    return output, seconds


def prepared(proof, folder, *changes):
    """The source with what is given and these changes, and the folder to look for its header first."""
    changes = [*proof.given, *changes]
    if not changes:
        return proof.source, "src"
    folder = pathlib.Path(folder)
    (folder / "core").mkdir(parents=True)
    for name in {proof.source, *(change[0] for change in changes)}:
        text = (ROOT / name).read_text(encoding="utf-8")
        for _, old, new in (change for change in changes if change[0] == name):
            if text.count(old) != 1:
                raise Failed(f"{name} does not have once: {old}")
            text = text.replace(old, new)
        (folder / "core" / pathlib.Path(name).name).write_text(text, encoding="utf-8")
    return folder / "core" / pathlib.Path(proof.source).name, folder


def checks(proof):
    if not proof.checks:
        return MEANING
    return [check for check in CHECKS if proof.conversions or check != "--conversion-check"]


def sets(proof, case):
    """Where it names a macro: often enough for a text as long as this case says."""
    text = proof.sets
    for macro, number in re.findall(r"(\w+)=(\d+)", case):
        text = re.sub(rf"\b{macro}\b", str(int(number) + 2), text)
    return text.split()


def command(proof, case, source, before, *more):
    return ["cbmc", HERE / proof.harness, HERE / "libc.c", "src/core/role.c", source, "-I", before, "-I", "include",
            "-I", "src", "-I", "src/core", "-D_GNU_SOURCE", *(f"-D{macro}" for macro in case.split()),
            "--function", proof.function, "--unwind", str(proof.unwind),
            *(["--unwindset", ",".join(sets(proof, case))] if proof.sets else []),
            *(["--z3"] if proof.z3 else []),
            *(["--external-sat-solver", "kissat"] if proof.kissat else []), *checks(proof), *more]


def parts(proof, case, made):
    """What to prove at a time: as options."""
    if not proof.apart:
        return [[]]
    output, _ = run(command(proof, case, *made, "--show-properties"))
    names = re.findall(r"^Property (\S+):", output, re.MULTILINE)
    own = [name for name in names if name.startswith(proof.function + ".assertion.")]
    rest = [option for name in names if name not in own for option in ("--property", name)]
    if not own or not rest:
        raise Failed("cbmc names no properties: " + output.strip()[-400:])
    return [*(["--property", name] for name in own), rest]


def prove(proof, case, made, part, traced):
    """What CBMC failed to prove, of how many properties, in what time."""
    output, seconds = run(command(proof, case, *made, *part, *(["--trace"] if traced else [])))
    summary = re.search(r"\*\* (\d+) of (\d+) failed", output)
    if not summary or "VERIFICATION" not in output:
        raise Failed(f"{case}: cbmc said: " + output.strip()[-400:])
    failures = re.findall(r"^\[.*\] (line \d+ .*): (?:FAILURE|UNKNOWN|ERROR)$", output, re.MULTILINE)
    if bool(failures) == ("VERIFICATION SUCCESSFUL" in output):
        raise Failed(f"{case}: cbmc said both: " + output.strip()[-400:])
    if traced and failures:
        print(output)
    return [f"{failure} ({case})" for failure in failures], int(summary.group(2)), seconds


def see(proof, made):
    """The first property that the planted change breaks, or None. That a loop goes on is no answer: what lies
    behind it was not looked at then."""
    output, seconds = run(command(proof, proof.cases[-1], *made))
    if not re.search(r"\*\* \d+ of \d+ failed", output):
        raise Failed("with the change cbmc said: " + output.strip()[-400:])
    failures = re.findall(r"^\[.*\] (line \d+ .*): FAILURE$", output, re.MULTILINE)
    return next((failure for failure in failures if "unwinding assertion" not in failure), None), seconds


def look_at(proof, traced):
    """Whether it is as expected, and what there is to say."""
    failures, properties, seconds, runs = [], 0, 0.0, 0
    try:
        with tempfile.TemporaryDirectory(prefix="proofs-") as folder:
            made = prepared(proof, folder + "/given")
            for case in proof.cases:
                of_case = 0
                for part in parts(proof, case, made):
                    failed, count, took = prove(proof, case, made, part, traced)
                    failures += failed
                    of_case, seconds, runs = of_case + count, seconds + took, runs + 1
                properties = max(properties, of_case)
            seen, took = see(proof, prepared(proof, folder + "/planted", (proof.planted, proof.old, proof.new)))
    except Failed as error:
        return False, f"{proof.function}: FAILED after {seconds:.1f} s: {error}"
    word = f"NOT PROVED: {failures[0]}" if failures else "proved"
    planted = f"the change is seen ({seen})" if seen else "THE PLANTED CHANGE IS NOT SEEN"
    return (not failures and bool(seen),
            f"{proof.function}: {word}; {properties} properties, {seconds:.1f} s in {runs} runs, and {took:.1f} s; "
            f"unwound {proof.unwind} times; for {proof.bounds}; {planted}")


def main():
    known = {proof.function: proof for proof in PROOFS}
    chosen = processes.arguments("Proofs of leaves of src/core by CBMC.", known, missing="whether CBMC is missing, and why it is",
                                 list="the proofs and their bounds", trace="show the steps of what fails")
    why = missing()
    proofs = [known[name] for name in chosen.names or known]
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
    return processes.judge("proofs", proofs, lambda proof: look_at(proof, chosen.trace))


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a window prove a session? Each configuration of the models here, looked at exhaustively.

run.py               all, at the scale of the library: T = 16 ticks
run.py --short       all, at half of it
run.py --list        their names, and what each one changes
run.py --trace NAME  the shortest way to break the promise, step by step, with the tick before each
run.py NAME...       some only

A line for each: what was expected ("holds": no reachable state has a session that ended inside an open window;
"breaks": there is one) and what was found, the states, the depth, the seconds. Exit status 1 if anything is
not as expected, or if a search was not exhaustive. As many run at once as there are processors. The last line:
"models: N passed, N failed"."""

# `sh tests/run.sh models` looks at every state of three small models (`tests/models`, Promela, searched by SPIN).
# They have the leader's clock for a session, a follower that notes touches and hands them on in rounds, and a client
# that has proved the session in some way and counts its window. The promise: the leader has not ended the session
# while the window is open. Each file says at its top what it covers, what it leaves out, and from which class and
# method of ZooKeeper a rule is.
#
# - `leader.pml`: what the others share, the scale of time and the leader's clock, which expires in batches.
# - `rounds.pml`: one link. Touches wait at the follower for the leader's next ping, and are lost with it.
# - `links.pml`: connections of one session behind each other. The answer to one declares the next connected.
# - `timeouts.pml`: a timeout that is stored, and others that links have.
#
# With the library's rule each holds, whatever is done in whatever order, for any length of time, within bounds that
# are printed. With an earlier or a simpler rule, or without one of its assumptions, each breaks.
# `sh tests/run.sh models --trace old-rule` shows how, step by step, the shortest way there is. `--list` has a
# sentence for each. CI takes half the scale (`--short`).
import pathlib
import re
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "lib"))
sys.dont_write_bytecode = True

import processes

# They only end a hang, and keep a model that grew from taking the machine.
SECONDS_MAX = 900
MEMORY_MIB = 6000

# What each named bound is at each scale: the proportions of the library are T/4, T/16 and T/16.
SCALES = {"full": {"T": 16, "P": 4, "D": 1, "R": 1}, "short": {"T": 8, "P": 2, "D": 1, "R": 1}}

HOLDS, BREAKS = "holds", "breaks"
# Name, model, macros, expected, what it changes. A macro's value may use T, P and D. Where the promise should
# break, the two must overlap by a tick at least: no edge is taken for a fault.
PLANTED = "planted bug: "
DROPPED = "assumption dropped: "
CONFIGURATIONS = [
    ("rounds", "rounds", "", HOLDS, "the rule, by a request answered P + 2D before the proof"),
    ("rounds-late", "rounds", "D=2*D", HOLDS, "the same where all may be later: D doubled, so that it is split in more ways"),
    ("rounds-window", "rounds", "WINDOW", BREAKS, "not a bug: that windows do open"),
    ("rounds-wait", "rounds", "WAIT=P+2*D-1", BREAKS, "a tick less than P + 2D is too little"),
    ("old-rule", "rounds", "RULE_OLD", BREAKS, PLANTED + "3/4 T from an answered write, as it was seen"),
    ("at-request", "rounds", "TOUCH_AT_REQUEST", BREAKS, PLANTED + "a request touches at the leader"),
    ("at-answer", "rounds", "STAMPED_AT_ANSWER", BREAKS, "the request counts from its answer's completion"),
    ("late-round", "rounds", "MORE_ROUND=1", BREAKS, DROPPED + "an answer to the leader's ping is no later than D"),
    ("late-packet", "rounds", "MORE_PACKET=1", BREAKS, DROPPED + "packets to the leader and batches together no later than D"),
    ("long-batch", "rounds", "MORE_BATCH=1", BREAKS, DROPPED + "the same, by the batch"),
    ("rounds-tick", "rounds", "P=P//2", HOLDS, "the same with a known, shorter tick"),
    ("tick-too-small", "rounds", "WAIT=P//2+2*D", BREAKS, DROPPED + "no server that may lead has a longer tick than said"),
    ("clocks", "rounds", "R=2 AHEAD=1", HOLDS, "the leader's clock runs ahead, and R is for that"),
    ("clocks-too-far", "rounds", "AHEAD=2", BREAKS, DROPPED + "clock rates differ by no more than R"),
    ("put-lost", "rounds", "PUT_IS_LOST", BREAKS, DROPPED + "a touch is not lost between put and snapshot"),
    ("each-late", "rounds", "D_FOR_EACH", BREAKS, DROPPED + "packet and batch are late by D together, not each"),
    ("each-late-3D", "rounds", "D_FOR_EACH WAIT=P+3*D", HOLDS, "what would mend that: a wait of P + 3D"),
    ("two-rounds", "rounds", "TWO_ROUNDS", BREAKS, DROPPED + "no observer master"),
    ("two-rounds-2P", "rounds", "T=8 P=2 TWO_ROUNDS WAIT=2*P+2*D", HOLDS, "what would mend that: a wait of 2P + 2D"),
    ("read-proves", "rounds", "READ_IS_PROOF", BREAKS, "a read that the follower answers counts as a proof"),
    ("write-proves", "rounds", "ANY_WRITE", BREAKS, "a write that passes without the session (local sessions) counts"),
    ("granted-less", "rounds", "GRANTED=3*T//4", BREAKS, DROPPED + "no server grants less than T"),
    ("links", "links", "", HOLDS, "the rule, by the link's start and D after CONNECTED"),
    ("links-window", "links", "WINDOW", BREAKS, "not a bug: that windows do open"),
    ("start-at-once", "links", "WAIT=0", BREAKS, PLANTED + "a link's start counts at once"),
    ("start-stolen", "links", "NO_BATCHES WAIT=0", BREAKS, "the same by an answer to another connection alone"),
    ("start-handled", "links", "STAMPED_WHEN_HANDLED", BREAKS, PLANTED + "a link starts when its event is handled"),
    ("start-sent", "links", "SENT_IS_ENOUGH", BREAKS, "a link starts with a request that had not ended before it"),
    ("any-link", "links", "ANY_LINK", BREAKS, "a request answered over an earlier link counts"),
    ("judged-at-call", "links", "JUDGED_AT_CALL", BREAKS, "a proof belongs to the link that was last told of"),
    ("links-late-packet", "links", "MORE_PACKET=1", BREAKS, DROPPED + "packets to the leader and batches together no later than D"),
    ("links-long-batch", "links", "MORE_BATCH=1", BREAKS, DROPPED + "the same, by the batch"),
    ("links-each-late", "links", "D_FOR_EACH", BREAKS, DROPPED + "packet and batch are late by D together, not each"),
    ("links-each-late-2D", "links", "D_FOR_EACH WAIT=2*D", HOLDS, "what would mend that: a wait of 2D"),
    ("timeouts", "timeouts", "", HOLDS, "the rule, by the smallest timeout announced"),
    ("timeouts-window", "timeouts", "WINDOW", BREAKS, "not a bug: that windows do open"),
    ("raised", "timeouts", "BELIEVE_LAST", BREAKS, PLANTED + "a raised timeout is believed"),
    ("lowered", "timeouts", "LOWERED", BREAKS, DROPPED + "no server grants less than the session has"),
    ("lowered-heard", "timeouts", "LOWERED HEARD_AT_ONCE", HOLDS, "the same, but the client hears of it in time"),
]


class Failed(Exception):
    """A tool that did not do its work."""


def run(command, folder):
    """Its output, whatever its exit status."""
    status, output, _ = processes.run(command, SECONDS_MAX, cwd=folder)
    if status is None:
        raise Failed(f"{command[0]} did not end within {SECONDS_MAX} s")
    return output


def definitions(model, macros, expected, scale):
    """Options for spin's preprocessor."""
    values = {} if model == "timeouts" else dict(SCALES[scale])
    for macro in macros.split():
        name, _, value = macro.partition("=")
        values[name] = eval(value, {}, values) if value else 1  # what stands above, no more
    if expected == BREAKS and "WINDOW" not in values:
        values["OVERLAP"] = 1
    return [f"-D{name}={value}" for name, value in values.items()]


def figure(pattern, output):
    match = re.search(pattern, output)
    if not match:
        raise Failed("pan said: " + output.strip()[-400:])
    return int(match.group(1))


def search(model, options, folder):
    """What was found, the states and the depth. Breadth first, so that a way to break it is the shortest."""
    for file in HERE.glob("*.pml"):
        shutil.copy(file, folder)
    output = run(["spin", "-a", *options, f"{model}.pml"], folder)
    if not (folder / "pan.c").exists() or "Error" in output:
        raise Failed("spin said: " + output.strip())
    output = run(["gcc", "-O1", "-w", "-DSAFETY", "-DBFS", f"-DMEMLIM={MEMORY_MIB}", "-o", "pan", "pan.c"], folder)
    if not (folder / "pan").exists():
        raise Failed("gcc said: " + output.strip())
    output = run(["./pan", "-m1000000"], folder)
    broken = figure(r"errors: (\d+)", output) > 0
    if broken and "assertion violated" not in output:
        raise Failed("an error that is no broken promise: " + output.strip()[:400])
    if not broken and re.search(r"not completed|too small|out of memory|reached -DMEMLIM|max search depth", output):
        raise Failed("the search was not exhaustive")
    return BREAKS if broken else HOLDS, figure(r"(\d+) states, stored", output), figure(r"depth reached (\d+)", output)


def steps(model, options, folder):
    """The trail that the search left, with the number of the tick before each step."""
    trail = folder / f"{model}.pml.trail"
    output = run(["spin", "-t", *options, f"{model}.pml"], folder)
    tick, lines = 0, []
    for line in output.splitlines() if trail.exists() else []:
        if line.strip() == "... a tick":
            tick += 1
        elif re.match(r"\s*(late|leader|follower|client|observer)", line):
            lines.append(f"    {tick:3}  {line.strip()}")
        elif "failed assertion" in line:
            break
    return lines


def look_at(configuration, scale, traced):
    """Whether it is as expected, and what there is to say."""
    name, model, macros, expected, _ = configuration
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="models-") as folder:
        folder = pathlib.Path(folder)
        options = definitions(model, macros, expected, scale)
        try:
            found, states, depth = search(model, options, folder)
            seconds = time.monotonic() - started
            wrong = found != expected
            lines = [f"{name:20} {expected:8} {found:8} {states:10} {depth:6} {seconds:7.1f}"]
            if wrong:
                lines[0] += "  NOT AS EXPECTED"
            if found == BREAKS and (traced or wrong):
                lines += steps(model, options, folder)
        except Failed as error:
            return False, f"{name:20} {expected:8} FAILED: {error}"
    return not wrong, "\n".join(lines)


def print_bounds(scale):
    print("bounds, in ticks:", ", ".join(f"{name} = {value}" for name, value in SCALES[scale].items()),
          "unless a configuration says others; touches and proofs on their way to the leader: 3; connections "
          "of a session after its first: 3; timeouts stored, raised, lowered: 4, 12, 2; time: without bound")


def main():
    known = {configuration[0]: configuration for configuration in CONFIGURATIONS}
    chosen = processes.arguments("The models of the session's proof, looked at exhaustively.", known,
                                 short="at half the scale", list="the configurations", trace="show how each promise breaks")
    configurations = [known[name] for name in chosen.names or known]
    if chosen.list:
        for name, model, macros, expected, sentence in configurations:
            print(f"{name:20} {expected:8} {model:9} {sentence}" + (f" [{macros}]" if macros else ""))
        return 0
    scale = "short" if chosen.short else "full"
    print_bounds(scale)
    print(f"{'name':20} {'expected':8} {'found':8} {'states':>10} {'depth':>6} {'seconds':>7}")
    return processes.judge("models", configurations, lambda c: look_at(c, scale, chosen.trace))


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge's own test: histories by hand, good ones and for each rule one that breaks it, as the programs would have
written them. And all short histories of a mutex, judged by trying every order.

A history has a line for each worker, with its steps: FROM-TO, in seconds, then "+" (acquire) or "-" (release) and what,
then the answer; FROM- alone was never answered. "~5 alone": proved until 5 s; "<3 alone" likewise. Without a path it is
/p. Above it stand the verdicts: "= good", or "= bad, WHY" if the judge has to say WHY, and behind a colon what fills the
braces, where several are tried: "|" stands between two values, " / " between two tries, and "_" is nothing."""
import random
import sys
import unittest

sys.dont_write_bytecode = True

import calls
import search
import spec

S = 10**9

HISTORIES = """
# --- mutex

one after the other
= good
1.0 1-2 +alone 0 a:1; 3-4 -alone 0
2.0 2-5 +alone 0 b:1; 6-7 -alone 0

the unlock is at some moment of its call
= good
1.0 1-2 +alone 0 a:1; 3-6 -alone 0
2.0 4-5 +alone 0 b:1; 7-8 -alone 0

two inside
= bad, somebody is inside
1.0 1-2 +alone 0 a:1; 4-5 -alone 0
2.0 2-3 +alone 0 b:1; 6-7 -alone 0

two inside who never unlock
= bad, somebody is inside
1.0 1-2 +alone 0 a:1; ~9 alone
2.0 2-3 +alone 0 b:1

entered again
= good
1.0 1-2 +alone 0 a:1; 2-3 +alone 0 a:2; 3-4 -alone 0; 4-5 -alone 0
2.0 1-6 +alone 0 b:1

granted between two unlocks
= bad, somebody is inside
1.0 1-2 +alone 0 a:1; 2-3 +alone 0 a:2; 3-4 -alone 0; 6-7 -alone 0
2.0 1-5 +alone 0 b:1; 8-9 -alone 0

entered again with another count or token
= good: a:2
= bad, not so deep: a:3
= bad, another token: b:2
1.0 1-2 +alone 0 a:1; 2-3 +alone 0 {}; 4-5 -alone 0; 5-6 -alone 0

not entered again but granted
= bad, somebody is inside
1.0 1-2 +alone 0 a:1; 2-3 +alone 0 b:1; 4-5 -alone 0; 5-6 -alone 0

entered again by who is not inside
= good: 1
= bad, not so deep: 3
1.0 1-2 +alone 0 a:{}; 3-4 -alone 0

one that is not reentrant
= good: alone
= bad, not reentrant: once
1.0 1-2 +{0} 0 a:1; 2-3 +{0} 0 a:2; 4-5 -{0} 0; 5-6 -{0} 0

who waits in vain changes nothing
= good
1.0 1-2 +alone 0 a:1; 4-5 -alone 0
2.0 2-3 +alone -12

# --- tokens

they grow, and one may be not known; of readers and permits too
= good: alone | 9 | alone | 2.0 | a / alone | a | alone | 2.0 | 0 / alone | 0 | alone | 2.0 | 9 / read | 9 | alone | 2.0 | a
= bad, the token is not larger: alone | a | alone | 2.0 | 9 / alone | a | alone | 2.0 | a / read | a | alone | 2.0 | 9
= bad, the token is not larger: alone | a | read | 2.0 | 9 / read | a | read | 2.0 | 9 / permit2 | a | permit2 | 2.0 | 9
1.0 1-2 +{0} 0 {1}:1; 3-4 -{0} 0
{3} 5-6 +{2} 0 {4}:1; 7-8 -{2} 0

one node in turn
= good: shared | a | shared | 1.1 | a
= bad, the token is not larger: shared | a | shared | 2.0 | a / shared | a | shared | 1.1 | 9 / alone | a | alone | 1.1 | a
1.0 1-2 +{0} 0 {1}:1; 3-4 -{0} 0
{3} 5-6 +{2} 0 {4}:1; 7-8 -{2} 0

readers of one node
= good: read | a | cached | 2.0 | 9
= bad, the token is not larger: alone | a | cached | 2.0 | 9 / cached | a | read | 2.0 | 9 / cached | a | alone | 2.0 | 9
1.0 1-2 +{0} 0 {1}:1; 3-4 -{0} 0
{3} 5-6 +{2} 0 {4}:1; 7-8 -{2} 0

of each permit that has one
= good: a | a / a | 0 / 0 | a / 0 | 0
= bad, the token is not larger: a | 5 / 5 | a / 0 | 5 / 5 | 0
1.0 1-2 +permit2 0 9:0; 3-4 -permit2 0
2.0 5-6 +permit2,permit2 0 {}:0 {}:0

no node in turn after another holder
= bad, the token is not larger
1.0 1-2 +shared 0 a:1; 3-4 -shared 0
2.0 5-6 +shared 0 b:1; 7-8 -shared 0
1.1 9-10 +shared 0 a:1

no node in turn after a loss
= good: 0
= bad: -15 / -16 / -28
1.0 1-2 +shared 0 a:1; 3-4 -shared {}
1.1 5-6 +shared 0 a:1

in the order of the grants whatever the calls
= good: a | 9
= bad, the token is not larger: 9 | a
1.0 1-6 +alone 0 {}:1; 7-8 -alone 0
2.0 1-3 +alone 0 {}:1; 4-5 -alone 0

they begin anew with lost data
= good: w 10 11
= bad: _
1.0 1-2 +alone 0 a:1; ~9 alone; 3-20 -alone -16
{}
2.0 5-15 +alone 0 1:1

# --- losses

the next one comes when the window is over
= good: 6 | -16 / 5 | -16 / 6 | -28 / 5 | -28
= bad, somebody is inside: 4.9 | -16 / 4.9 | -28
1.0 1-2 +alone 0 a:1; ~5 alone; 10-11 -alone {1}
2.0 2-{0} +alone 0 b:1

what was whole was nobody else's, and what is not confirmed goes later if at all
= bad, somebody is inside: 6 | 0 / 6 | -15
= good: 12 | 0 / 12 | -15 / 10.5 | -15 / 100 | -15
1.0 1-2 +alone 0 a:1; ~5 alone; 10-11 -alone {1}
2.0 2-{0} +alone 0 b:1

who gives back claims no more
= good
1.0 1-2 +alone 0 a:1; ~50 alone; 3-4 -alone -16
2.0 3-5 +alone 0 b:1

a lease that was renewed to end sooner
= good: < | 6
= bad, somebody is inside: < | 4.5 / ~ | 6
1.0 1-2 +alone 0 a:1; ~50 alone; {}3 alone; ~5 alone; 20-21 -alone -16
2.0 4-{} +alone 0 b:1

who was killed
= good: 6
= bad, somebody is inside: 4
1.0 1-2 +alone 0 a:1; ~5 alone
2.0 2-{} +alone 0 b:1

who was killed asking
= good
1.0 1- +alone
2.0 2-3 +alone 0 b:1

who was killed giving back
= good
1.0 1-2 +alone 0 a:1; ~50 alone; 3- -alone
2.0 4-5 +alone 0 b:1

one that is lost is not entered by the next lock
= good
1.0 1-2 +alone 0 a:1; 3-4 -alone -16; 5-6 +alone 0 b:1; 7-8 -alone 0

what happens inside a lost hold does not count
= good
1.0 1-2 +alone 0 a:1; 5-6 +alone 0 a:2; 7-8 -alone -28; 9-10 -alone -16
2.0 3-4 +alone 0 b:1

who was told so inside hears nothing else
= good: 0 | 0 / 0 | -16 / -28 | 0 / -15 | -28 / -16 | -16
= bad, not so deep: -16 | 0 / -16 | -15 / -16 | -28
1.0 1-2 +alone 0 a:1; 3-4 +alone 0 a:2; 5-6 -alone {}; 9-10 -alone {}

who was told so inside does not enter again
= bad, not so deep
1.0 1-2 +alone 0 a:1; 3-4 +alone 0 a:2; 5-6 -alone -16; 7-8 +alone 0 a:2; 9-10 -alone -16; 11-12 -alone -16

a wipe ends what nobody holds
= good: 9
= bad: 12
1.0 1-2 +alone 0 a:1; ~{} alone
w 10 11
2.0 15-16 +alone 0 1:1

# --- readers

they share and writers do not
= good: read | read
= bad, inside: read | alone / alone | read / alone | alone
1.0 1-2 +{0} 0 a:1; 4-5 -{0} 0
2.0 2-3 +{1} 0 b:1; 6-7 -{1} 0

a writer becomes a reader
= good: a | read | 6 / a | alone | 10
= bad, somebody is inside: a | alone | 6
= bad, not its write lock's token: b | read | 6
1.0 1-2 +alone 0 a:1; 2-3 +read 0 {0}:1; 4-5 -alone 0; 8-9 -read 0
2.0 5-{2} +{1} 0 b:1

a reader under another one's write lock
= bad, a writer is inside
1.0 1-2 +alone 0 a:1; 4-5 -alone 0
1.1 2-3 +read 0 a:1

a reader is refused the write lock
= good: read
= bad, it may wait: alone
1.0 1-2 +{0} 0 a:1; 2-3 +alone -8; 4-5 -{0} 0

a reader becomes a writer
= bad, somebody is inside
1.0 1-2 +read 0 a:1; 2-3 +alone 0 b:1; 4-5 -alone 0; 6-7 -read 0

a killed reader
= good: 6
= bad, somebody is inside: 4
1.0 1-2 +read 0 a:1; ~5 read
2.0 2-{} +alone 0 b:1

# --- permits

no more than there are
= good: permit2 | 3
= bad, no permit is left: permit1 | 3
1.0 1-2 +{0} 0 a:0; ~5 {0}; 7-8 -{0} 0
2.0 2-{1} +{0} 0 b:0

no more than there are, of several; and each is lost by itself
= good: 9 | 0 / 6 | -16
= bad, no permit is left: 3 | 0 / 4 | -16
1.0 1-2 +permit2,permit2 0 a:0 a:0; ~5 permit2,permit2; 7-8 -permit2,permit2 0 {1}
2.0 2-{0} +permit2 0 b:0

given back one by one
= good: permit2 | b:0
= bad, no permit is left: permit2,permit2 | b:0 b:0
1.0 1-2 +permit2,permit2 0 a:0 a:0; 3-4 -permit2 0; 7-8 -permit2 0
2.0 5-6 +{} 0 {}

# --- tries

busy where somebody holds
= good
1.0 1-2 +alone 0 a:1; 5-6 -alone 0
2.0 3-4 +alone try sync -11

busy where nobody is
= bad, nobody is inside: try / try sync
1.0 1-2 +alone {} -11

busy where who is inside is not in the way
= bad, nobody is in its way: read | read / permit2 | permit2
= good: read | alone / alone | read / alone | alone / permit1 | permit1
1.0 1-2 +{0} 0 a:1; 5-6 -{0} 0
2.0 3-4 +{1} try sync -11

busy by readers behind whom a writer queues
= good
1.0 1-2 +read 0 a:1; 5-6 -read 0
3.0 2-7 +alone 0 b:1
2.0 3-4 +read try sync -11

busy by a server that lags
= good: 9-10 | try
= bad, nobody is inside: 9-10 | try sync / 19-20 | try
1.0 1-2 +alone 0 a:1; 3-4 -alone 0
2.0 {} +alone {} -11

busy where somebody queues
= good
1.0 1-4 +alone 0 a:1
2.0 2-3 +alone try sync -11

busy by a node that is left
= good: 20-21
= bad, nobody is inside: 40-41
1.0 1-2 +alone -12
2.0 {} +alone try sync -11

busy of two between two holders: the search decides
= good
1.0 1-2 +alone 0 a:1; 3-5 -alone 0
2.0 3-4 +alone try sync -11
"""


def ns(seconds):
    return int(float(seconds) * S)


def items(text):
    return " ".join(item if "=" in item else item + "=/p" for item in text.split(","))


def lines(history):
    """As the programs write them, worker by worker."""
    for text in filter(None, map(str.strip, history.splitlines())):
        worker, _, steps = text.partition(" ")
        if worker == "w":
            yield f"w {' '.join(str(ns(at)) for at in steps.split())}"
            continue
        for at, what, *words in map(str.split, steps.split(";")):
            if at[0] in "~<":
                yield f"{at[0]} {ns(at[1:])} {worker} {items(what)}"
                continue
            flags = [word for word in words if word in ("try", "sync")]
            verb = {"+": "acquire", "-": "release"}[what[0]]
            begin, _, end = at.partition("-")
            yield " ".join(["?", str(ns(begin)), worker, verb, *flags, items(what[1:])])
            if end:
                yield " ".join(["!", str(ns(end)), worker, *words[len(flags):]])


def tries():
    """The title, the verdict and the history of each."""
    for block in HISTORIES.split("\n\n"):
        title, *rest = block.strip().splitlines()
        verdicts = [line[2:] for line in rest if line.startswith("= ")]
        history = "\n".join(line for line in rest if not line.startswith("= "))
        for verdict, _, values in (line.partition(": ") for line in verdicts):
            for each in values.split(" / "):
                filled = [value.strip().replace("_", "") for value in each.split("|")]
                yield title, verdict, history.format(*filled)


class ByHand(unittest.TestCase):
    def test_each_history(self):
        count = 0
        for title, verdict, history in tries():
            with self.subTest(title=title, verdict=verdict, history=history):
                found = {name: search.search(path.operations) for name, path in calls.read(lines(history)).items()}
                self.assertEqual({result.fine for result in found.values()}, {verdict == "good"})
                if verdict != "good":
                    self.assertIn(verdict.partition(", ")[2], "\n".join(search.describe(found["/p"])))
                count += 1
        self.assertEqual(count, 122)

    def test_other_paths_do_not_matter(self):
        found = calls.read(lines("""1.0 1-2 +alone=/a,alone=/b 0 a:1 b:1; 4-5 -alone=/a,alone=/b 0 0
                                    2.0 2-3 +alone=/b 0 c:1"""))
        self.assertEqual({name: search.search(path.operations).fine for name, path in found.items()}, {"/a": True, "/b": False})


class Reading(unittest.TestCase):
    def test_what_no_program_writes(self):
        for text in ("x 1 1.0", "? 1 1.0 acquire beside=/p", "! 1 1.0 0", "? 1 1.0 acquire alone=/p\n? 2 1.0 release",
                     "? 1 1.0 release alone=/p\n! 2 1.0 0", "? 1 1.0 acquire alone=/p\n! 2 1.0 0", "?",
                     "? 1 1.0 acquire alone=/p\n! 2 1.0 0 a:1\n? 3 1.0 release alone=/p\n! 4 1.0 -9"):
            with self.assertRaises(calls.Bad, msg=text):
                calls.read(text.splitlines())


def every_order(operations):
    """The same question, by trying all orders."""
    must = {i for i, each in enumerate(operations) if not each.optional}

    def goes_on(left, state):
        if not left & must:
            return True
        first = min(operations[i].ret for i in left & must)
        return any(operations[i].call <= first and spec.why_not(state, operations[i]) is None and
                   goes_on(left - {i}, spec.after(state, operations[i])) for i in left)

    return goes_on(frozenset(range(len(operations))), spec.START)


def random_history(chance):
    """Of three threads of two processes, one of which may have permits or read, at random times."""
    halves = chance.choice((["alone"], ["alone", "read", "read"], ["permit2"], ["shared"]))
    rows = []
    for worker in ("1.0", "1.1", "2.0"):
        at, steps = chance.random() * 6, []
        for _ in range(chance.randint(1, 2)):
            half = chance.choice(halves)
            asked, granted, proved, leaves, at = sorted(at + chance.random() * 3 for _ in range(5))
            code = chance.choice((0, 0, 0, -15, -16))
            steps += [f"{asked}-{granted} +{half} 0 {16 + int(granted * 4):x}:1", f"~{proved} {half}", f"{leaves}-{at} -{half} {code}"]
            at += 0.001
        rows.append(f"{worker} {'; '.join(steps)}")
    return "\n".join(rows)


class EveryOrder(unittest.TestCase):
    def test_the_search_agrees(self):
        chance = random.Random(1)
        seen = {True: 0, False: 0}
        for _ in range(1500):
            operations = calls.read(lines(random_history(chance)))["/p"].operations
            fine = search.search(operations).fine
            self.assertEqual(fine, every_order(operations))
            seen[fine] += 1
        self.assertGreater(min(seen.values()), 300, seen)

    def test_it_gives_up(self):
        operations = calls.read(lines("1.0 1-2 +read 0 a:1; 4-5 -read 0\n2.0 2-3 +read 0 b:1; 6-7 -read 0"))["/p"].operations
        self.assertIsNone(search.search(operations, states_max=2).fine)


if __name__ == "__main__":
    unittest.main()

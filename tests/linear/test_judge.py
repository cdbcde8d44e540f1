#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge's own test: histories by hand, good ones and for each rule one that breaks it, as the programs would have
written them. And all short histories of a mutex, judged by trying every order."""
import itertools
import random
import sys
import unittest

sys.dont_write_bytecode = True

import calls
import search
import spec

S = 10**9


def lines(text):
    """Times in seconds; one path, /p, unless named."""
    for words in filter(None, map(str.split, text.splitlines())):
        if words[0] == "w":
            yield f"w {int(float(words[1]) * S)} {int(float(words[2]) * S)}"
            continue
        words[1] = str(int(float(words[1]) * S))
        yield " ".join(word if "=" in word or word not in ("alone", "shared", "once", "read", "cached", "permit1", "permit2")
                       else word + "=/p" for word in words)


def verdict(text):
    """For each path: is it linearizable?"""
    return {name: search.search(path.operations).fine for name, path in calls.read(lines(text)).items()}


class Judge(unittest.TestCase):
    def good(self, text):
        self.assertEqual(set(verdict(text).values()), {True})

    def bad(self, text, why=""):
        paths = calls.read(lines(text))
        result = search.search(paths["/p"].operations)
        self.assertIs(result.fine, False)
        self.assertIn(why, "\n".join(search.describe(result)))


class Mutex(Judge):
    def test_one_after_the_other(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 2.0 acquire alone
            ? 3 1.0 release alone
            ! 4 1.0 0
            ! 5 2.0 0 b:1
            ? 6 2.0 release alone
            ! 7 2.0 0""")

    def test_the_unlock_is_at_some_moment_of_its_call(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 1.0 release alone
            ? 4 2.0 acquire alone
            ! 5 2.0 0 b:1
            ! 6 1.0 0
            ? 7 2.0 release alone
            ! 8 2.0 0""")

    def test_two_inside(self):
        self.bad("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 2.0 acquire alone
            ! 3 2.0 0 b:1
            ? 4 1.0 release alone
            ! 5 1.0 0
            ? 6 2.0 release alone
            ! 7 2.0 0""", "somebody is inside")

    def test_two_inside_who_never_unlock(self):
        self.bad("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ 9 1.0 alone
            ? 2 2.0 acquire alone
            ! 3 2.0 0 b:1""", "somebody is inside")

    def test_other_paths_do_not_matter(self):
        self.assertEqual(verdict("""
            ? 1 1.0 acquire alone=/a alone=/b
            ! 2 1.0 0 a:1 b:1
            ? 2 2.0 acquire alone=/b
            ! 3 2.0 0 c:1
            ? 4 1.0 release alone=/a alone=/b
            ! 5 1.0 0 0"""), {"/a": True, "/b": False})

    def test_entered_again(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire alone
            ! 3 1.0 0 a:2
            ? 3 1.0 release alone
            ! 4 1.0 0
            ? 4 1.0 release alone
            ! 5 1.0 0
            ? 1 2.0 acquire alone
            ! 6 2.0 0 b:1""")

    def test_granted_between_two_unlocks(self):
        self.bad("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire alone
            ! 3 1.0 0 a:2
            ? 3 1.0 release alone
            ! 4 1.0 0
            ? 1 2.0 acquire alone
            ! 5 2.0 0 b:1
            ? 6 1.0 release alone
            ! 7 1.0 0
            ? 8 2.0 release alone
            ! 9 2.0 0""", "somebody is inside")

    def test_entered_again_with_another_count_or_token(self):
        begun = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire alone
            ! 3 1.0 0 {}
            ? 4 1.0 release alone
            ! 5 1.0 0
            ? 5 1.0 release alone
            ! 6 1.0 0"""
        self.good(begun.format("a:2"))
        self.bad(begun.format("a:3"), "not so deep")
        self.bad(begun.format("b:2"), "another token")

    def test_not_entered_again_but_granted(self):
        self.bad("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire alone
            ! 3 1.0 0 b:1
            ? 4 1.0 release alone
            ! 5 1.0 0
            ? 5 1.0 release alone
            ! 6 1.0 0""", "somebody is inside")

    def test_entered_again_by_who_is_not_inside(self):
        begun = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:{}
            ? 3 1.0 release alone
            ! 4 1.0 0"""
        self.good(begun.format(1))
        self.bad(begun.format(3), "not so deep")

    def test_one_that_is_not_reentrant(self):
        begun = """
            ? 1 1.0 acquire {0}
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire {0}
            ! 3 1.0 0 a:2
            ? 4 1.0 release {0}
            ! 5 1.0 0
            ? 5 1.0 release {0}
            ! 6 1.0 0"""
        self.good(begun.format("alone"))
        self.bad(begun.format("once"), "not reentrant")

    def test_who_waits_in_vain_changes_nothing(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 2.0 acquire alone
            ! 3 2.0 -12
            ? 4 1.0 release alone
            ! 5 1.0 0""")


class Tokens(Judge):
    def after(self, first, second, halves=("alone", "alone")):
        return f"""
            ? 1 1.0 acquire {halves[0]}
            ! 2 1.0 0 {first}:1
            ? 3 1.0 release {halves[0]}
            ! 4 1.0 0
            ? 5 {second[0]} acquire {halves[1]}
            ! 6 {second[0]} 0 {second[1]}:1
            ? 7 {second[0]} release {halves[1]}
            ! 8 {second[0]} 0"""

    def test_they_grow(self):
        self.good(self.after("9", ("2.0", "a")))
        self.bad(self.after("a", ("2.0", "9")), "the token is not larger")
        self.bad(self.after("a", ("2.0", "a")), "the token is not larger")

    def test_one_that_is_not_known(self):
        self.good(self.after("a", ("2.0", "0")))
        self.good(self.after("0", ("2.0", "9")))

    def test_of_readers_too(self):
        self.good(self.after("9", ("2.0", "a"), ("read", "alone")))
        self.bad(self.after("a", ("2.0", "9"), ("read", "alone")), "the token is not larger")
        self.bad(self.after("a", ("2.0", "9"), ("alone", "read")), "the token is not larger")
        self.bad(self.after("a", ("2.0", "9"), ("read", "read")), "the token is not larger")

    def test_of_permits_too(self):
        self.bad(self.after("a", ("2.0", "9"), ("permit2", "permit2")), "the token is not larger")

    def test_of_each_permit_that_has_one(self):
        second = """
            ? 1 1.0 acquire permit2
            ! 2 1.0 0 9:0
            ? 3 1.0 release permit2
            ! 4 1.0 0
            ? 5 2.0 acquire permit2 permit2
            ! 6 2.0 0 {}:0 {}:0"""
        for tokens in (("a", "a"), ("a", "0"), ("0", "a"), ("0", "0")):
            self.good(second.format(*tokens))
        for tokens in (("a", "5"), ("5", "a"), ("0", "5"), ("5", "0")):
            self.bad(second.format(*tokens), "the token is not larger")

    def test_one_node_in_turn(self):
        both = ("shared", "shared")
        self.good(self.after("a", ("1.1", "a"), both))
        self.bad(self.after("a", ("2.0", "a"), both), "the token is not larger")
        self.bad(self.after("a", ("1.1", "9"), both), "the token is not larger")
        self.bad(self.after("a", ("1.1", "a"), ("alone", "alone")), "the token is not larger")

    def test_readers_of_one_node(self):
        self.good(self.after("a", ("2.0", "9"), ("read", "cached")))
        self.bad(self.after("a", ("2.0", "9"), ("alone", "cached")), "the token is not larger")
        self.bad(self.after("a", ("2.0", "9"), ("cached", "read")), "the token is not larger")
        self.bad(self.after("a", ("2.0", "9"), ("cached", "alone")), "the token is not larger")

    def test_no_node_in_turn_after_another_holder(self):
        self.bad("""
            ? 1 1.0 acquire shared
            ! 2 1.0 0 a:1
            ? 3 1.0 release shared
            ! 4 1.0 0
            ? 5 2.0 acquire shared
            ! 6 2.0 0 b:1
            ? 7 2.0 release shared
            ! 8 2.0 0
            ? 9 1.1 acquire shared
            ! 10 1.1 0 a:1""", "the token is not larger")

    def test_no_node_in_turn_after_a_loss(self):
        begun = """
            ? 1 1.0 acquire shared
            ! 2 1.0 0 a:1
            ? 3 1.0 release shared
            ! 4 1.0 {}
            ? 5 1.1 acquire shared
            ! 6 1.1 0 a:1"""
        self.good(begun.format(0))
        for code in (-15, -16, -28):
            self.bad(begun.format(code))

    def test_in_the_order_of_the_grants_whatever_the_calls(self):
        self.good("""
            ? 1 1.0 acquire alone
            ? 1 2.0 acquire alone
            ! 3 2.0 0 9:1
            ? 4 2.0 release alone
            ! 5 2.0 0
            ! 6 1.0 0 a:1
            ? 7 1.0 release alone
            ! 8 1.0 0""")
        self.bad("""
            ? 1 1.0 acquire alone
            ? 1 2.0 acquire alone
            ! 3 2.0 0 a:1
            ? 4 2.0 release alone
            ! 5 2.0 0
            ! 6 1.0 0 9:1
            ? 7 1.0 release alone
            ! 8 1.0 0""", "the token is not larger")

    def test_they_begin_anew_with_lost_data(self):
        begun = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ {} 1.0 alone
            ? 3 1.0 release alone
            ! {} 1.0 -16
            w 10 11
            ? 5 2.0 acquire alone
            ! 15 2.0 0 1:1"""
        self.good(begun.format(9, 20))
        self.bad(begun.format(9, 20).replace("w 10 11", ""))


class Losses(Judge):
    LOST = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ 5 1.0 alone
            ? {} 2.0 acquire alone
            ! {} 2.0 0 b:1
            ? 10 1.0 release alone
            ! 11 1.0 {}"""

    def test_the_next_one_comes_when_the_window_is_over(self):
        for code in (-16, -28):
            self.good(self.LOST.format(2, 6, code))
            self.good(self.LOST.format(2, 5, code))
            self.bad(self.LOST.format(2, 4.9, code), "somebody is inside")

    def test_what_was_whole_was_nobody_elses(self):
        for code in (0, -15):
            self.bad(self.LOST.format(2, 6, code), "somebody is inside")
            self.good(self.LOST.format(2, 12, code))

    def test_what_is_not_confirmed_goes_later_if_at_all(self):
        self.good(self.LOST.format(2, 10.5, -15))
        self.good(self.LOST.format(2, 100, -15))

    def test_who_gives_back_claims_no_more(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ 50 1.0 alone
            ? 3 1.0 release alone
            ! 4 1.0 -16
            ? 3 2.0 acquire alone
            ! 5 2.0 0 b:1""")

    def test_a_lease_that_was_renewed_to_end_sooner(self):
        begun = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ 50 1.0 alone
            {} 3 1.0 alone
            ~ 5 1.0 alone
            ? 4 2.0 acquire alone
            ! {} 2.0 0 b:1
            ? 20 1.0 release alone
            ! 21 1.0 -16"""
        self.good(begun.format("<", 6))
        self.bad(begun.format("<", 4.5), "somebody is inside")
        self.bad(begun.format("~", 6), "somebody is inside")

    def test_who_was_killed(self):
        killed = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ 5 1.0 alone
            ? 2 2.0 acquire alone
            ! {} 2.0 0 b:1"""
        self.good(killed.format(6))
        self.bad(killed.format(4), "somebody is inside")

    def test_who_was_killed_in_a_call(self):
        self.good("""
            ? 1 1.0 acquire alone
            ? 2 2.0 acquire alone
            ! 3 2.0 0 b:1""")
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ 50 1.0 alone
            ? 3 1.0 release alone
            ? 4 2.0 acquire alone
            ! 5 2.0 0 b:1""")

    def test_one_that_is_lost_is_not_entered_by_the_next_lock(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 1.0 release alone
            ! 4 1.0 -16
            ? 5 1.0 acquire alone
            ! 6 1.0 0 b:1
            ? 7 1.0 release alone
            ! 8 1.0 0""")

    def test_what_happens_inside_a_lost_hold_does_not_count(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 2.0 acquire alone
            ! 4 2.0 0 b:1
            ? 5 1.0 acquire alone
            ! 6 1.0 0 a:2
            ? 7 1.0 release alone
            ! 8 1.0 -28
            ? 9 1.0 release alone
            ! 10 1.0 -16""")

    def test_who_was_told_so_inside_hears_nothing_else(self):
        inside = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 1.0 acquire alone
            ! 4 1.0 0 a:2
            ? 5 1.0 release alone
            ! 6 1.0 {}
            ? 9 1.0 release alone
            ! 10 1.0 {}"""
        for first, then in ((0, 0), (0, -16), (-28, 0), (-15, -28), (-16, -16)):
            self.good(inside.format(first, then))
        for then in (0, -15, -28):
            self.bad(inside.format(-16, then), "not so deep")

    def test_who_was_told_so_inside_does_not_enter_again(self):
        self.bad("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 1.0 acquire alone
            ! 4 1.0 0 a:2
            ? 5 1.0 release alone
            ! 6 1.0 -16
            ? 7 1.0 acquire alone
            ! 8 1.0 0 a:2
            ? 9 1.0 release alone
            ! 10 1.0 -16
            ? 11 1.0 release alone
            ! 12 1.0 -16""", "not so deep")

    def test_a_wipe_ends_what_nobody_holds(self):
        begun = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ~ {} 1.0 alone
            w 10 11
            ? 15 2.0 acquire alone
            ! 16 2.0 0 1:1"""
        self.good(begun.format(9))
        self.bad(begun.format(12))


class Readers(Judge):
    TWO = """
            ? 1 1.0 acquire {}
            ! 2 1.0 0 a:1
            ? 2 2.0 acquire {}
            ! 3 2.0 0 b:1
            ? 4 1.0 release {}
            ! 5 1.0 0
            ? 6 2.0 release {}
            ! 7 2.0 0"""

    def test_they_share_and_writers_do_not(self):
        for one, other in itertools.product(("read", "alone"), repeat=2):
            text = self.TWO.format(one, other, one, other)
            if one == other == "read":
                self.good(text)
            else:
                self.bad(text, "inside")

    DOWNGRADE = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire read
            ! 3 1.0 0 {}:1
            ? 4 1.0 release alone
            ! 5 1.0 0
            ? 5 2.0 acquire {}
            ! {} 2.0 0 b:1
            ? 8 1.0 release read
            ! 9 1.0 0"""

    def test_a_writer_becomes_a_reader(self):
        self.good(self.DOWNGRADE.format("a", "read", 6))
        self.good(self.DOWNGRADE.format("a", "alone", 10))
        self.bad(self.DOWNGRADE.format("a", "alone", 6), "somebody is inside")
        self.bad(self.DOWNGRADE.format("b", "read", 6), "not its write lock's token")

    def test_a_reader_under_another_ones_write_lock(self):
        self.bad("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 2 1.1 acquire read
            ! 3 1.1 0 a:1
            ? 4 1.0 release alone
            ! 5 1.0 0""", "a writer is inside")

    def test_a_reader_is_refused_the_write_lock(self):
        refused = """
            ? 1 1.0 acquire {0}
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire alone
            ! 3 1.0 {1}
            ? 4 1.0 release {0}
            ! 5 1.0 0"""
        self.good(refused.format("read", -8))
        self.bad(refused.format("alone", -8), "it may wait")

    def test_a_reader_becomes_a_writer(self):
        self.bad("""
            ? 1 1.0 acquire read
            ! 2 1.0 0 a:1
            ? 2 1.0 acquire alone
            ! 3 1.0 0 b:1
            ? 4 1.0 release alone
            ! 5 1.0 0
            ? 6 1.0 release read
            ! 7 1.0 0""", "somebody is inside")

    def test_a_killed_reader(self):
        killed = """
            ? 1 1.0 acquire read
            ! 2 1.0 0 a:1
            ~ 5 1.0 read
            ? 2 2.0 acquire alone
            ! {} 2.0 0 b:1"""
        self.good(killed.format(6))
        self.bad(killed.format(4), "somebody is inside")


class Permits(Judge):
    def of(self, permits, count, second):
        word = f"permit{permits} " * count
        return f"""
            ? 1 1.0 acquire {word}
            ! 2 1.0 0 {"a:0 " * count}
            ~ 5 1.0 {word}
            ? 2 2.0 acquire permit{permits}
            ! {second} 2.0 0 b:0
            ? 7 1.0 release {word}
            ! 8 1.0 {"{} " * count}"""

    def test_no_more_than_there_are(self):
        self.good(self.of(2, 1, 3).format(0))
        self.bad(self.of(2, 2, 3).format(0, 0), "no permit is left")
        self.bad(self.of(1, 1, 3).format(0), "no permit is left")
        self.good(self.of(2, 2, 9).format(0, 0))

    def test_each_is_lost_by_itself(self):
        self.good(self.of(2, 2, 6).format(0, -16))
        self.bad(self.of(2, 2, 4).format(0, -16), "no permit is left")

    def test_given_back_one_by_one(self):
        back = """
            ? 1 1.0 acquire permit2 permit2
            ! 2 1.0 0 a:0 a:0
            ? 3 1.0 release permit2
            ! 4 1.0 0
            ? 5 2.0 acquire permit2 {}
            ! 6 2.0 0 b:0 {}
            ? 7 1.0 release permit2
            ! 8 1.0 0"""
        self.good(back.format("", ""))
        self.bad(back.format("permit2", "b:0"), "no permit is left")


class Tries(Judge):
    def test_busy_where_somebody_holds(self):
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 2.0 acquire try sync alone
            ! 4 2.0 -11
            ? 5 1.0 release alone
            ! 6 1.0 0""")

    def test_busy_where_nobody_is(self):
        for flags in ("try", "try sync"):
            self.bad(f"""
                ? 1 1.0 acquire {flags} alone
                ! 2 1.0 -11""", "nobody is inside")

    BESIDE = """
            ? 1 1.0 acquire {0}
            ! 2 1.0 0 a:1
            ? 3 2.0 acquire try sync {1}
            ! 4 2.0 -11
            ? 5 1.0 release {0}
            ! 6 1.0 0"""

    def test_busy_where_who_is_inside_is_not_in_the_way(self):
        for inside, asks in (("read", "read"), ("permit2", "permit2")):
            self.bad(self.BESIDE.format(inside, asks), "nobody is in its way")
        for inside, asks in (("read", "alone"), ("alone", "read"), ("alone", "alone"), ("permit1", "permit1")):
            self.good(self.BESIDE.format(inside, asks))

    def test_busy_by_readers_behind_whom_a_writer_queues(self):
        self.good("""
            ? 1 1.0 acquire read
            ! 2 1.0 0 a:1
            ? 2 3.0 acquire alone
            ? 3 2.0 acquire try sync read
            ! 4 2.0 -11
            ? 5 1.0 release read
            ! 6 1.0 0
            ! 7 3.0 0 b:1""")

    def test_busy_by_a_server_that_lags(self):
        text = """
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 1.0 release alone
            ! 4 1.0 0
            ? {} 2.0 acquire try {} alone
            ! {} 2.0 -11"""
        self.good(text.format(9, "", 10))
        self.bad(text.format(9, "sync", 10), "nobody is inside")
        self.bad(text.format(19, "", 20), "nobody is inside")

    def test_busy_where_somebody_queues(self):
        self.good("""
            ? 1 1.0 acquire alone
            ? 2 2.0 acquire try sync alone
            ! 3 2.0 -11
            ! 4 1.0 0 a:1""")

    def test_busy_by_a_node_that_is_left(self):
        text = """
            ? 1 1.0 acquire alone
            ! 2 1.0 -12
            ? {} 2.0 acquire try sync alone
            ! {} 2.0 -11"""
        self.good(text.format(20, 21))
        self.bad(text.format(40, 41), "nobody is inside")

    def test_busy_of_two_between_two_holders(self):
        """The search decides: the holder that one try met was there before the other try began."""
        self.good("""
            ? 1 1.0 acquire alone
            ! 2 1.0 0 a:1
            ? 3 1.0 release alone
            ? 3 2.0 acquire try sync alone
            ! 4 2.0 -11
            ! 5 1.0 0""")


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
        at = chance.random() * 6
        for _ in range(chance.randint(1, 2)):
            half = chance.choice(halves)
            moments = sorted(at + chance.random() * 3 for _ in range(5))
            token = 16 + int(moments[1] * 4)
            rows.append((moments[0], f"? {moments[0]} {worker} acquire {half}"))
            rows.append((moments[1], f"! {moments[1]} {worker} 0 {token:x}:1"))
            rows.append((moments[1] + 1e-6, f"~ {moments[2]} {worker} {half}"))
            rows.append((moments[3], f"? {moments[3]} {worker} release {half}"))
            rows.append((moments[4], f"! {moments[4]} {worker} {chance.choice((0, 0, 0, -15, -16))}"))
            at = moments[4] + 0.001
    return "\n".join(row for _, row in sorted(rows))


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
        operations = calls.read(lines(Readers.TWO.format(*["read"] * 4)))["/p"].operations
        self.assertIsNone(search.search(operations, states_max=2).fine)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the checker distinguishes each kind of wrong from what only looks like it. Method: journals written by hand, with
the record they end in, and the verdict that is right.

A step is KIND PROCESS (each has one thread, in its first life), and then TOKEN, VALUE, FOUND. "gone P T CODE" is leave and
freed; "cycle P T FOUND" a whole update. Codes of unlock: 15 not confirmed, 16 lost, 28 in doubt."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True

import checker
import options
import report
import witness

STORIES = '''
two updates, one after the other: counter 2
    cycle 0 1 0, cycle 1 2 1
the record lacks the last update: counter 1, lost_updates 1
    cycle 0 1 0, cycle 1 2 1
both read before either wrote: counter 1, lost_updates 1, overlaps 1
    enter 0 1 0 0, enter 1 2 0 0, write 0 1 1 0, write 1 2 1 1, gone 0 1 0, gone 1 2 0
the same without unlocks - nobody vouches, but the fence accepted both: counter 1, lost_updates 1, overlaps 1
    enter 0 0 0 0, enter 1 0 0 0, write 0 0 1 0, leave 0 0, write 1 0 1 1, leave 1 0
killed between journal and record: counter 1, torn 1
    enter 0 1 0 0, write 0 1 1 0, kill 0, cycle 1 2 0
the same, and the kill was noted late: counter 1, torn 1
    enter 0 1 0 0, write 0 1 1 0, enter 1 2 0 0, kill 0, write 1 2 1 0, gone 1 2 0
the same, and nobody came after: counter 0, torn 1
    enter 0 1 0 0, write 0 1 1 0, kill 0
killed just after the record was written: counter 2
    enter 0 1 0 0, write 0 1 1 0, kill 0, cycle 1 2 1
an update vanished though its writer lived: counter 1, lost_updates 1
    cycle 0 1 0, cycle 1 2 0
an update vanished, its writer was killed only later: counter 1, lost_updates 1
    cycle 0 1 0, kill 0, cycle 1 2 0
the same, seen before it was killed: counter 1, lost_updates 1
    cycle 0 1 0, cycle 1 2 0, kill 0
a paused holder was refused and heard that it had lost the lock: counter 1, refused_stale 1
    enter 0 1 0 0, cycle 1 2 0, stale 0 1 1 1, gone 0 1 16
a holder was refused and heard that it had held the lock all the time: counter 1, overlaps 1, refused_stale 1, unexplained 1
    enter 0 1 0 0, cycle 1 2 0, stale 0 1 1 1, gone 0 1 0
a paused holder was refused and heard that it may have lost the lock: counter 1, refused_stale 1
    enter 0 1 0 0, cycle 1 2 0, stale 0 1 1 1, gone 0 1 28
a paused holder was refused and heard no more than that no answer came: counter 1, overlaps 1, refused_stale 1, unexplained 1
    enter 0 1 0 0, cycle 1 2 0, stale 0 1 1 1, gone 0 1 15
a holder came too late to enter: counter 1, refused_stale 1
    cycle 1 2 0, stale 0 1 0 1, gone 0 1 16
tokens decreased: counter 1, refused_stale 1, unexplained 1
    cycle 1 2 0, stale 0 1 0 1, gone 0 1 0
a lost holder was late to leave: counter 2
    enter 0 1 0 0, write 0 1 1 0, enter 1 2 0 1, gone 0 1 16, write 1 2 2 1, gone 1 2 0
the next one was in before the holder had left: counter 2, overlaps 1
    enter 0 1 0 0, write 0 1 1 0, enter 1 2 0 1, gone 0 1 0, write 1 2 2 1, gone 1 2 0
a killed holder does not stay inside: counter 2
    enter 0 1 0 0, write 0 1 1 0, cycle 1 2 1, kill 0
the dead write: counter 0, corrupt 1
    kill 0, enter 0 1 0 0
the record holds what nobody wrote: counter 8, lost_updates -6, corrupt 1
    cycle 0 1 0, cycle 1 2 7
'''
JUDGED = 'lost_updates', 'overlaps', 'refused_stale', 'unexplained', 'torn', 'corrupt'


def steps(text):
    for kind, process, *numbers in map(str.split, text.split(',')):
        token, value, found = (list(map(int, numbers)) + [0] * 3)[:3]
        if kind == 'cycle':
            found = value
            yield witness.Line('enter', int(process), token=token, found=found)
            yield witness.Line('write', int(process), token=token, value=found + 1, found=found)
        if kind in ('cycle', 'gone'):
            yield witness.Line('leave', int(process), token=token)
            yield witness.Line('freed', int(process), token=token, value=0 if kind == 'cycle' else value)
        else:
            yield witness.Line(kind, int(process), token=token, value=value, found=found)


def verdict(counter, text):
    with tempfile.TemporaryFile() as journal, tempfile.TemporaryFile() as record:
        os.write(record.fileno(), f'{f"counter={counter} token=0 writer=0.0.0":<{witness.SIZE}}'.encode())
        for line in [witness.Line('run', value=2, found=1), *steps(text)]:
            witness.append(journal.fileno(), line)
        return checker.run(journal.fileno(), record.fileno())


def faults(text):
    """Of a run in which nothing happened."""
    return report.faults(options.parse(text.split()), checker.Verdict(1, 1), odd=0)


failures = 0
if faults('--no-lock') != ['0 acquisitions'] or len(faults('--servers s --crash --pause')) != 3:
    sys.exit('a run in which nothing happened has other faults')
rows = STORIES.strip().splitlines()
for head, text in zip(rows[::2], rows[1::2]):
    name, _, expected = head.partition(': ')
    should = {word: int(number) for word, number in (each.split() for each in expected.split(', '))}
    found = verdict(should.pop('counter'), text)
    wrong = [f'{each} is {getattr(found, each)}, should be {should.get(each, 0)}' for each in JUDGED
             if getattr(found, each) != should.get(each, 0)]
    print('FAILED' if wrong else 'passed', name, *wrong, sep=': ')
    failures += bool(wrong)
sys.exit(f'{failures} of {len(rows) // 2} stories are judged wrong' if failures or len(rows) != 44 else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of the history (history.c): each rule, kept and broken."""
import ctypes
import os
import pathlib
import re
import sys
from ctypes import Structure, c_bool, c_char, c_char_p, c_int, c_size_t

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests/chaos'))

from shared import NEVER_UNLOCKED, Record

SECOND = 10**9
LOST = re.search(r'ZKL_ELOST = (-\d+)', (ROOT / 'include/zklock/error.h').read_text(encoding='utf-8'))[1]
HOLD, KINDS = 0, ['hold', 'busy', 'there', 'told']
ALONE, ACCESSES = 0, ['alone', 'reading', 'permit']


class Verdict(Structure):
    COUNTS = ['holds', 'proved', 'tries_busy', 'told', 'told_on_the_way', 'overlaps', 'disorders', 'wrong_busy', 'wrong_told']
    _fields_ = [(name, c_size_t) for name in COUNTS] + [('first', c_char * 500)]


class Place(Structure):
    _fields_ = [('name', c_char_p), ('room', c_int), ('shares', c_bool)]


PLACES = (Place * 3)((b'rwlock', 1), (b'permits', 3), (b'rare', 1))

# Records, "; " between two: the seat, what it had or heard, from which second to which, the token, and fields that differ. What
# the judge counts.
CASES = [
    # One after the other is right, and the moment of the change is nobody's; any shared time is an overlap, unless all read.
    ('1 alone 1-3 10; 2 alone 3-5 11', 'holds 2, proved 2'),
    ('1 alone 1-4 10; 2 alone 3-5 11', 'holds 2, proved 2, overlaps 1'),
    ('1 alone 1-4 10; 2 reading 3-5 11', 'holds 2, proved 2, overlaps 1'),
    ('1 reading 1-4 10; 2 alone 3-5 11', 'holds 2, proved 2, overlaps 1'),
    ('1 reading 1-4 10; 2 reading 3-5 11', 'holds 2, proved 2'),
    ('1 alone 1-9 10; 2 alone 3-3 11; 3 alone 5-6 12', 'holds 3, proved 2, overlaps 1'),
    # A writer that becomes a reader is with itself, and with nobody else.
    ('1 alone 1-3 10; 1 reading 2-5 10 below=1; 2 reading 4-5 11', 'holds 3, proved 3'),
    ('1 alone 1-3 10; 1 reading 2-5 10 below=1; 2 alone 4-5 11', 'holds 3, proved 3, overlaps 1'),
    ('1 alone 1-3 10; 2 reading 2-5 10 below=1', 'holds 2, proved 2, overlaps 1'),
    # As many holds overlap as there are permits, and not one more. Permits of one transaction share a token.
    ('1 permit 1-5 10; 1 permit 1-5 10; 2 permit 1-5 11; 3 permit 5-6 12', 'holds 4, proved 4'),
    ('1 permit 1-5 10; 1 permit 1-5 10; 2 permit 1-5 11; 3 permit 4-6 12', 'holds 4, proved 4, overlaps 1'),
    # Tokens grow in the order of holders, and of questions behind grants; not where all data were lost, or the question came
    # before the other grant. One process may hand a lock on with its token.
    ('1 alone 1-2 10; 7 alone 3-5 10', 'holds 2, proved 2, disorders 2'),
    ('1 alone 1-2 10; 2 alone 3-5 10', 'holds 2, proved 2'),
    ('1 permit 1-2 10; 2 permit 3-5 9', 'holds 2, proved 2, disorders 1'),
    ('1 alone 1-2 10; 2 alone 3-5 9 era=1', 'holds 2, proved 2'),
    ('1 permit 1-2 10; 2 permit 3-5 9 asked_ns=0', 'holds 2, proved 2'),
    # Readers may share a node that is older than others' nodes; a writer's is not.
    ('1 reading 1-2 11; 7 reading 4-5 10 cached=1', 'holds 2, proved 2'),
    ('1 alone 1-2 11; 7 reading 4-5 10 cached=1', 'holds 2, proved 2, disorders 2'),
    ('1 reading 1-2 11; 7 reading 4-5 10', 'holds 2, proved 2, disorders 1'),
    # "Busy" is right while somebody else may be there, and for a while after.
    ('1 there 1-2 0; 2 busy 11-0 0', 'tries_busy 1'),
    ('1 there 1-2 0; 2 busy 13-0 0', 'tries_busy 1, wrong_busy 1'),
    ('2 busy 11-0 0; 1 there 12-20 0', 'tries_busy 1, wrong_busy 1'),
    ('2 busy 11-0 0 serial=7; 2 there 11-41 0 serial=7', 'tries_busy 1, wrong_busy 1'),
    # A holder that a callback reported lost gets the same from unlock, or was killed before.
    ('1 alone 1-2 10; 0 told 9-0 10', 'holds 1, proved 1, told 1, wrong_told 1'),
    (f'1 alone 1-2 10 code={LOST}; 0 told 9-0 10', 'holds 1, proved 1, told 1'),
    (f'1 alone 1-2 10 code={NEVER_UNLOCKED}; 0 told 9-0 10; 0 told 9-0 11', 'holds 1, proved 1, told 2, told_on_the_way 1'),
    # What a killed process left, and had written down already, counts once.
    ('1 alone 1-2 10 serial=7; 1 alone 1-3 10 serial=7', 'holds 1, proved 1'),
]


def record(serial, text):
    seat, what, times, token, *more = text.split()
    begun, until = (int(time) * SECOND for time in times.split('-'))
    kind = KINDS.index(what) if what in KINDS else HOLD
    access = ACCESSES.index(what) if what in ACCESSES else ALONE
    place = 2 if what in ('busy', 'there') else 1 if what == 'permit' else 0
    made = Record(seat=int(seat), kind=kind, access=access, place=place, asked_ns=begun - 1, begun_ns=begun, until_ns=until,
                  token=int(token), serial=100 + serial)
    for name, _, value in (field.partition('=') for field in more):
        setattr(made, name, int(value))
    return made


def judged(judge, texts):
    records = [record(serial, text) for serial, text in enumerate(texts.split('; '))]
    verdict = judge((Record * len(records))(*records), c_size_t(len(records)), PLACES)
    return ', '.join(f'{name} {getattr(verdict, name)}' for name in Verdict.COUNTS if getattr(verdict, name))


judge_ = ctypes.CDLL(os.environ['ZKL_TEST_LIB']).history_judge
judge_.restype = Verdict
wrong = [f'{records}: {said}, not {due}' for records, due in CASES for said in [judged(judge_, records)] if said != due]
print(*wrong, f'{len(CASES)} cases, {len(wrong)} wrong', sep='\n')
sys.exit(bool(wrong))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The journal's judge notices each broken rule: the suites interop, fleet and soak depend on its word."""
import sys
import tempfile

sys.dont_write_bytecode = True

import journal

# Lines, "; " between two, and what the judge says to the last one; '': nothing. Two permits are there.
CASES = [
    ('+x c1 /w; -x c1 /w; +x j1 /w; -x j1 /w', ''),
    ('+x c1 /w; +x j1 /w', 'visit 1 of /w: j1 (x) comes in beside c1'),
    ('+r c1 /w; +r j1 /w; -r c1 /w; -r j1 /w', ''),
    ('+r c1 /w; +x j1 /w', 'visit 1 of /w: j1 (x) comes in beside c1'),
    ('+x c1 /w; +r j1 /w', 'visit 1 of /w: j1 (r) comes in beside c1'),
    ('+x c1 /w; +r c1 /w; -x c1 /w; +r j1 /w', ''),
    ('+p c1 /w; +p j1 /w; -p c1 /w; -p j1 /w', ''),
    ('+p c1 /w; +p j1 /w; +p k1 /w', 'visit 2 of /w: k1 (p) comes in beside c1'),
    ('+x c1 /w; -x j1 /w', 'visit 1 of /w: j1 (x) leaves without having come in'),
    ('*x c1 /w', 'not a line of the journal: *x c1 /w'),
    ('+x c1 /w 12', 'not a line of the journal: +x c1 /w 12'),
    ('+x z1 /w', 'not a line of the journal: +x z1 /w'),
    ('+x o1.1 /w 5 lock-1; -x o1.1 /w 5 lock-1; +x n1.1 /w 5 lock-2',
     'visit 1 of /w: n1.1 (x, token 5, lock-2) has no larger token than before: o1.1'),
    ('+s o1.1 /w 5 lock-1; -s o1.1 /w 5 lock-1; +s o1.2 /w 5 lock-1', ''),
    ('+s o1.1 /w 5 lock-1; -s o1.1 /w 5 lock-1; +s n1.2 /w 5 lock-1',
     'visit 1 of /w: n1.2 (s, token 5, lock-1) has the token of another process: o1.1'),
    ('+x o1.1 /w 5 lock-1; +r o1.1 /w 5 lock-1', ''),
    ('+x o1.1 /w 5 lock-1; -x o1.1 /w 5 lock-1; +r n1.1 /w 5 lock-2',
     "visit 1 of /w: n1.1 (r, token 5, lock-2) reads with a token not above the writer's: o1.1"),
    ('+p o1.1 /w 0 lease-1', 'visit 0 of /w: o1.1 (p, token 0, lease-1) has no token'),
    ('+x o1.1 /w 5 lock-2147483647',
     'visit 0 of /w: o1.1 (x, token 5, lock-2147483647) was granted an exhausted number'),
    ('+x o1.1 /w 5 lock--1', 'visit 0 of /w: o1.1 (x, token 5, lock--1) was granted an exhausted number'),
    ('+p o1.1 /w 5 lease-2147483647', ''),
]


def judged(lines):
    """What the judge says, of lines that come in two parts."""
    with tempfile.NamedTemporaryFile() as file:
        judge = journal.Journal(file.name, 'cjkon')
        judge.place('/w').permits = 2
        try:
            for part in lines[:5], lines[5:] + '\n':
                file.write(part.replace('; ', '\n').encode())
                file.flush()
                judge.read()
        except journal.Broken as broken:
            return str(broken)
        finally:
            judge.close()
    return ''


wrong = [f'{lines}: {said!r}, not {expected!r}' for lines, expected in CASES for said in [judged(lines)] if said != expected]
print(*wrong, f'{len(CASES)} cases, {len(wrong)} wrong', sep='\n')
sys.exit(bool(wrong))

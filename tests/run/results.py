#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results.py PATTERN [each]: what meson's logs of that name say.

A line for each test that was no success, with what it says of the reason; of several suites what each had, and how long
its tests took one behind the other; then "PASSED FAILED SKIPPED"."""
import collections
import glob
import json
import sys

WORDS = {'OK': 'passed', 'EXPECTEDFAIL': 'passed', 'SKIP': 'SKIPPED'}


def reasons(test, word):
    output, errors = ((test.get(key) or '').strip().splitlines() for key in ('stdout', 'stderr'))
    if word == 'SKIPPED':
        return (output or errors)[-1:]
    counts = ('[  PASSED  ]', '[  FAILED  ]')
    told = (line.split(' --- ')[-1].strip() for line in errors if not line.startswith(counts) and 'TEST(S)' not in line)
    faults = [line for line in output if line.startswith("FAULT")]  # of the contention demo
    return [line for line in told if line][:4] + faults


def main():
    total = {'passed': 0, 'FAILED': 0, 'SKIPPED': 0}
    suites = collections.defaultdict(lambda: [0, 0.0])
    for path in glob.glob(sys.argv[1]):
        for line in open(path, encoding='utf-8'):
            test = json.loads(line)
            word = WORDS.get(test['result'], 'FAILED')
            total[word] += 1
            suite = suites[test['name'].split(':')[-1].split(' / ')[0].split('+')[0]]
            suite[:] = suite[0] + 1, suite[1] + test['duration']
            if word != 'passed':
                print(word, test['name'], test['result'], *reasons(test, word), sep=': ')
    for name, (count, seconds) in suites.items() if len(sys.argv) > 2 else ():
        print(f'{name:14} {count:3} tests, {seconds:.0f} s one behind the other')
    print(*total.values())


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""results.py PATTERN: what meson's logs of that name say.

A line for each test that was no success, with what it says of the reason; then "PASSED FAILED SKIPPED"."""
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
    return [line for line in told if line][:4]


def main():
    total = {'passed': 0, 'FAILED': 0, 'SKIPPED': 0}
    for path in glob.glob(sys.argv[1]):
        for line in open(path, encoding='utf-8'):
            test = json.loads(line)
            word = WORDS.get(test['result'], 'FAILED')
            total[word] += 1
            if word != 'passed':
                print(word, test['name'], test['result'], *reasons(test, word), sep=': ')
    print(*total.values())


main()

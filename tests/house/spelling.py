#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No file has a misspelled word that codespell knows, and pages and headers are in American English.

Goal: readers stumble over no typing error. Method: codespell reads everything that people read. Its list of words grows
with each version, so the test runs only that of Debian 12: a newer one fails no test for a word that it has learned.

spelling.py ROOT"""
import pathlib
import re
import shutil
import subprocess
import sys

import rules

VERSION = '2.2.2'  # Debian 12's
PLACES = ['README.md', 'docs', 'include', 'src', 'tests', 'examples', 'meson.build', 'meson_options.txt']
SKIPPED = ['*/corpus/*']  # bytes that a fuzzer found
# Words that people read, and no names in code, which are in both kinds of English.
AMERICAN = ['README.md', 'docs', 'include']
NO_PROSE = ['*/pictures/*']
# What codespell takes for an error, in small letters, and why it is none.
RIGHT = {
    'acces': 'the end of ZKL_EACCES',
    'childs': 'a path in a test',
    "get's": "of ZooKeeper's request GET",
    'fo': 'mdoc: a function opens',
    'fro': 'to and fro',
    'nd': 'mdoc: the line that names a page',
    'openend': 'a name in Go',
    'statics': 'variables that are static',
    'untils': 'a name in C',
}


def tool():
    """The reason why codespell is not asked, or None."""
    if not shutil.which('codespell'):
        return 'codespell is not installed'
    version = rules.said('codespell', '--version').strip()
    return None if version == VERSION else f'codespell is {version} and not {VERSION}'


def found(root, lists, skipped, places):
    """codespell's lines, and the words that they are about."""
    done = subprocess.run(['codespell', '--quiet-level', '7', '--builtin', lists, '--skip', ','.join(skipped),
                           *[place for place in places if (root / place).exists()]],
                          cwd=root, capture_output=True, text=True, errors='replace', check=False)
    lines = [line for line in done.stdout.splitlines() if ' ==> ' in line]
    if done.stderr:
        lines.append(f'codespell says: {done.stderr}')
    return [(line, re.search(r"([\w'-]+) ==>", line)) for line in lines]


def main(root):
    if reason := tool():
        rules.skip(f'{reason}: no word is looked at')
    root = pathlib.Path(root)
    pairs = found(root, 'clear,rare', SKIPPED, PLACES) + found(root, 'en-GB_to_en-US', SKIPPED + NO_PROSE, AMERICAN)
    wrong = [line for line, word in pairs if not word or word[1].lower() not in RIGHT]
    return wrong, f'{len(pairs)} words that codespell does not know', pairs  # those of RIGHT at least


rules.judge(main, *sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""questions.py ROOT: each public call that a program may use as a condition is asked wrongly by tests/cluster.

Goal: no call that answers with yes or no, a count, a time or a token comes without its test with NULL, in a forked child,
after close and with bad numbers. Method: a public call that returns a number is either one whose name ends in what does
something, and so answers with a code (CODES), or a question, and then tests/cluster/test-questions.c has it."""
import pathlib
import re
import sys

# The last part of the name: 0 or a code, or a length or descriptor that is never a yes.
CODES = ('new', 'free', 'open', 'close', 'acquire', 'lock', 'trylock', 'lock_for', 'lock_until', 'unlock', 'check', 'release',
         'renew', 'set_callback', 'set_permits', 'retain_readers', 'cancel', 'inspect', 'revoke', 'break', 'dispatch', 'event_fd',
         'node_path', 'server', 'set_servers', 'get_state', 'get_metrics', 'get_lock_metrics', 'prometheus', 'async', 'guard_mutex_path',
         'guard_permit_path', 'guard_multi_paths')
# Of no object: what they are given can't be wrong.
NEVER_WRONG = {'zkl_now_ns', 'zkl_histogram_bound_ns'}


def main(root):
    root = pathlib.Path(root)
    text = '\n'.join(path.read_text(encoding='utf-8') for path in sorted((root / 'include/zklock').glob('*.h')))
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)
    numbers = re.findall(r'^ZKL_API ((?:unsigned |enum )?\w+) (zkl_\w+)\(', text, re.MULTILINE)
    due = {name for kind, name in numbers if kind != 'void' and not re.search(rf'_(?:{"|".join(CODES)})$', name)} - NEVER_WRONG
    source = (root / 'tests/cluster/test-questions.c').read_text(encoding='utf-8')
    asked = set(re.findall(r'^    X\((zkl_\w+),', source, re.MULTILINE))
    problems = [f'{name} is not in tests/cluster/test-questions.c' for name in sorted(due - asked)]
    problems += [f'{name} in tests/cluster/test-questions.c is no question' for name in sorted(asked - due)]
    print('\n'.join(problems) or f'{len(due)} questions')
    return 1 if problems or len(due) < 20 else 0


sys.exit(main(*sys.argv[1:]))

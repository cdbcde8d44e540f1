#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""instructions.py PROGRAM: keeping figures costs less than 1 % of a lock and unlock.

Goal: so many instructions, not so much time, that anybody can count again. Method: callgrind counts all instructions of
the process (the program, libzklock, libzookeeper, libc; all threads) for two numbers of cycles: the difference is what one
cycle takes, without opening and closing. Divided by that: what the functions of counts.c and histogram.c take
themselves, and CALLERS for what callers do to call them, which was counted once (docs/metrics.md)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

FEW, MANY = 100, 600
CALLERS = 100
BOUND = 0.01
OURS = ('api/counts.c', 'core/histogram.c')


def count(program, cycles, folder):
    """All instructions, and those of our functions."""
    out = os.path.join(folder, f'callgrind-{cycles}')
    run = subprocess.run(['valgrind', '--tool=callgrind', '--quiet', '--compress-strings=no', '--compress-pos=no',
                          f'--callgrind-out-file={out}', program, str(cycles)],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
    if run.returncode != 0:
        sys.exit(f'instructions: {program} ended with {run.returncode}: {run.stderr}')
    total = ours = 0
    file, skip = '', False
    with open(out, encoding='utf-8') as lines:
        for line in lines:
            if re.match(r'(fl|fi|fe)=', line):
                file = line.split('=', 1)[1].strip()
            elif line.startswith('calls='):
                skip = True  # the next line is the callee's
            elif re.match(r'\d+ \d+$', line):
                if not skip:
                    total += int(line.split()[1])
                    ours += int(line.split()[1]) if file.endswith(OURS) else 0
                skip = False
    return total, ours


def main():
    program = sys.argv[1]
    if not shutil.which('valgrind'):
        print('skipped: valgrind is not installed')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='zkl-instructions-') as folder:
        few, many = (count(program, n, folder) for n in (FEW, MANY))
    total, ours = ((b - a) / (MANY - FEW) for a, b in zip(few, many))
    share = (ours + CALLERS) / total
    print(f'instructions: {total:.0f} for a lock and unlock, of the whole process; figures {ours:.0f}, and up to '
          f'{CALLERS} in their callers: {100 * share:.2f} %')
    if ours == 0:
        sys.exit('instructions: the functions that count were not seen: is the library stripped?')
    sys.exit(0 if share < BOUND else f'instructions: not below {100 * BOUND:g} %')


main()

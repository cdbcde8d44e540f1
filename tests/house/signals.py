#!/usr/bin/env python3
"""The programs change how signals reach them in one file, src/tool/signals.c.

Goal: who asks what a signal does to zklock reads one file. Method: the calls that install handlers, mask signals or
wait for them are looked for in all others.

signals.py ROOT"""
import pathlib
import re
import sys

PLACE = 'signals.c'
CALLS = re.compile(r'\b(signal|sigaction|sigprocmask|pthread_sigmask|signalfd|sig(?:timed)?wait(?:info)?|sigsuspend)'
                   r'\s*\(')


def main(root):
    root = pathlib.Path(root)
    files = sorted((root / 'src/tool').glob('*.c')) + [root / 'src/dev/dev.c']
    lines = {file.name: file.read_text(encoding='utf-8').splitlines() for file in files}
    calls = {name: [(number, match[1]) for number, line in enumerate(text, 1) for match in CALLS.finditer(line)]
             for name, text in lines.items()}
    problems = [f'src/tool/{name}:{number}: {call}() belongs in {PLACE}'
                for name, found in calls.items() if name != PLACE for number, call in found]
    if not calls.get(PLACE):
        problems.append(f'{PLACE} calls nothing of the kind: this test looks for the wrong calls')
    print('\n'.join(problems) or f'{len(calls)} files, all {len(calls[PLACE])} calls in {PLACE}')
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))

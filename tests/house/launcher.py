#!/usr/bin/env python3
"""The installed command launches no servers; the program beside it does.

Goal: nothing that starts Java stands on a machine where only zklock was wanted. Method: what the archive of the
launcher defines is looked for among the symbols of both programs.

launcher.py ARCHIVE ZKLOCK ZKLOCK-DEV"""
import subprocess
import sys


def defined(file):
    """The functions and data with a name of their own, static ones too."""
    listing = subprocess.run(['nm', '--defined-only', file], capture_output=True, text=True, check=True).stdout
    return {words[2] for words in map(str.split, listing.splitlines()) if len(words) == 3 and words[1] in 'TDBRV'}


def main(archive, zklock, zklock_dev):
    launcher = defined(archive)
    problems = [f'zklock has {name} of the launcher' for name in sorted(launcher & defined(zklock))]
    if 'zks_start' not in launcher & defined(zklock_dev):
        problems.append('zklock-dev has no launcher, or this test looks at the wrong files')
    print('\n'.join(problems) or f'none of the {len(launcher)} functions of the launcher is in zklock')
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""The C sources are as clang-format writes them, by .clang-format.

Goal: nobody argues about blanks, and no change of code hides among changes of blanks. Method: each file is given to
clang-format. Another version than the one below breaks other lines, so it is not asked.

A comment behind code that goes beyond column 100 makes clang-format tear the code apart: it belongs above the line.

format.py ROOT          which files differ
format.py ROOT --write  write them anew"""
import pathlib
import re
import shutil
import subprocess
import sys

import rules

VERSION = 14  # Debian 12's
FOLDERS = ['src', 'include', 'tests', 'examples']


def tool():
    """clang-format's name, or the reason why there is none."""
    for name in (f'clang-format-{VERSION}', 'clang-format'):
        if shutil.which(name):
            said = rules.said(name, '--version')
            if re.search(rf'version {VERSION}\.', said):
                return name, None
            reason = f'{said.strip()} is not version {VERSION}'
            continue
        reason = f'clang-format {VERSION} is not installed'
    return None, reason


def differing(name, files):
    """Those that clang-format would change."""
    done = subprocess.run([name, '--style=file', '--dry-run', '--ferror-limit=1', *files], stderr=subprocess.PIPE,
                          text=True, check=True)
    told = {line.split(':')[0] for line in done.stderr.splitlines() if '[-Wclang-format-violations]' in line}
    return [path for path in files if str(path) in told]


def main(root, *options):
    name, reason = tool()
    if not name:
        rules.skip(f'{reason}: the sources are not compared')
    root = pathlib.Path(root)
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob('*')
                   if path.suffix in ('.c', '.h', '.cpp', '.hpp'))
    wrong = [path.relative_to(root).as_posix() for path in differing(name, files)]
    if options == ('--write',):
        for path in wrong:
            subprocess.run([name, '--style=file', '-i', root / path], check=True)
        wrong = []
    return [f'{path}: run clang-format on it' for path in wrong], f'{len(files)} files', len(files) >= 100


rules.judge(main, *sys.argv[1:])

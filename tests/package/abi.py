#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py LIBRARY SOURCE FOLDER [REVISION]: programs built with the previous release run with this library.

Method: the library of the newest tag before this commit, or of SETTLED while there is none, is built from git in FOLDER,
and abidiff (libabigail) compares the two by what the public headers declare. It may find new functions, and what
abi.suppr lists. Without git, abidiff or that revision the test is skipped."""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SETTLED = 'f49395b4e19a29e3ae13e3d4bc0ce32e61f7ad47'  # the commit in which the surface of 1.0 was settled
USAGE, CHANGED = 1 | 2, 4 | 8  # bits of abidiff's exit status

library, source, folder = map(pathlib.Path, sys.argv[1:4])


def skip(why):
    print(f'skipped: {why}')
    sys.exit(77)


def previous_release():
    found = subprocess.run(['git', '-c', 'safe.directory=*', 'describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*', 'HEAD^'],
                           cwd=source, capture_output=True, text=True, check=False)
    return found.stdout.strip() or SETTLED


def main():
    if not shutil.which('abidiff') or not shutil.which('git'):
        skip('abidiff (package abigail-tools) or git is not installed')
    revision = sys.argv[4] if len(sys.argv) > 4 else previous_release()
    built = subprocess.run(['sh', source / 'tests/lib/old_library.sh', folder.absolute(), revision], stdout=subprocess.PIPE, text=True,
                           check=False)
    if built.returncode == 77:
        skip(built.stdout.strip())
    if built.returncode != 0:
        sys.exit(f'abi: the library of {revision} was not built')
    old = pathlib.Path(built.stdout.strip())
    compared = subprocess.run(
        ['abidiff', '--suppressions', HERE / 'abi.suppr', '--no-added-syms', '--drop-private-types',
         '--headers-dir1', old / 'source/include/zklock', '--headers-dir2', source / 'include/zklock',
         old / 'build/src/libzklock.so', library], capture_output=True, text=True, check=False)
    if compared.returncode & USAGE:
        sys.exit(f'abi: abidiff failed: {compared.stderr}{compared.stdout}')
    if compared.returncode & CHANGED:
        sys.exit(f'abi: programs built with {revision} would break:\n{compared.stdout}')
    print(f'abi: programs built with {revision} run with this library')


main()

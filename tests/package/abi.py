#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py LIBRARY SOURCE FOLDER [REVISION]: programs built with the previous release run with this library.

Method: the library of the newest tag before this commit, or of SETTLED while there is none, is built from git in FOLDER,
and abidiff (libabigail) compares the two by what the public headers define. It may find new functions, and what
abi.suppr lists. It knows headers by their names without the folder, and include/zklock/client.h has a namesake in src:
so it is given the structs that programs see. It sees no enumerator, as functions return int: their values are read off
the headers, and none may change. Without git, abidiff or that revision the test is skipped."""
import pathlib
import re
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


def hidden(*folders):
    """A suppression of every struct that these folders' headers do not define."""
    seen = {name for folder in folders for header in folder.glob('*.h*')
            for name in re.findall(r'^struct (zkl_\w+)\s*\{', header.read_text(encoding='utf-8'), re.MULTILINE)}
    if not seen:
        sys.exit('abi: no header defines a struct')
    return f'[suppress_type]\n  type_kind = struct\n  name_not_regexp = ^({"|".join(sorted(seen))})$\n'


def enumerators(folder):
    return {name: value for header in folder.glob('*.h')
            for name, value in re.findall(r'^\s+(ZKL_\w+) = (-?\d+)\b', header.read_text(encoding='utf-8'), re.MULTILINE)}


def check_enumerators(before, now, revision):
    old, new = enumerators(before), enumerators(now)
    changed = [f'{name} was {value} and is {new.get(name, "gone")}' for name, value in old.items() if new.get(name) != value]
    if not old or changed:
        sys.exit(f'abi: programs built with {revision} would break: {"; ".join(changed) or "no enumerators were found"}')


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
    before, now = old / 'source/include/zklock', source / 'include/zklock'
    check_enumerators(before, now, revision)
    structs = old / 'structs.suppr'
    structs.write_text(hidden(before, now), encoding='utf-8')
    compared = subprocess.run(
        ['abidiff', '--suppressions', HERE / 'abi.suppr', '--suppressions', structs, '--no-added-syms', '--drop-private-types',
         '--headers-dir1', before, '--headers-dir2', now,
         old / 'build/src/libzklock.so', library], capture_output=True, text=True, check=False)
    if compared.returncode & USAGE:
        sys.exit(f'abi: abidiff failed: {compared.stderr}{compared.stdout}')
    if compared.returncode & CHANGED:
        sys.exit(f'abi: programs built with {revision} would break:\n{compared.stdout}')
    print(f'abi: programs built with {revision} run with this library')


main()

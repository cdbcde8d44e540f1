#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""twice.py MESON SOURCE: two builds give the same bytes.

Method: library and commands are built as somebody does it who just types `meson setup`, with debug information and asserts:
once in a folder of the sources, once elsewhere, at another depth, from a copy elsewhere, in another time zone, without a compiler cache.
Everything that is installed is compared."""
import filecmp
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'lib'))
import installed
from installed import one, run

MESON, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
TAKEN = ['meson.build', 'meson_options.txt', 'include', 'src', 'docs']


def copy(folder):
    folder.mkdir(parents=True)
    for name in TAKEN:
        take = shutil.copytree if (SOURCE / name).is_dir() else shutil.copy
        take(SOURCE / name, folder / name)


def make(source, build, root, zone):
    copy(source)
    os.environ.update(CCACHE_DISABLE='1', TZ=zone)
    run([MESON, 'setup', build, source, '--prefix=/usr', '-Dtests=false', '-Dexamples=false'])
    run(['ninja', '-C', build])
    installed.install(MESON, build, root)
    return {path.relative_to(root): path for path in root.rglob('*') if path.is_file() and not path.is_symlink()}


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-twice-') as work:
        work = pathlib.Path(work)
        first = make(work / 'zklock', work / 'zklock/build', work / 'first', 'UTC')
        second = make(work / 'some/where/else', work / 'built/deep/down', work / 'second', 'Asia/Tokyo')
        if first.keys() != second.keys():
            sys.exit(f'twice: one build installs {sorted(map(str, first.keys() ^ second.keys()))}, the other does not')
        for name in ['libzklock.a', 'bin/zklock', 'bin/zklock-dev']:
            one(work / 'first', name)
        differ = [str(name) for name in sorted(first) if not filecmp.cmp(first[name], second[name], shallow=False)]
        if differ:
            sys.exit(f'twice: two builds differ in {differ}')
        print(len(first), 'files are the same')


main()

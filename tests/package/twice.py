#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""twice.py MESON BUILD SOURCE: two builds give the same bytes.

Method: library and commands are built once more, with the options of this build, from a copy elsewhere, in a folder that is
elsewhere again, at another depth, in another time zone, without a compiler cache. Everything that is installed is compared."""
import filecmp
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'lib'))
import installed
from installed import one, run

MESON, BUILD, SOURCE = sys.argv[1], *map(pathlib.Path, sys.argv[2:4])
TAKEN = ['meson.build', 'meson_options.txt', 'include', 'src', 'docs']
# What decides about bytes and names.
KEPT = ['prefix', 'libdir', 'optimization', 'debug', 'b_ndebug', 'b_lto', 'b_sanitize', 'b_lundef', 'tool', 'dev', 'cpp']


def copy(folder):
    folder.mkdir(parents=True)
    for name in TAKEN:
        take = shutil.copytree if (SOURCE / name).is_dir() else shutil.copy
        take(SOURCE / name, folder / name)


def word(value):
    return str(value).lower() if isinstance(value, bool) else value


def kept():
    options = {option['name']: option['value'] for option in json.loads(run([MESON, 'introspect', '--buildoptions', BUILD]))}
    return [f'-D{name}={word(options[name])}' for name in KEPT if name in options]


def make(source, build):
    copy(source)
    elsewhere = {**os.environ, 'CCACHE_DISABLE': '1', 'TZ': 'Asia/Tokyo'}
    run([MESON, 'setup', build, source, *kept(), '-Dtests=false', '-Dexamples=false'], env=elsewhere)
    run(['ninja', '-C', build], env=elsewhere)


def files(build, root):
    installed.install(MESON, build, root)
    return {path.relative_to(root): path for path in root.rglob('*') if path.is_file() and not path.is_symlink()}


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-twice-') as work:
        work = pathlib.Path(work)
        make(work / 'some/where/else', work / 'built/deep/down')
        first, second = files(BUILD, work / 'first'), files(work / 'built/deep/down', work / 'second')
        if first.keys() != second.keys():
            sys.exit(f'twice: one build installs {sorted(map(str, first.keys() ^ second.keys()))}, the other does not')
        for name in ['libzklock.a', 'bin/zklock', 'bin/zklock-dev']:
            one(work / 'first', name)
        differ = [str(name) for name in sorted(first) if not filecmp.cmp(first[name], second[name], shallow=False)]
        if differ:
            sys.exit(f'twice: two builds differ in {differ}')
        print(len(first), 'files are the same')


main()

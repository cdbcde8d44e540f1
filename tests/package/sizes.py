#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sizes.py LIBRARY SOURCE ZK_PRIVATE COMPILER...: programs and libraries with different headers get on.

Goal: the size rule of zklock.h, in both directions. Method: a copy of the headers gets one later field at the end of each
struct that begins with its size, and a library is built with it. sizes.c, built with either header, runs with either
library against a private server. And on 64 bits no public struct has a hole, whose bytes would be anything."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

library, source, zk_private = map(pathlib.Path, sys.argv[1:4])
compiler = sys.argv[4:]
FLAGS = ['-O1', '-g', '-std=gnu17', '-D_GNU_SOURCE', '-DTHREADED', '-pthread']


def run(command, **options):
    done = subprocess.run([*map(str, command)], check=False, **options)
    if done.returncode != 0:
        sys.exit(f'sizes: ended with {done.returncode}: {" ".join(map(str, command))[:300]}')


def add_later_fields(include):
    count = 0
    for header in include.glob('zklock/*.h'):
        text = header.read_text(encoding='utf-8')
        text, structs = re.subn(r'^(struct zkl_\w+ \{\n    size_t size;\n.*?)^\};', r'\1    int64_t later;\n};', text,
                                flags=re.M | re.S)
        text = re.sub(r'(#define ZKL_\w+_INIT\b(?:[^\n]*\\\n)+?)([^\n]*?)( *\\\n    \}\n)', r'\1\2, 0\3', text)
        header.write_text(text, encoding='utf-8')
        count += structs
    return count


def build_library(include, output):
    files = [f for folder in ('core', 'api', 'driver', 'secret') for f in (source / 'src' / folder).glob('*.c')]
    run([*compiler, *FLAGS, '-shared', '-fPIC', '-I', source / 'src', '-I', include, '-I', library.parent.parent / 'include', '-o', output, *files, f'-Wl,--version-script={source}/src/libzklock.map', f'-Wl,--version-script={source}/src/private.map', '-lzookeeper_mt'])


def build_program(include, output, *flags):
    run([*compiler, *FLAGS, *flags, '-Wall', '-Wextra', '-Werror', '-I', include, '-o', output,
         pathlib.Path(__file__).with_name('sizes.c'), library])


def check_holes():
    """guard.h includes ZooKeeper's header, and scope.h has a struct that only programs have."""
    found = set()
    for header in sorted((source / 'include/zklock').glob('*.h')):
        done = subprocess.run([*compiler, '-std=c11', '-Wpadded', '-fsyntax-only', '-I', source / 'include', '-x', 'c', header],
                              capture_output=True, text=True, check=False)
        found |= set(re.findall(r'^.*/zklock/(?!scope)\w+\.h:\d+.*padding.*$', done.stderr, re.M))
    if found:
        sys.exit('sizes: bytes between fields could be anything:\n' + '\n'.join(sorted(found)))


def main():
    if sys.maxsize > 2**32:
        check_holes()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        later = work / 'include'
        shutil.copytree(source / 'include', later)
        count = add_later_fields(later)
        later_library = work / re.match(r'libzklock\.so\.\d+', library.name)[0]  # as programs ask for it
        build_library(later, later_library)
        build_program(source / 'include', work / 'program')
        build_program(later, work / 'later-program', '-DLATER')
        for program, folder, how in [('program', library.parent, 'same'), ('program', work, 'same'),
                                     ('later-program', library.parent, 'older'), ('later-program', work, 'same')]:
            run([zk_private, '--', 'env', f'LD_LIBRARY_PATH={folder}', work / program, how],
                env={**os.environ, 'TMPDIR': os.environ.get('TMPDIR', '/tmp')})
    print(f'sizes: {count} structs with a later field each')


main()

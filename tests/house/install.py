#!/usr/bin/env python3
"""install.py MESON BUILD_DIR SOURCE_DIR VERSION: what `meson install` leaves is enough to build against.

Goal: pkg-config --cflags --libs zklock is all that a user needs. Method: install below a temporary
DESTDIR, build consumer.c with what pkg-config says, as C and C++, against the shared and the static
library, and run it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MESON, BUILD, SOURCE, VERSION = sys.argv[1:]


def run(command, **env):
    """The command's output, or the end of this test with the command's own words."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **env})
    if done.returncode != 0:
        print('install: failed:', *command)
        print(done.stdout)
        sys.exit(1)
    return done.stdout


def one(root, name):
    found = sorted(root.rglob(name))
    if not found:
        print(f'install: no {name} was installed; there are only:')
        print(*sorted(str(p.relative_to(root)) for p in root.rglob('*') if not p.is_dir()), sep='\n')
        sys.exit(1)
    return found[0]


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-install-') as work:
        work = pathlib.Path(work)
        root = work / 'root'
        run([MESON, 'install', '-C', BUILD, '--no-rebuild', '--destdir', str(root)])
        for header in sorted(pathlib.Path(SOURCE, 'include/zklock').glob('*.h')):
            one(root, f'zklock/{header.name}')
        library = one(root, 'libzklock.so')
        one(root, 'libzklock.so.0')
        one(root, f'libzklock.so.{VERSION}')
        one(root, 'libzklock.a')
        pc = one(root, 'zklock.pc')

        pkg = {'PKG_CONFIG_PATH': str(pc.parent), 'PKG_CONFIG_SYSROOT_DIR': str(root),
               'PKG_CONFIG_ALLOW_SYSTEM_CFLAGS': '1', 'PKG_CONFIG_ALLOW_SYSTEM_LIBS': '1'}
        version = run(['pkg-config', '--modversion', 'zklock'], **pkg).strip()
        if version != VERSION:
            print(f'install: zklock.pc says version {version}, not {VERSION}')
            return 1
        shared = run(['pkg-config', '--cflags', '--libs', 'zklock'], **pkg).split()
        static = run(['pkg-config', '--static', '--cflags', '--libs', 'zklock'], **pkg).split()
        static = ['-l:libzklock.a' if word == '-lzklock' else word for word in static]
        for word in shared:
            if word in ('-lzookeeper_mt', '-lpthread', '-pthread'):
                print(f'install: {word} is asked of those who link the shared library')
                return 1

        consumer = str(pathlib.Path(SOURCE, 'tests/house/consumer.c'))
        define = f'-DEXPECTED_VERSION="{VERSION}"'
        for compiler, language in (('cc', 'c'), ('c++', 'c++')):
            if not shutil.which(compiler):
                print(f'install: {compiler} is not installed, left out')
                continue
            for kind, flags in (('shared', shared), ('static', static)):
                program = str(work / f'consumer-{language}-{kind}')
                run([compiler, '-x', language, '-Wall', '-Wextra', '-Werror', define, consumer,
                     '-x', 'none', '-o', program, *flags])
                needed = run(['readelf', '-d', program])
                if ('[libzklock.so.0]' in needed) != (kind == 'shared'):
                    print(f'install: the {kind} {language} program is linked with the wrong library')
                    return 1
                print(f'{language} {kind}:', run([program], LD_LIBRARY_PATH=str(library.parent)).strip())
    return 0


sys.exit(main())

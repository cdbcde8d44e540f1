#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cmake.py MESON BUILD SOURCE VERSION: a project finds the library by CMake's find_package.

Method: what is built is installed below a folder. There a project in cmake/ builds programs with the shared and the static
library, and one with zklock/guard.h, which must be linked as their names say and run; it is told no where it asks for a
version that this one does not stand for. Without cmake the test is skipped."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'lib'))
import installed
from installed import check, one, run

MESON, BUILD, SOURCE, VERSION = sys.argv[1], *map(pathlib.Path, sys.argv[2:4]), sys.argv[4]
NUMBER = VERSION.partition('-')[0]  # CMake knows no release candidates
MAJOR, MINOR, _ = map(int, NUMBER.split('.'))
GRANTED = [f'{MAJOR}', f'{MAJOR}.0', NUMBER]
REFUSED = [f'{MAJOR + 1}.0', f'{MAJOR}.{MINOR + 1}', f'{MAJOR - 1}.9']


def configure(work, prefix, version):
    """The project asks for that version."""
    return ['cmake', '-S', HERE / 'cmake', '-B', work / f'for-{version}', '-G', 'Ninja', f'-DCMAKE_PREFIX_PATH={prefix}',
            f'-DVERSION={version}', f'-DEXPECTED={VERSION}', f'-DEXAMPLES={SOURCE / "examples"}']


def check_programs(build):
    for name, is_shared in {'consumer-zklock': True, 'consumer-static': False, 'guarded': True}.items():
        program = build / name
        needed = run(['readelf', '-d', program])
        check(('libzklock.so' in needed) == is_shared, f'{name} is linked with the wrong library: {needed}')
        check(name != 'guarded' or 'libzookeeper_mt' in needed, 'zklock::guard does not link libzookeeper_mt')
        if name != 'guarded':
            print(name, run([program]).strip())


def main():
    if not shutil.which('cmake') or not shutil.which('ninja'):
        print('skipped: cmake is not installed')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='zkl-cmake-') as work:
        work = pathlib.Path(work)
        root = work / 'root'
        installed.install(MESON, BUILD, root)
        prefix = one(root, 'include/zklock').parent.parent
        for version in GRANTED:
            run(configure(work, prefix, version))
        for version in REFUSED:
            refused = subprocess.run(configure(work, prefix, version), capture_output=True, text=True, check=False)
            check(refused.returncode != 0 and f'version: {NUMBER}' in refused.stderr,
                  f'who asks for {version} got {NUMBER}: {refused.stdout}{refused.stderr}')
        run(['ninja', '-C', work / f'for-{NUMBER}'])
        check_programs(work / f'for-{NUMBER}')


main()

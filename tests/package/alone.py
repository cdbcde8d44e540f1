#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""alone.py MESON SOURCE: the library alone needs libzookeeper and nothing else.

Method: PATH holds no more than a C compiler, binutils and ninja, pkg-config knows no package, and every option
that can be turned off is. Under these conditions meson refuses to configure the command, for want of jansson; without it
the library, of sources that have no docs folder, is configured, built and installed. It needs libzookeeper_mt and libc, no
program or page of one comes along, and a program builds with it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'lib'))
import installed
from installed import check, one, run

MESON, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
NEEDED = ['cc', 'gcc', 'as', 'ld', 'ar', 'ninja', 'python3', 'rm', 'uname', 'dpkg-architecture']
NOTHING_ELSE = ['-Dtool=false', '-Ddev=false', '-Dcpp=disabled', '-Dtests=false', '-Dexamples=false']


def bare(work):
    """An environment in which little is installed."""
    folder = work / 'bin'
    folder.mkdir()
    # A compiler cache would look for the compiler in the new PATH.
    usual = os.pathsep.join(path for path in os.environ['PATH'].split(os.pathsep)
                            if not any('cache' in os.path.realpath(os.path.join(path, name)) for name in NEEDED))
    for name in NEEDED:
        if found := shutil.which(name, path=usual):
            (folder / name).symlink_to(found)
    none = work / 'none'
    none.mkdir()
    return {**{name: value for name, value in os.environ.items() if name not in ('CC', 'CXX', 'PKG_CONFIG_PATH')},
            'PATH': str(folder), 'PKG_CONFIG_LIBDIR': str(none)}


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-alone-') as work:
        work = pathlib.Path(work)
        environment = bare(work)
        refused = subprocess.run([MESON, 'setup', work / 'with-command', SOURCE, '-Dtests=false', '-Dexamples=false'],
                                 env=environment, capture_output=True, text=True, check=False)
        check(refused.returncode != 0 and 'libjansson-dev' in refused.stdout,
              f'jansson was found where nothing is installed, so this shows nothing: {refused.stdout}')

        source = work / 'source'
        source.mkdir()
        for name in ('meson.build', 'meson_options.txt'):
            shutil.copy(SOURCE / name, source)
        for name in ('include', 'src'):
            shutil.copytree(SOURCE / name, source / name)
        said = run([MESON, 'setup', work / 'build', source, '--prefix=/usr', *NOTHING_ELSE], env=environment)
        asked = re.findall(r'^(?:Run-time dependency|Program|Library|C\+\+ compiler).*', said, re.MULTILINE)
        check(asked == ['Run-time dependency threads found: YES', 'Library zookeeper_mt found: YES'],
              f'configuring looks for something else than threads and libzookeeper_mt: {asked}')
        run(['ninja', '-C', work / 'build'], env=environment)
        root = work / 'root'
        installed.install(MESON, work / 'build', root)

        libraries = re.findall(r'NEEDED.*\[(.*)\]', run(['readelf', '-d', one(root, 'libzklock.so').resolve()]))
        check(any('zookeeper_mt' in name for name in libraries), f'it needs {libraries}')
        others = [name for name in libraries if not re.match(r'libc\.|libzookeeper_mt\.|ld-linux', name)]
        check(not others, f'it needs {others}')
        left = [str(path.relative_to(root)) for path in root.rglob('*')
                if re.search(r'/bin/|\.hpp$|man1/|bash-completion/', str(path))]
        check(not left, f'installed without what they are for: {left}')

        program = work / 'consumer'
        version = re.search(r"version: '(.*)'", (SOURCE / 'meson.build').read_text(encoding='utf-8'))[1]
        run(['cc', f'-DEXPECTED_VERSION="{version}"', '-I', one(root, 'include/zklock').parent, HERE / 'consumer.c',
             '-o', program, one(root, 'libzklock.so')])
        print(run([program], env={**os.environ, 'LD_LIBRARY_PATH': str(one(root, 'libzklock.so').parent)}).strip())


main()

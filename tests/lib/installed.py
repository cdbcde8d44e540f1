# SPDX-License-Identifier: Apache-2.0
"""An installed tree below a folder, and the environment of somebody who uses it."""
import fcntl
import os
import pathlib
import subprocess
import sys


def check(condition, sentence):
    if not condition:
        sys.exit(f'{pathlib.Path(sys.argv[0]).stem}: {sentence}')


def run(command, **options):
    """The command's output, or the end of this test with the command's own words."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        sys.exit(f'failed: {" ".join(map(str, command))}\n{done.stdout}')
    return done.stdout


def install(meson, build, root):
    """What is built, as `meson install` lays it out below root. One at a time, as it writes its log into the build."""
    with open(pathlib.Path(build) / 'install.lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run([meson, 'install', '-C', build, '--no-rebuild', '--destdir', root])


def one(root, name):
    """The file of that name, which must be there once."""
    found = sorted(root.rglob(name))
    if len(found) != 1:
        sys.exit(f'{len(found)} files called {name} were installed; there are: '
                 + ' '.join(sorted(str(path.relative_to(root)) for path in root.rglob('*') if not path.is_dir())))
    return found[0]


def environment(root):
    """With which its command, library and pkg-config file are found first."""
    return {**os.environ,
            'PATH': f'{one(root, "bin/zklock").parent}:{os.environ["PATH"]}',
            'LD_LIBRARY_PATH': str(one(root, 'libzklock.so').parent),
            'PKG_CONFIG_PATH': str(one(root, 'zklock.pc').parent),
            'PKG_CONFIG_SYSROOT_DIR': str(root),
            'PKG_CONFIG_ALLOW_SYSTEM_CFLAGS': '1',
            'PKG_CONFIG_ALLOW_SYSTEM_LIBS': '1'}

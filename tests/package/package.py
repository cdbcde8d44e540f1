#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""package.py MESON BUILD SOURCE VERSION: what a packager does works.

Goal: nothing to mend for who packages zklock, nothing missing for who installs the package. Method: `meson dist`
packs the last commit; the tarball is configured as a distribution does it, without downloads, `meson test` passes there
without a network and without being root, and what is to be installed is laid out below a folder. There a user's programs, the examples among them, are built by
pkg-config alone, as C and as C++, and run; manual pages and completion are looked at. A source folder that is no
checkout stands for the tarball."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'lib'))
import installed
from installed import check, one, run

MESON, BUILD, SOURCE, VERSION = sys.argv[1], *map(pathlib.Path, sys.argv[2:4]), sys.argv[4]
NUMBER = VERSION.partition('-')[0]
SONAME = 'libzklock.so.' + NUMBER.partition('.')[0]
EXAMPLES_NEED = {'<zklock/guard.h>': 'zklock-guard', '<uv.h>': 'libuv', '<sqlite3.h>': 'sqlite3'}  # pkg-config's names, beside zklock
OTHERS = {'libuv', 'sqlite3'}  # of them, who may be missing
NOBODY = 65534
NEVER_LINKED = {'-lzookeeper_mt', '-lpthread', '-pthread'}  # by who links the shared library
ABOUT = ['-Wall', '-Wextra', '-Werror']


# --- from the last commit to an installed tree -------------------------------------------------------------

def can_pack():
    """Only a whole checkout can be packed; whose it is does not matter."""
    if not (SOURCE / '.git').exists() or not shutil.which('git'):
        return False
    os.environ.update(GIT_CONFIG_COUNT='1', GIT_CONFIG_KEY_0='safe.directory', GIT_CONFIG_VALUE_0='*')
    return run(['git', 'rev-parse', '--is-shallow-repository'], cwd=SOURCE).strip() == 'false'


def unpack(work):
    """The sources as a packager gets them: exactly what is committed."""
    if not can_pack():
        print('package: no whole checkout, or no git, so no tarball: the sources are taken as they are')
        return SOURCE
    run([MESON, 'dist', '-C', BUILD, '--no-tests', '--allow-dirty', '--formats', 'gztar'])
    tarball = BUILD / 'meson-dist' / f'zklock-{VERSION}.tar.gz'
    with tarfile.open(tarball) as archive:
        archive.extractall(work)
        names = {member.name.partition('/')[2] for member in archive if member.isfile()}
    committed = set(run(['git', 'ls-tree', '-r', '--name-only', 'HEAD'], cwd=SOURCE).splitlines())
    check(names == committed, f'the tarball differs from the commit by {sorted(names ^ committed)}')
    return work / f'zklock-{VERSION}'


def works(command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def humble(build, work):
    """What to put before a command so that root is nobody, in a network with nothing in it, as far as that can be had."""
    if os.geteuid() != 0:
        return []
    work.chmod(0o755)
    prefix = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
    if not works([*prefix, 'test', '-x', work]):
        print('package: nobody else may enter', work, 'so the tests run as root')
        prefix = []
    else:
        run(['chown', '-R', str(NOBODY), build])
    if works(['unshare', '--net', 'true']):
        return ['unshare', '--net', *prefix]
    print('package: no network of its own can be had here, the tests run in this one')
    return prefix


def check_tests(build, work):
    """`meson test` and nothing more: nothing of it is skipped or fails."""
    environment = {**os.environ, 'HOME': str(build), 'TMPDIR': str(build), 'CCACHE_DISABLE': '1'}
    said = run([*humble(build, work), MESON, 'test', '-C', build], env=environment)
    # meson 1.12 has no line for a result that no test had.
    results = {'Ok': 0, 'Skipped': 0} | {name: int(count) for name, count in re.findall(r'^(Ok|Skipped): +(\d+)', said, re.MULTILINE)}
    check(results['Ok'] > 0 and results['Skipped'] == 0, f'meson test skips what it can not do: {said}')
    print('meson test:', results['Ok'], 'passed')


def build_and_install(source, work):
    """As a distribution configures it. Only what is installed and what the tests need is built."""
    build, root = work / 'build', work / 'root'
    run([MESON, 'setup', build, source, '--prefix=/usr', '--buildtype=plain', '--wrap-mode=nodownload',
         '--auto-features=enabled'])
    check_tests(build, work)
    run(['ninja', '-C', build, f'src/libzklock.so.{NUMBER}', 'src/libzklock.a', 'src/tool/zklock',
         'src/dev/zklock-dev', 'man'])
    installed.install(MESON, build, root)
    return root


# --- what is there ---------------------------------------------------------------------------------------

def check_files(root):
    for header in sorted((SOURCE / 'include/zklock').glob('*.h*')):
        one(root, f'include/zklock/{header.name.removesuffix(".in")}')
    for name in ['bin/zklock', 'bin/zklock-dev', 'libzklock.so', SONAME, f'libzklock.so.{NUMBER}', 'libzklock.a', 'zklock.pc']:
        one(root, name)
    pages = sorted((SOURCE / 'docs/man').glob('*.[17]'))
    for page in pages:
        one(root, f'man{page.suffix[1]}/{page.name}')
    check({page.suffix for page in pages} == {'.1', '.7'}, 'manual pages of section 1 or 7 are missing')
    one(root, 'man3/zkl_mutex_lock.3')  # house/man.py has the others
    for tool in ['bin/zklock', 'bin/zklock-dev']:
        needed = run(['readelf', '-d', one(root, tool)])
        check('RUNPATH' not in needed and 'RPATH' not in needed, f'{tool} looks for libraries where it was built')


def check_soname(root):
    """The real file's name is what programs remember, and the links lead there."""
    for name in ['libzklock.so', SONAME]:
        check(one(root, name).resolve().name == f'libzklock.so.{NUMBER}', f'{name} leads to another file')
    check(f'[{SONAME}]' in run(['readelf', '-d', one(root, SONAME)]), f'the soname is not {SONAME}')


def check_notification():
    text = (SOURCE / 'docs/NEWS.md').read_text(encoding='utf-8')
    check(re.search(rf'^## {re.escape(VERSION)}\b', text, re.MULTILINE), f'docs/NEWS.md has no section {VERSION}')


def check_completion(root):
    """It is where bash looks for it, under the command's name. The suite tool has what it offers."""
    for name in ['zklock', 'zklock-dev']:
        script = one(root, f'bash-completion/completions/{name}')
        if shutil.which('bash'):
            done = run(['bash', '-c', f'. {script} && complete -p {name}'])
            check(name in done.split(), f'the completion is not for {name}')


# --- a user's programs -------------------------------------------------------------------------------------

def flags(environment, *options, packages=('zklock',)):
    return run(['pkg-config', *options, '--cflags', '--libs', *packages], env=environment).split()


def static_flags(environment):
    return ['-l:libzklock.a' if word == '-lzklock' else word for word in flags(environment, '--static')]


def check_pkg_config(environment):
    version = run(['pkg-config', '--modversion', 'zklock'], env=environment).strip()
    check(version == VERSION, f'zklock.pc says version {version}, not {VERSION}')
    check(not NEVER_LINKED & set(flags(environment)), 'those who link the shared library are asked for libzookeeper_mt')


def build_program(compiler, language, source, program, options, environment):
    run([compiler, '-x', language, *ABOUT, source, '-x', 'none', '-o', program, *options], env=environment)


def check_consumer(compiler, language, work, environment):
    """Linked with the right library, shared and static, and the one that it was compiled for."""
    for kind, options in {'shared': flags(environment), 'static': static_flags(environment)}.items():
        program = work / f'consumer-{language}-{kind}'
        build_program(compiler, language, HERE / 'consumer.c', program, [f'-DEXPECTED_VERSION="{VERSION}"', *options],
                      environment)
        check((f'[{SONAME}]' in run(['readelf', '-d', program])) == (kind == 'shared'),
              f'the {kind} {language} program is linked with the wrong library')
        print(f'{language} {kind}:', run([program], env=environment).strip())


def check_cpp(compiler, source, work, environment):
    """zklock.hpp, in a program of C++17."""
    program = work / 'consumer-cpp'
    build_program(compiler, 'c++', HERE / 'consumer.cpp', program, ['-std=c++17', *flags(environment), '-pthread'],
                  environment)
    print('zklock.hpp:', run([program], env=environment).strip())
    for example in sorted((source / 'examples').glob('*.cpp')):
        build_program(compiler, 'c++', example, work / 'example', ['-std=c++17', *flags(environment), '-pthread'],
                      environment)


def check_plugin(work, environment):
    """A plugin with the static library in it may be closed: what is needed of it stays."""
    plugin, host = work / 'plugin.so', work / 'host'
    run(['cc', '-shared', '-fPIC', *ABOUT, HERE / 'plugin.c', '-o', plugin, *static_flags(environment)], env=environment)
    check('libzklock' not in run(['readelf', '-d', plugin]), 'the plugin is linked with the shared library')
    run(['cc', *ABOUT, HERE / 'host.c', '-o', host, '-pthread'], env=environment)
    print('plugin:', run([host, plugin], env=environment).strip())


def check_examples(compiler, language, source, work, environment):
    examples = sorted((source / 'examples').glob('*.c'))
    check(examples, 'there are no examples')
    for example in examples:
        packages = [package for include, package in EXAMPLES_NEED.items() if include in example.read_text(encoding='utf-8')]
        missing = [package for package in packages if package in OTHERS and
                   subprocess.run(['pkg-config', '--exists', package], check=False).returncode != 0]
        if missing:
            print(f"{example.name} is left out: {', '.join(missing)} is not installed")
            continue
        build_program(compiler, language, example, work / 'example',
                      [*flags(environment, packages=['zklock', *packages]), '-pthread'], environment)
    print(f'{len(examples)} examples as {language}')


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-package-') as work:
        work = pathlib.Path(work)
        source = unpack(work)
        root = build_and_install(source, work)
        environment = installed.environment(root)
        check_files(root)
        check_soname(root)
        check_notification()
        check_completion(root)
        check_pkg_config(environment)
        check_plugin(work, environment)
        for name in ['zklock', 'zklock-dev']:
            said = run([name, '--version'], env=environment).strip()
            check(said == f'{name} {VERSION}', f'{name} --version says {said}')
        for compiler, language in (('cc', 'c'), ('c++', 'c++')):
            if not shutil.which(compiler):
                print(f'package: {compiler} is not installed, left out')
                continue
            check_consumer(compiler, language, work, environment)
            check_examples(compiler, language, source, work, environment)
            if language == 'c++':
                check_cpp(compiler, source, work, environment)


main()

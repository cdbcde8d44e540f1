#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""options.py MESON SOURCE: each option that leaves something out leaves that out, and the rest builds.

Method: one build folder is configured with everything, and then with each option off while all others are on, and with
both programs off. Each time it is built anew where it differs, with no file of the build before that is not made any more. What is
built, what is tested and what is installed differs from everything by what the option is for, and by nothing else.
alone.py has all options off at once, where nothing else is installed."""
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'lib'))
import installed
from installed import run

MESON, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
EVERYTHING = {'tool': 'true', 'dev': 'true', 'cpp': 'enabled', 'tests': 'true', 'examples': 'true'}
COMMAND = r'bin/zklock|share/bash-completion/completions/zklock|share/man/man1/zklock(-(?!dev)\w+)?\.1'
DEV = r'bin/zklock-dev|share/bash-completion/completions/zklock-dev|share/man/man1/zklock-dev\.1'
NOTHING = r'(?!)'
# With only one program there are no tests of it.
OF_PROGRAMS = r'tests/(house|tool|docs|package|tls)/.*'

# What is off: the files that are not installed, and what of the build may be gone (folder/target), of which some must be.
OFF = [
    ({'tool': 'false'}, COMMAND, rf'src/tool/zklock|tests/window/test-kill|{OF_PROGRAMS}'),
    ({'tool': 'false', 'dev': 'false'}, f'{COMMAND}|{DEV}', rf'src/tool/.*|tests/window/test-kill|{OF_PROGRAMS}'),
    ({'dev': 'false'}, DEV, rf'src/tool/zklock-dev|{OF_PROGRAMS}'),
    ({'cpp': 'disabled'}, r'include/zklock/\w+\.hpp', r'(tests|examples)/.*cpp.*'),
    ({'examples': 'false'}, NOTHING, r'examples/.*'),
    ({'tests': 'short'}, NOTHING, r'tests/(?!(lib|unit|sim|fuzz)/).*'),
    ({'tests': 'false'}, NOTHING, r'tests/.*'),
]


def check(condition, sentence):
    if not condition:
        sys.exit(f'options: {sentence}')


class Built:
    """A build folder as these options leave it."""

    def __init__(self, work, number, options):
        self.folder = work / 'build'
        said = run([MESON, 'setup', *(['--reconfigure'] if number else []), self.folder, SOURCE, '--prefix=/usr', '-Doptimization=0',
                    '-Ddebug=false', *(f'-D{name}={value}' for name, value in options.items())])
        check(options['cpp'] != 'disabled' or 'C++ compiler' not in said, f'a compiler for C++ is looked for without need: {said}')
        run(['ninja', '-C', self.folder, '-t', 'cleandead'])
        run(['ninja', '-C', self.folder])
        root = work / f'root-{number}'
        installed.install(MESON, self.folder, root)
        self.files = {str(path.relative_to(root / 'usr')) for path in root.rglob('*') if not path.is_dir()}
        self.targets = {f'{pathlib.Path(target["defined_in"]).parent.relative_to(SOURCE)}/{target["name"]}'
                        for target in self.introspect('targets')}

    def introspect(self, what):
        return json.loads(run([MESON, 'introspect', f'--{what}', self.folder]))


def compare(off, everything, built, files, targets):
    missing = everything.files - built.files
    wanted = {name for name in everything.files if re.fullmatch(files, name)}
    check(missing == wanted, f'with {off}, of what is installed there should be gone {sorted(wanted)}, and is {sorted(missing)}')
    check(not built.files - everything.files, f'with {off} more is installed: {sorted(built.files - everything.files)}')
    gone = everything.targets - built.targets
    check(gone, f'with {off} everything is built')
    others = sorted(name for name in gone if not re.fullmatch(targets, name))
    check(not others, f'with {off} this is not built any more: {others}')
    return f'{off}: {len(missing)} files less, {len(gone)} programs and libraries less'


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-options-') as work:
        work = pathlib.Path(work)
        everything = Built(work, 0, EVERYTHING)
        for number, (changes, files, targets) in enumerate(OFF, 1):
            off = ', '.join(f'{name}={value}' for name, value in changes.items())
            print(compare(off, everything, Built(work, number, {**EVERYTHING, **changes}), files, targets), flush=True)


main()

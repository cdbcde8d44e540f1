#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""options.py MESON SOURCE: each option that leaves something out leaves that out, and the rest builds.

Method: one folder is configured with everything, and then with each option off while all others are on, and with
both programs off. What is built, what is tested and what would be installed differs from everything by what the option is
for, and by nothing else. Nothing is built here: each step that is left is, word for word, one of those that build
everything, each file that configuring makes is the same, and ninja knows how to make whatever a step needs.
alone.py has all options off at once, where nothing else is installed, and builds."""
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'lib'))
import installed
from installed import check, run

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
    ({'tool': 'false', 'dev': 'false'}, f'{COMMAND}|{DEV}', rf'src/(tool|dev)/.*|tests/window/test-kill|{OF_PROGRAMS}'),
    ({'dev': 'false'}, DEV, rf'src/dev/zklock-dev|{OF_PROGRAMS}'),
    ({'cpp': 'disabled'}, r'include/zklock/\w+\.hpp', r'(tests|examples)/.*cpp.*'),
    ({'examples': 'false'}, NOTHING, r'examples/.*'),
    ({'tests': 'short'}, NOTHING, r'tests/(?!(lib|unit|sim|fuzz)/).*'),
    ({'tests': 'false'}, NOTHING, r'tests/.*'),
]


def steps(folder):
    """How each file is made, and by which rules; without what stands for all files, or for meson itself."""
    blocks = (folder / 'build.ninja').read_text(encoding='utf-8').split('\n\n')
    return {block for block in blocks if not re.match(r'build (all|meson-\S+|build\.ninja|\S*meson\.build.*): ', block)}


class Configured:
    """A build folder as these options leave it."""

    def __init__(self, folder, again, options):
        said = run([MESON, 'setup', *(['--reconfigure'] if again else []), folder, SOURCE, '--prefix=/usr',
                    *(f'-D{name}={value}' for name, value in options.items())])
        check(options['cpp'] != 'disabled' or 'C++ compiler' not in said, f'a compiler for C++ is looked for without need: {said}')
        run(['ninja', '-C', folder, '-n'])
        self.steps = steps(folder)
        self.made = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob('*') if path.suffix in ('.h', '.pc')}
        targets = json.loads(run([MESON, 'introspect', '--targets', folder]))
        self.targets = {f'{pathlib.Path(target["defined_in"]).parent.relative_to(SOURCE)}/{target["name"]}' for target in targets}
        self.files = self.installed(folder, targets)

    @staticmethod
    def installed(folder, targets):
        """Empty files stand for what would be built."""
        for target in targets:
            for name in map(pathlib.Path, target['filename'] if target['installed'] else []):
                name.parent.mkdir(parents=True, exist_ok=True)
                name.touch()
        with tempfile.TemporaryDirectory(prefix='zkl-options-root-') as root:
            installed.install(MESON, folder, root)
            root = pathlib.Path(root) / 'usr'
            return {str(path.relative_to(root)) for path in root.rglob('*') if not path.is_dir()}


def compare(off, everything, built, files, targets):
    missing = everything.files - built.files
    wanted = {name for name in everything.files if re.fullmatch(files, name)}
    check(missing == wanted, f'with {off}, of what is installed there should be gone {sorted(wanted)}, and is {sorted(missing)}')
    check(not built.files - everything.files, f'with {off} more is installed: {sorted(built.files - everything.files)}')
    gone = everything.targets - built.targets
    check(gone, f'with {off} everything is built')
    others = sorted(name for name in gone if not re.fullmatch(targets, name))
    check(not others, f'with {off} this is not built any more: {others}')
    check(not built.steps - everything.steps, f'with {off} this is built in another way: {built.steps - everything.steps}')
    check(built.made.items() <= everything.made.items(),
          f'with {off} configuring makes other files: {built.made.keys()}, and with everything {everything.made.keys()}')
    return f'{off}: {len(missing)} files less, {len(gone)} programs and libraries less'


def main():
    with tempfile.TemporaryDirectory(prefix='zkl-options-') as work:
        folder = pathlib.Path(work) / 'build'
        everything = Configured(folder, False, EVERYTHING)
        for changes, files, targets in OFF:
            off = ', '.join(f'{name}={value}' for name, value in changes.items())
            print(compare(off, everything, Configured(folder, True, {**EVERYTHING, **changes}), files, targets), flush=True)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sources.py RULE ROOT [WORD]: rules that sources and pages show. Each is a function here."""
import pathlib
import re
import sys

import rules

# --- signals

SIGNAL_CALLS = re.compile(r'\b(signal|sigaction|sigprocmask|pthread_sigmask|signalfd|sig(?:timed)?wait(?:info)?|sigsuspend)'
                          r'\s*\(')


def signals(root):
    """The programs change how signals reach them in one file: who asks what a signal does to zklock reads that."""
    files = sorted((root / 'src/tool').glob('*.c')) + [root / 'src/dev/dev.c']
    calls = {file.name: [(number, match[1]) for number, line in enumerate(rules.text(file).splitlines(), 1)
                         for match in SIGNAL_CALLS.finditer(line)] for file in files}
    here = calls.pop('signals.c', [])
    return ([f'src/tool/{name}:{number}: {call}() belongs in signals.c' for name, found in calls.items() for number, call in found],
            f'{len(files)} files, all {len(here)} calls in signals.c', here)


# --- openings

OPENS_WITH = {'pred_proof.c': 27}  # the argument of its proof, which takes more than 15


def openings(root):
    """Every .c file of src opens with 5 to 15 lines: what it is for, what it owns, under which lock, who calls it."""
    files, problems = sorted((root / 'src').rglob('*.c')), []
    for path in files:
        comment = re.match(r'/\*.*?\*/\n', rules.text(path), re.S)
        lines, most = comment[0].count('\n') if comment else 0, OPENS_WITH.get(path.name, 15)
        if not 5 <= lines <= most or 'SPDX-License-Identifier: Apache-2.0' not in comment[0]:
            problems.append(f'{path.relative_to(root)} opens with {lines} lines of comment, not 5 to {most}')
    return problems, f'{len(files)} files', len(files) >= 100


# --- the grant path

STEP = re.compile(r'^\| (src/\S+\.c) \| `(\w+)` \| (.*?) \|$', re.M)
# Where a table ends, or goes on with what this one leads to.
END = {'zoo_acreate2', 'zkl_core_feed', 'zkl_place_wake', 'zkl_step_grant'}


def grant_path(root):
    """docs/contender.md is the code's: each function that a table names is defined in that file, and names what the row
    says that it calls; and what it calls is the next row's function, unless the row says another way."""
    rows, problems = STEP.findall(rules.text(root / 'docs/contender.md')), []
    for (path, function, calls), after in zip(rows, rows[1:] + [None]):
        text = rules.text(root / path) if (root / path).exists() else ''
        body = re.search(rf'^[a-z][^\n;{{}}=]*\b{function}\([^;{{}}]*\)\n{{\n(.*?)^}}', text, re.M | re.S)
        if not body:
            problems.append(f'{path} does not define {function}')
            continue
        names = re.findall(r'`(\w+)`', calls)
        problems += [f'{path}: {function} does not name {name}' for name in names if not re.search(rf'\b{name}\b', body[1])]
        direct = re.fullmatch(r'`(zkl_)?\w+`', calls)
        if direct and after and names[0] != after[1] and names[0] not in END:
            problems.append(f'{path}: {function} calls {names[0]}, but the next row is {after[1]}')
    return problems, f'{len(rows)} steps through {len({path for path, _, _ in rows})} files', len(rows) >= 30


# --- examples

EXAMPLE_LINES_MAX = 79  # of a program; examples/contention has several files
BEHIND_INLINE = re.compile(r'zkl_guard_\w+_paths?')  # what guard.h's own functions call


def examples(root):
    """Every public call is shown in an example, and the small examples stay small. None, nor a header's, takes what belongs to
    a later library for its own: entries of an inspection come by zkl_inspection_entry."""
    calls = {name for name in re.findall(r'\b(zkl_\w+)\s*;', rules.code(root / 'src/libzklock.map'))
             if not BEHIND_INLINE.fullmatch(name)}
    sources = [path for suffix in ('c', 'cpp') for path in sorted((root / 'examples').rglob(f'*.{suffix}'))]
    shown = {name for path in sources for name in re.findall(r'\b(zkl_\w+)\s*\(', rules.code(path))}
    headers = {path: '\n'.join(re.findall(r'^ \*     .*', rules.text(path), re.MULTILINE))
               for path in (root / 'include/zklock').glob('*.h')}
    problems = [f'{name} is in no example' for name in sorted(calls - shown)]
    for path in sources:
        lines = rules.text(path).count('\n')
        if path.parent == root / 'examples' and lines > EXAMPLE_LINES_MAX:
            problems.append(f'{path.name} has {lines} lines, more than {EXAMPLE_LINES_MAX}')
    problems += [f'{path.name} takes entries without zkl_inspection_entry'
                 for path, text in {**{path: rules.text(path) for path in sources}, **headers}.items()
                 if re.search(r'->entries\b', text)]
    return problems, f'{len(calls)} calls in {len(sources)} files', calls and sources and headers


# --- planted bugs

def planted_bugs(root):
    """Each planted bug still has its place: what it replaces stands in the function once, word for word. A change of src that
    moves such a place is told here at once, and not after the long run, which builds them (tests/planted, tests/linear)."""
    sys.path.append(str(root / 'tests/planted'))
    import planted
    bugs = [bug for folder in sorted(root.glob('tests/*/bugs')) for bug in planted.load(folder)]
    each = [(bug, *change) for bug in bugs for change in bug.changes]
    problems = [f'{bug.name} changes nothing' for bug in bugs if not bug.changes]
    for bug, name, *change in each:
        try:
            planted.replaced(rules.text(root / name), *change)
        except planted.Broken as why:
            problems.append(f'{bug.name}: {name} has changed; plant the bug anew, of the same kind: {why}')
    return problems, f'{len(each)} places of planted bugs', each


# --- diagrams

def diagrams(root, simulation):
    """docs/states.md draws which state may follow which: of each machine all that its table allows, and nothing else.

    diagrams ROOT SIMULATION: a program that prints the tables"""
    allowed, problems, known = {}, [], set()
    for machine, move in re.findall(r'^(.*): (\w+ --> \w+)$', rules.said(simulation, '--moves'), re.M):
        allowed.setdefault(machine, set()).add(move)
    drawn = set(re.findall(r'^\s*([A-Z]+ --> [A-Z]+)', rules.text(root / 'docs/states.md'), re.M))
    for machine, moves in allowed.items():
        states = {state for move in moves for state in move.split(' --> ')}
        here = {move for move in drawn if states.issuperset(move.split(' --> '))}
        known |= here
        problems += [f'{machine}: {move} is drawn, but not allowed' for move in sorted(here - moves)]
        problems += [f'{machine}: {move} is allowed, but not drawn' for move in sorted(moves - here)]
    problems += [f'no machine has the states of {move}' for move in sorted(drawn - known)]
    return problems, f'{len(drawn)} arrows of {len(allowed)} machines', len(allowed) == 5


# --- layers

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
LAYERS = {'core', 'dev', 'driver', 'api', 'make', 'secret', 'tool', 'zklock'}
# What of this project each may include, and why no other.
MAY_INCLUDE = {
    'core': ({'core', 'zklock'}, 'not on the list of the pure core'),
    'driver': (LAYERS - {'api'}, 'the driver stands below the api'),
    'dev': ({'dev', 'tool', 'zklock'}, 'private servers know nothing of the library'),
    'tool': ({'make', 'secret', 'tool', 'zklock'}, 'the command knows the public headers only'),
    'make': ({'make'}, 'it knows nothing of the library, nor of the command'),
    'secret': ({'secret'}, 'it knows nothing of the library, nor of the command'),
    'zklock': ({'zklock'}, 'a public header includes a private one'),
}
# All that a pure function can want: parts of the C library, and the constants of the public headers.
PURE = {'assert.h', 'endian.h', 'inttypes.h', 'limits.h', 'stdarg.h', 'stdatomic.h', 'stdbool.h', 'stddef.h',
        'stdint.h', 'stdio.h', 'stdlib.h', 'string.h', 'zklock/inspect.h', 'zklock/metrics.h', 'zklock/zklock.h'}
# A public header whose inline functions work on ZooKeeper's own types, and what implements the others.
PUBLIC_WITH_ZOOKEEPER = {'include/zklock/guard.h', 'src/api/guard.c'}
# What a lock never asks, in calls that are exported for the command alone.
EXEMPT = {('src/tool/ask.h', 'api/errand.h')}


class Includes:
    """Every #include of src and include/zklock, followed."""

    def __init__(self, root):
        self.root, self.ways = root, {}
        files = sorted(path for folder in ('src', 'include') for path in (root / folder).rglob('*') if path.suffix in ('.c', '.h'))
        self.of = {path: INCLUDE.findall(rules.text(path)) for path in files}

    def file(self, path, target):
        """The file of this project that the line means, or None."""
        found = ((folder / target).resolve() for folder in (path.parent, self.root / 'src', self.root / 'include'))
        return next((file for file in found if file in self.of), None)

    def way_to_zookeeper(self, path):
        """How a file comes to ZooKeeper's header, as a list of steps; empty if it does not."""
        if path not in self.ways:
            self.ways[path] = []
            for target in self.of[path]:
                file = self.file(path, target)
                way = self.way_to_zookeeper(file) if file else []
                if way or target.startswith('zookeeper'):
                    self.ways[path] = [target] + way
                    break
        return self.ways[path]

    def problems(self, path):
        name, layer = path.relative_to(self.root).as_posix(), path.parent.name
        way, (may, why) = self.way_to_zookeeper(path), MAY_INCLUDE.get(layer, (LAYERS, ''))
        if way and layer != 'driver' and name not in PUBLIC_WITH_ZOOKEEPER:
            yield f'{name} includes {", which includes ".join(way)}: only src/driver may'
        for target in self.of[path]:
            file = self.file(path, target)
            wrong = file and file.parent.name not in may and (name, target) not in EXEMPT
            if wrong or (layer == 'core' and (not file or file.parent.name == 'zklock') and target not in PURE):
                yield f'{name} includes {target}: {why}'


def includes(root):
    """The layers stay layers: core below driver below api, and ZooKeeper's header in one place."""
    all_of = Includes(root)
    return ([problem for path in all_of.of for problem in all_of.problems(path)], f'includes of {len(all_of.of)} files',
            LAYERS <= {path.parent.name for path in all_of.of})


# --- Debian

def mapped(root):
    """The lines that the symbols file should have: name@node, and the first release that has it."""
    wanted = {}
    for node, release, body in re.findall(r'(\w+_([\d.]+))\s*\{(.*?)\}', rules.code(root / 'src/libzklock.map'), re.DOTALL):
        for name in [node, *re.findall(r'(\w+)\s*;', body.partition('local:')[0].partition('global:')[2])]:
            wanted[f'{name}@{node}'] = f'{release}.0~'
    private = rules.text(root / 'src/private.map').partition('global:')[2]  # for zklock, which depends on the very same version
    for name in ['ZKLOCK_PRIVATE', *re.findall(r'(\w+)\s*;', private)]:
        wanted[f'{name}@ZKLOCK_PRIVATE'] = '1.0.0~'
    return wanted


def debian(root, version):
    """What Debian's tools believe of the library is true of the sources, without a build of packages: the symbols file has each
    function of the map with its release; the newest entry of the changelog is of VERSION, with a ~ where a release candidate has
    a dash; the names of packages have the soname's number."""
    folder, major = root / 'docs/packaging/debian', version.partition('.')[0]
    package = f'libzklock{major}'
    head, *lines = rules.text(folder / f'{package}.symbols').splitlines()
    wanted, found = mapped(root), dict(line.split() for line in lines if line.startswith(' '))
    problems = [] if head == f'libzklock.so.{major} {package} #MINVER#' else [f'the symbols file begins with {head}']
    problems += [f'{name}: the map has it since {wanted.get(name, "never")}, the symbols file since {found.get(name, "never")}'
                 for name in sorted(wanted.keys() | found.keys()) if wanted.get(name) != found.get(name)]
    newest = rules.text(folder / 'changelog').partition('\n')[0]
    if not newest.startswith(f'zklock ({version.replace("-", "~")}-'):
        problems.append(f'the changelog begins with "{newest}", and this is {version}')
    if f'Package: {package}\n' not in rules.text(folder / 'control'):
        problems.append(f'control has no package {package}')
    return problems, f'{len(wanted)} symbols', len(wanted) > 100


if __name__ == '__main__':
    rules.judge(globals()[sys.argv[1]], pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:])

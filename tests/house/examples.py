#!/usr/bin/env python3
"""examples.py ROOT: every public call is shown in an example, and the small examples stay small. None, nor a header's, takes what
belongs to a later library for its own: entries of an inspection come by zkl_inspection_entry.

Goal: whoever looks for a call finds a program that runs. Method: the names of the version map are looked for
in the sources below examples/, comments left out. Calls that have no example yet, or that are not there
yet, stand in LATER, and leave it with their example."""
import pathlib
import re
import sys

LINES_MAX = 79  # of a program; examples/contention has several files
LATER = set()
BEHIND_INLINE = re.compile(r'zkl_guard_\w+_paths?')  # what guard.h's own functions call


def main():
    root = pathlib.Path(sys.argv[1])
    version_map = (root / 'src/libzklock.map').read_text(encoding='utf-8')
    calls = set(re.findall(r'\b(zkl_\w+)\s*;', re.sub(r'/\*.*?\*/', '', version_map, flags=re.DOTALL)))
    calls = {name for name in calls if not BEHIND_INLINE.fullmatch(name)}
    sources = {path: path.read_text(encoding='utf-8') for suffix in ('c', 'cpp')
               for path in sorted((root / 'examples').rglob(f'*.{suffix}'))}
    shown = set()
    for text in sources.values():
        shown |= set(re.findall(r'\b(zkl_\w+)\s*\(', re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)))

    problems = [f'{name} is in no example' for name in sorted(calls - shown - LATER)]
    problems += [f'{name} is in an example: it can leave LATER' for name in sorted(LATER & shown)]
    for path, text in sources.items():
        lines = text.count('\n')
        if path.parent == root / 'examples' and lines > LINES_MAX:
            problems.append(f'{path.name} has {lines} lines, more than {LINES_MAX}')
    headers = {path: '\n'.join(re.findall(r'^ \*     .*', path.read_text(encoding='utf-8'), re.MULTILINE))
               for path in (root / 'include/zklock').glob('*.h')}
    problems += [f'{path.name} takes entries without zkl_inspection_entry'
                 for path, text in {**sources, **headers}.items() if re.search(r'->entries\b', text)]
    if not calls or not sources or not headers:
        problems.append('no call or no example was found')

    for problem in problems:
        print('examples:', problem)
    later = ', '.join(sorted(LATER & calls)) or 'none'
    print(f'examples: {len(calls)} calls, {len(calls & shown)} shown in {len(sources)} files, '
          f'{len(problems)} problems; later: {later}')
    return 1 if problems else 0


sys.exit(main())

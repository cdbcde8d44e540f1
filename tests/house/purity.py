#!/usr/bin/env python3
"""purity.py ARCHIVE SOURCE_DIR: src/core needs no I/O, thread or clock.

Goal: the core stays a function of its events. Method: what the objects of its archive take from
outside must be on the list below; and each of its sources must be in the archive."""
import pathlib
import re
import subprocess
import sys

ALLOWED = re.compile(r'''
    mem(chr|cmp|cpy|mem|move|rchr|set)
  | str(n?(cat|cmp|cpy|dup|len)|r?chr|chrnul|c?spn|str|pbrk|to[iu]max|tou?ll?) | stpn?cpy
  | __isoc23_strtou?ll?
  | malloc | calloc | realloc | reallocarray | free | abort | qsort | bsearch
  | v?snprintf
  | __(mem|str|stp|v?snprintf)\w*_chk | __stack_chk_fail     # the same, hardened by the compiler
  | __assert(_fail)? | _GLOBAL_OFFSET_TABLE_
  | __(a|ub|t|l)san_\w+ | __sanitizer_\w+ | __gcov_\w+ | __llvm_\w+ | __tls_get_addr
''', re.VERBOSE)


def nm(archive, *options):
    """The symbols of each member of the archive."""
    text = subprocess.run(['nm', *options, archive], check=True, text=True, stdout=subprocess.PIPE).stdout
    members, names = {}, set()
    for line in text.splitlines():
        if line.endswith(':'):
            names = members.setdefault(line[:-1], set())
        elif line.strip():
            names.add(line.split()[-1])
    return members


def main():
    archive, source = sys.argv[1], pathlib.Path(sys.argv[2])
    needed = nm(archive, '-u')
    defined = set().union(*nm(archive, '-g', '--defined-only').values())
    sources = {p.name for p in source.glob('**/*.c')}

    problems = []
    if not sources:
        problems.append(f'no source in {source}')
    for name in sorted(sources):
        if not any(re.search(rf'(^|[/_]){re.escape(name)}\.o$', member) for member in needed):
            problems.append(f'{name} is not in the archive')
    for member, names in sorted(needed.items()):
        for name in sorted(names - defined):
            if not ALLOWED.fullmatch(name):
                problems.append(f'{member.rpartition("/")[2]} needs {name}')
    for problem in problems:
        print('core:', problem)
    print(f'core: {len(sources)} sources, {len(needed)} objects, {len(problems)} problems')
    return 1 if problems else 0


sys.exit(main())

#!/usr/bin/env python3
"""includes.py ROOT: who may include what.

Goal: the layers stay layers: core below driver below api, and ZooKeeper's header in one place.
Method: every #include of src and include/zklock is looked at."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)

# All of the C library that a pure function can want.
PURE = {'assert.h', 'inttypes.h', 'limits.h', 'stdarg.h', 'stdbool.h', 'stddef.h', 'stdint.h',
        'stdio.h', 'stdlib.h', 'string.h'}
# Public headers whose inline functions work on ZooKeeper's own types.
PUBLIC_WITH_ZOOKEEPER = {'include/zklock/guard.h'}


def main():
    root = pathlib.Path(sys.argv[1])
    files = sorted(p for d in ('src', 'include') for p in (root / d).rglob('*') if p.suffix in ('.c', '.h'))
    layer_of = {p.name: p.parent.name for p in files if p.suffix == '.h'}
    problems = []
    for path in files:
        name = path.relative_to(root).as_posix()
        layer = path.parent.name
        for target in INCLUDE.findall(path.read_text(encoding='utf-8')):
            base = target.rpartition('/')[2]
            target_layer = layer_of.get(base)
            if 'zookeeper' in target and layer != 'driver' and name not in PUBLIC_WITH_ZOOKEEPER:
                problems.append(f'{name} includes {target}: only src/driver may')
            if layer == 'core' and target_layer != 'core' and target not in PURE:
                problems.append(f'{name} includes {target}: not on the list of the pure core')
            if layer == 'driver' and target_layer == 'api':
                problems.append(f'{name} includes {target}: the driver stands below the api')
            if layer == 'zklock' and target_layer not in (None, 'zklock'):
                problems.append(f'{name} includes {target}: a public header includes a private one')
    for layer in ('core', 'driver', 'api', 'zklock'):
        if not any(p.parent.name == layer for p in files):
            problems.append(f'no file of layer {layer} was found')
    for problem in problems:
        print(problem)
    print(f'includes of {len(files)} files, {len(problems)} problems')
    return 1 if problems else 0


sys.exit(main())

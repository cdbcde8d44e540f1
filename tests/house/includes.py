#!/usr/bin/env python3
"""includes.py ROOT: who may include what.

Goal: the layers stay layers: core below driver below api, and ZooKeeper's header in one place.
Method: every #include of src and include/zklock is followed."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)

# All that a pure function can want: parts of the C library, and the constants of the public headers.
PURE = {'assert.h', 'endian.h', 'inttypes.h', 'limits.h', 'stdarg.h', 'stdatomic.h', 'stdbool.h', 'stddef.h',
        'stdint.h', 'stdio.h', 'stdlib.h', 'string.h', 'zklock/inspect.h', 'zklock/metrics.h', 'zklock/zklock.h'}
# A public header whose inline functions work on ZooKeeper's own types, and what implements the others.
PUBLIC_WITH_ZOOKEEPER = {'include/zklock/guard.h', 'src/api/guard.c'}
# What a lock never asks, in calls that are exported for the command alone.
FOR_TOOL = {'src/tool/ask.h': 'api/errand.h'}


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = sorted(p for d in ('src', 'include') for p in (root / d).rglob('*') if p.suffix in ('.c', '.h'))
    includes = {p: INCLUDE.findall(p.read_text(encoding='utf-8')) for p in files}

    def ours(path, target):
        """The file of this project that the line means, or None."""
        for folder in (path.parent, root / 'src', root / 'include'):
            file = (folder / target).resolve()
            if file in includes:
                return file
        return None

    ways = {}  # by file, once it was looked at

    def way_to_zookeeper(path):
        """How a file comes to ZooKeeper's header, as a list of steps; empty if it does not."""
        if path not in ways:
            ways[path] = []
            for target in includes[path]:
                file = ours(path, target)
                way = [] if target.startswith('zookeeper') else way_to_zookeeper(file) if file else None
                if way or target.startswith('zookeeper'):
                    ways[path] = [target] + way
                    break
        return ways[path]

    problems = []
    for path in files:
        name, layer = path.relative_to(root).as_posix(), path.parent.name
        way = way_to_zookeeper(path)
        if way and layer != 'driver' and name not in PUBLIC_WITH_ZOOKEEPER:
            problems.append(f'{name} includes {", which includes ".join(way)}: only src/driver may')
        for target in includes[path]:
            file = ours(path, target)
            target_layer = file.parent.name if file else None
            if layer == 'core' and target_layer != 'core' and target not in PURE:
                problems.append(f'{name} includes {target}: not on the list of the pure core')
            if layer == 'driver' and target_layer == 'api':
                problems.append(f'{name} includes {target}: the driver stands below the api')
            if layer == 'dev' and target_layer not in (None, 'dev', 'tool', 'zklock'):
                problems.append(f'{name} includes {target}: private servers know nothing of the library')
            if layer == 'tool' and target_layer not in (None, 'make', 'secret', 'tool', 'zklock') and \
                    FOR_TOOL.get(name) != target:
                problems.append(f'{name} includes {target}: the command knows the public headers only')
            if layer in ('make', 'secret') and target_layer not in (None, layer):
                problems.append(f'{name} includes {target}: it knows nothing of the library, nor of the command')
            if layer == 'zklock' and target_layer not in (None, 'zklock'):
                problems.append(f'{name} includes {target}: a public header includes a private one')
    for layer in ('core', 'dev', 'driver', 'api', 'make', 'secret', 'tool', 'zklock'):
        if not any(p.parent.name == layer for p in files):
            problems.append(f'no file of layer {layer} was found')
    for problem in problems:
        print(problem)
    print(f'includes of {len(files)} files, {len(problems)} problems')
    return 1 if problems else 0


sys.exit(main())

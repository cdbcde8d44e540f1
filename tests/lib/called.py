#!/usr/bin/env python3
"""called.py MAP HEADER: a header that counts which of the exported functions a test has called.

A test that is to cover every public call includes it behind the library's headers: each call of an
exported function is then counted, and called_check fails for one that was not called. The names come
from the version map, so a new function is missed by name until the test has it too."""
import pathlib
import re
import sys

TEXT = '''/* Made by tests/lib/called.py of {source}. One file of a program defines CALLED_DEFINE first. */
#ifndef ZKTEST_CALLED_H
#define ZKTEST_CALLED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define CALLED_COUNT {count}

extern atomic_bool called_on; /* count now */
extern atomic_int called_times[CALLED_COUNT];

#ifdef CALLED_DEFINE
atomic_bool called_on;
atomic_int called_times[CALLED_COUNT];
#endif

static inline int called_note(int which)
{{
    return called_on ? atomic_fetch_add(&called_times[which], 1) : 0;
}}

/* How many of them were not called; those are named. */
static inline int called_missing(void)
{{
    static const char *const names[CALLED_COUNT] = {{
{names}
    }};
    int missing = 0;
    for (int i = 0; i < CALLED_COUNT; i++) {{
        if (called_times[i] == 0)
            fprintf(stderr, "        %s was not called\\n", names[i]);
        missing += called_times[i] == 0;
    }}
    return missing;
}}

{macros}

#endif
'''


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    text = re.sub(r'/\*.*?\*/', '', source.read_text(encoding='utf-8'), flags=re.DOTALL)
    names = re.findall(r'\b(zkl_\w+)\s*;', text)
    if not names:
        sys.exit(f'{source} exports nothing')
    target.write_text(TEXT.format(
        source=source.name,
        count=len(names),
        names='\n'.join(f'        "{name}",' for name in names),
        macros='\n'.join(f'#define {name}(...) ((void)called_note({i}), {name}(__VA_ARGS__))'
                         for i, name in enumerate(names))), encoding='utf-8')


main()

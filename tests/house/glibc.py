#!/usr/bin/env python3
"""The library needs no newer glibc than 2.30, the programs none newer than 2.31, that of Debian 11.

Goal: who builds on an old system is not stopped by one call. Method: the glibc here says since which version it has each
function that they take from it: the oldest of those under which it has the name, as what moved from libpthread into libc
in 2.34 is there under both. Headers that came later are listed.

glibc.py ROOT COMPILER LIBRARY PROGRAM..."""
import pathlib
import re
import subprocess
import sys

LIBRARY, PROGRAMS = (2, 30), (2, 31)
# What the headers made of it before: inline calls of __xstat and others; the headers of 2.38 and later give strtol of C23
# a name of its own.
BY_HEADERS = re.compile(r'[fl]?stat(64)?|fstatat(64)?|mknod(at)?|__isoc23_\w+|__libc_start_main')
HEADERS = {'sys/single_threaded.h': (2, 32), 'sys/rseq.h': (2, 35), 'sys/pidfd.h': (2, 36), 'stdbit.h': (2, 39)}


def symbols(file, *options):
    """Names with the versions that they have or want."""
    listing = subprocess.run(['nm', '-D', *options, file], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        match = re.search(r'(\S+?)@@?GLIBC_(\d+)\.(\d+)(?:\.\d+)?$', line)
        if match:
            yield match[1], (int(match[2]), int(match[3]))


def libc(compiler):
    found = subprocess.run([*compiler, '-print-file-name=libc.so.6'], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def text(version):
    return '.'.join(map(str, version))


def main(root, *arguments):
    split = next(i for i, argument in enumerate(arguments) if '.so' in argument)
    compiler, files = arguments[:split], arguments[split:]
    since = {}
    for name, version in symbols(libc(compiler), '--defined-only'):
        since[name] = min(version, since.get(name, version))

    problems, looked = [], 0
    for file, most in zip(files, [LIBRARY] + [PROGRAMS] * len(files)):
        wanted = [name for name, _ in symbols(file, '--undefined-only')]
        if 'malloc' not in wanted and 'free' not in wanted:
            problems.append(f'{file}: no call of libc is seen: this test looks at it wrongly')
        looked += len(wanted)
        problems += [f'{file} needs {name}, which glibc has since {text(since[name])}' for name in wanted
                     if since.get(name, most) > most and not BY_HEADERS.fullmatch(name)]
    if since.get('close_range') != (2, 34) or since.get('pthread_create', (9, 9)) > (2, 30):
        problems.append('close_range or pthread_create is not as it was: this test reads the versions wrongly')
    for source in sorted(pathlib.Path(root).glob('src/**/*.[ch]')):
        for header in re.findall(r'^\s*#\s*include\s*<([^>]+)>', source.read_text(encoding='utf-8'), re.MULTILINE):
            if header in HEADERS:
                problems.append(f'{source} includes <{header}>, which glibc has since {text(HEADERS[header])}')
    print('\n'.join(problems) or f'{looked} symbols of {len(files)} files are in glibc {text(LIBRARY)} and {text(PROGRAMS)}')
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the way of a call is: for nine everyday calls the calls within the library (all its threads), the functions
and files that they are in, how often the file changes from one call of a thread to its next, and the lines of those
functions. Builds a library with -finstrument-functions in build-tests/path and runs path.c with it on a private
server; of the cycles but the first the one with the fewest calls is told, as heartbeats come between.

path.py [--json] [--files NAME]   NAME: a call whose files are listed with their calls"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLAGS = ('-gdwarf-4 -fno-inline -fno-optimize-sibling-calls -finstrument-functions '
         '-finstrument-functions-exclude-file-list=/usr/include')


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit(f'path.py: {" ".join(map(str, command))}: {done.stdout[-2000:]}')
    return done.stdout


def build(folder):
    """The library and the program."""
    if not (folder / 'build.ninja').exists():
        run('meson', 'setup', folder, '-Doptimization=0', '-Ddebug=true', f'-Dc_args={FLAGS}', cwd=ROOT,
            env=dict(os.environ, CC='gcc'))
    library = next(line.partition(':')[0] for line in run('ninja', '-C', folder, '-t', 'targets', 'all').splitlines()
                   if re.match(r'src/libzklock\.so[.\d]+:', line))
    run('ninja', '-C', folder, library, 'tests/lib/zk-private')
    program = folder / 'path'
    run('gcc', '-pthread', f'-I{ROOT}/include', HERE / 'path.c', folder / library, f'-Wl,-rpath,{folder}/src', '-o',
        program)
    return folder / library, program


def ends(path):
    """The first line of a function's body's end, for the line of each one's name."""
    lines = path.read_text().splitlines()
    end = 0
    found = {}
    for number in range(len(lines), 0, -1):
        end = number if lines[number - 1] == '}' else end
        found[number] = end
    return found


class Map:
    """From an address to its function, file (a header is one with its .c) and lines."""

    def __init__(self, library, base):
        self.library, self.base, self.known, self.ends = library, base, {}, {}

    def learn(self, addresses):
        new = sorted(set(addresses) - set(self.known))
        if not new:
            return
        said = run('addr2line', '-f', '-e', self.library, *(hex(address - self.base) for address in new)).splitlines()
        for address, name, place in zip(new, said[::2], said[1::2]):
            file, _, line = place.split(' ')[0].rpartition(':')
            file = file[file.index('src/'):]  # what comes before it is not kept by the build
            if file not in self.ends:
                self.ends[file] = ends(ROOT / file)
            self.known[address] = name, file[:-2], self.ends[file][int(line)] - int(line) + 1


def figures(trace, places):
    places.learn(address for _, address in trace)
    last, changes = {}, 0
    for thread, address in trace:
        file = places.known[address][1]
        changes += thread in last and last[thread] != file
        last[thread] = file
    functions = {places.known[address] for _, address in trace}
    return {'calls': len(trace), 'functions': len(functions), 'files': len({file for _, file, _ in functions}),
            'changes': changes, 'lines': sum(lines for _, _, lines in functions)}


def read(output, library):
    """Of each call all cycles, as lists of thread and address."""
    calls, at = collections.defaultdict(list), 0
    for line in output.splitlines():
        if line.startswith('at '):
            at = int(line[3:], 16)
        elif line.startswith('call '):
            calls[line[5:]].append([])
            trace = calls[line[5:]][-1]
        else:
            thread, address = line.split()
            trace.append((int(thread), int(address, 16)))
    symbol = next(line for line in run('nm', '-D', '--defined-only', library).splitlines()
                  if line.split()[2].partition('@')[0] == 'zkl_client_open')
    return calls, Map(library, at - int(symbol.split()[0], 16))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--files', metavar='NAME')
    options = parser.parse_args()
    folder = ROOT / 'build-tests/path'
    library, program = build(folder)
    calls, places = read(run(folder / 'tests/lib/zk-private', '--quiet', '--', program), library)
    rows, everything = {}, set()
    for call, traces in calls.items():
        trace = min(traces[1:], key=len)
        rows[call] = figures(trace, places)
        everything |= {places.known[address] for _, address in trace}
        if call == options.files:
            count = collections.Counter(places.known[address][1] for _, address in trace)
            print('\n'.join(f'{number:6} {file}' for file, number in count.most_common()))
    if options.json:
        print(json.dumps(rows))
        return
    print(f'{"":50}{"calls":>8}{"functions":>11}{"files":>7}{"changes":>9}{"lines":>7}')
    for call, row in rows.items():
        print(f'{call:50}{row["calls"]:8}{row["functions"]:11}{row["files"]:7}{row["changes"]:9}{row["lines"]:7}')
    print(f'{"all together":50}{"":8}{len(everything):11}{len({file for _, file, _ in everything}):7}{"":9}'
          f'{sum(lines for _, _, lines in everything):7}')


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Calls go down only: the object files of a folder are looked through for files that call each other in a circle
(defined against undefined symbols), and for calls from a folder to one above it. There is none of either.

loops.py ARCHIVE... FOLDER=ARCHIVE... FOLDER=PROGRAM...
Members of an archive without a FOLDER are named FOLDER_NAME.c.o; the objects of a program are in PROGRAM.p."""
import glob
import re
import subprocess
import sys

# From the bottom up. A call may go to the same folder or to one further down.
FOLDERS = ['core', 'secret', 'driver', 'api', 'tool', 'dev']


def files_of(arg):
    """Each file, as folder and name, with what it defines and what it wants."""
    folder, _, path = arg.rpartition('=')
    objects = [path] if path.endswith('.a') else sorted(glob.glob(path + '.p/*.o'))
    listing = subprocess.run(['nm', '-A', *objects], capture_output=True, text=True, check=True).stdout
    files = {}
    for line in listing.splitlines():
        match = re.match(r'(?:.*[:/])?(?:\.\._)?([^:/]+)\.c\.o:', line)
        name = match[1] if folder and '.._' not in line else match[1].partition('_')[::2]
        defined, wanted = files.setdefault((folder, name) if isinstance(name, str) else name, (set(), set()))
        words = line[match.end():].split()
        if len(words) > 1 and words[-2] == 'U':
            wanted.add(words[-1])
        elif len(words) > 1 and words[-2] in 'TDBRVW':
            defined.add(words[-1])
    return files


def circles(calls):
    """Strongly connected components of two files and more (Tarjan, 1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for callee in calls[file]:
            if callee not in number:
                visit(callee)
                low[file] = min(low[file], low[callee])
            elif callee in stack:
                low[file] = min(low[file], number[callee])
        if low[file] == number[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for file in calls:
        if file not in number:
            visit(file)
    return found


def main(args):
    files = {}
    for arg in args:
        files.update(files_of(arg))
    owner = {symbol: file for file, (defined, _) in files.items() for symbol in defined}
    calls = {file: {owner[s] for s in wanted if s in owner} - {file}
             for file, (_, wanted) in files.items()}
    wrong = []
    for caller in calls:
        for callee in calls[caller]:
            if FOLDERS.index(callee[0]) > FOLDERS.index(caller[0]):
                wrong.append('%s/%s.c calls up, into %s/%s.c' % (*caller, *callee))
    wrong += ['a circle in %s: %s' % (circle[0][0], ' '.join(name + '.c' for _, name in circle))
              for circle in circles(calls)]
    print('\n'.join(wrong) or '%d files, no circle' % len(files))
    return 1 if wrong or len(files) < 40 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""symbols.py RULE ...: rules that the symbols of built files show. Each is a function here, with its words."""
import glob
import pathlib
import re
import sys

import rules

SYMBOL = re.compile(r'(.*):\s*[0-9a-f]* (\w) (\S+)')


def symbols(*words):
    """(file and member, kind, name) of each line of nm."""
    return [SYMBOL.fullmatch(line).groups() for line in rules.said('nm', '-A', *words).splitlines()]


# --- the core

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


def purity(archive, folder):
    """src/core needs no I/O, thread or clock: what the objects of its archive take from outside is on the list above, and each
    of its sources is in the archive."""
    members = rules.said('ar', 't', archive).split()
    defined = {name for _, _, name in symbols('-g', '--defined-only', archive)}
    sources = sorted(path.name for path in pathlib.Path(folder).glob('**/*.c'))
    problems = [f'{name} is not in the archive' for name in sources
                if not any(re.search(rf'(^|[/_]){re.escape(name)}\.o$', member) for member in members)]
    problems += sorted({f'{place.rpartition(":")[2]} needs {name}' for place, _, name in symbols('-u', archive)
                        if name not in defined and not ALLOWED.fullmatch(name)})
    return problems, f'{len(sources)} sources, {len(members)} objects', sources and len(defined) > 100


# --- the launcher

def launcher(archive, zklock, zklock_dev):
    """Nothing that starts Java stands on a machine where only zklock was wanted: of what the launcher's archive defines, static
    functions and data as well, the installed command has nothing, and the program beside it has."""
    of, command, dev = ({name for _, kind, name in symbols('--defined-only', file) if kind in 'TDBRV'}
                        for file in (archive, zklock, zklock_dev))
    return ([f'zklock has {name} of the launcher' for name in sorted(of & command)],
            f'none of the {len(of)} functions of the launcher is in zklock', 'zks_start' in of & dev)


# --- exports

def compare(one, ones, other, others):
    yield from (f'{name} is in {one} but not in {other}' for name in sorted(ones - others))
    yield from (f'{name} is in {other} but not in {one}' for name in sorted(others - ones))


def dynamic(library, version):
    """Of its soname and flags what is wrong."""
    said = rules.said('readelf', '-W', '-d', library)
    soname = re.search(r'\(SONAME\).*\[(.*)\]', said)
    if not soname or soname[1] != f'libzklock.so.{version.partition(".")[0]}':
        yield f'the soname is {soname[1] if soname else "missing"}'
    # A thread's key destructor is code of the library and runs when the thread ends: after a dlclose too.
    if not re.search(r'\(FLAGS_1\).*\bNODELETE\b', said):
        yield 'the library is not linked with -z nodelete'


def exports(library, archive, version_map, private_map, version, *headers):
    """The library exports what the headers declare with ZKL_API, and what the maps name, no more and no less: nobody can come to
    depend on an internal name, and no promised name is missing. What a static library brings into a program begins with zkl_."""
    declared = {name for header in headers
                for name in re.findall(r'^ZKL_API[^;(]*?\b(\w+)\s*\(', rules.code(header), re.MULTILINE)}
    bodies = dict(re.findall(r'([\w.]+)\s*\{(.*?)\}', rules.code(version_map), re.DOTALL))
    mapped = [name for body in bodies.values()
              for name in re.findall(r'([\w*]+)\s*;', body.partition('local:')[0].partition('global:')[2])]
    private = set(re.findall(r'(\w+)\s*;', rules.code(private_map).partition('global:')[2]))
    exported, for_the_command = set(), set()
    problems = [f'{name} is in the map twice, or a pattern' for name in set(mapped) if mapped.count(name) > 1 or '*' in name]
    for name, _, node in (symbol[2].partition('@') for symbol in symbols('-D', '--defined-only', library)):
        node = node.lstrip('@')
        if name not in bodies and name != 'ZKLOCK_PRIVATE':
            (for_the_command if node == 'ZKLOCK_PRIVATE' else exported).add(name)
            problems += [f'{name} is exported without a version of the map'] if node not in {*bodies, 'ZKLOCK_PRIVATE'} else []
    problems += [*compare('the headers', declared, 'the map', set(mapped)), *compare('the headers', declared, 'the library', exported),
                 *compare('the private map', private, 'the library', for_the_command), *dynamic(library, version)]
    problems += [f'{name} in the static library can clash with a name of the program'
                 for _, _, name in symbols('-g', '--defined-only', archive) if not name.startswith(('zkl_', '__'))]
    return problems, f'{len(declared)} declared, {len(exported)} exported', declared


# --- glibc

# That of Debian 11 for the programs. The headers made of some calls another name before: inline calls of __xstat and others;
# those of 2.38 and later give strtol of C23 a name of its own.
LIBRARY, PROGRAMS = (2, 30), (2, 31)
BY_HEADERS = re.compile(r'[fl]?stat(64)?|fstatat(64)?|mknod(at)?|__isoc23_\w+|__libc_start_main')
HEADERS = {'sys/single_threaded.h': (2, 32), 'sys/rseq.h': (2, 35), 'sys/pidfd.h': (2, 36), 'stdbit.h': (2, 39)}


def versions(file, option):
    """Names of glibc's with the versions that they have or want."""
    for _, _, symbol in symbols('-D', option, file):
        match = re.fullmatch(r'(\S+?)@@?GLIBC_(\d+)\.(\d+)(?:\.\d+)?', symbol)
        if match:
            yield match[1], (int(match[2]), int(match[3]))


def glibc(root, *words):
    """The library needs no newer glibc than 2.30, the programs none newer than 2.31: who builds on an old system is not stopped by
    one call. The glibc here says since which version it has each function: the oldest of those under which it has the name, as
    what moved from libpthread into libc in 2.34 is there under both.

    glibc ROOT COMPILER... LIBRARY PROGRAM..."""
    split = next(i for i, word in enumerate(words) if '.so' in word)
    compiler, files, since, problems, looked = words[:split], words[split:], {}, [], 0
    for name, version in versions(rules.said(*compiler, '-print-file-name=libc.so.6').strip(), '--defined-only'):
        since[name] = min(version, since.get(name, version))
    enough = since.get('close_range') == (2, 34) and since.get('pthread_create', (9, 9)) <= (2, 30)
    for file, most in zip(files, [LIBRARY] + [PROGRAMS] * len(files)):
        wanted = [name for name, _ in versions(file, '--undefined-only')]
        enough = enough and ('malloc' in wanted or 'free' in wanted)
        looked += len(wanted)
        problems += [f'{file} needs {name}, which glibc has since {since[name]}' for name in wanted
                     if since.get(name, most) > most and not BY_HEADERS.fullmatch(name)]
    for source in sorted(pathlib.Path(root).glob('src/**/*.[ch]')):
        problems += [f'{source} includes <{header}>, which glibc has since {HEADERS[header]}'
                     for header in re.findall(r'^\s*#\s*include\s*<([^>]+)>', rules.text(source), re.MULTILINE) if header in HEADERS]
    return problems, f'{looked} symbols of {len(files)} files are in glibc {LIBRARY} and {PROGRAMS}', enough


# --- calls

# From the bottom up. A call may go to the same folder or to one further down.
FOLDERS = ['core', 'secret', 'driver', 'api', 'tool', 'dev']


def files_of(word):
    """Each file, as folder and name, with what it defines and what it wants."""
    folder, _, path = word.rpartition('=')
    files = {}
    for place, kind, symbol in symbols(*([path] if path.endswith('.a') else sorted(glob.glob(path + '.p/*.o')))):
        name = re.search(r'(?:^|[:/])(?:\.\._)?([^:/]+)\.c\.o$', place)[1]
        file = (folder, name) if folder and '.._' not in place else name.partition('_')[::2]
        defined, wanted = files.setdefault(file, (set(), set()))
        if kind in 'UTDBRVW':
            (wanted if kind == 'U' else defined).add(symbol)
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


def loops(*words):
    """Calls go down only: no files of a folder call each other in a circle, and none calls one of a folder above it.

    loops ARCHIVE... FOLDER=ARCHIVE... FOLDER=PROGRAM...: members of an archive without a FOLDER are named FOLDER_NAME.c.o; the
    objects of a program are in PROGRAM.p."""
    files = {}
    for word in words:
        files.update(files_of(word))
    owner = {symbol: file for file, (defined, _) in files.items() for symbol in defined}
    calls = {file: {owner[symbol] for symbol in wanted if symbol in owner} - {file} for file, (_, wanted) in files.items()}
    wrong = ['%s/%s.c calls up, into %s/%s.c' % (*caller, *callee) for caller in calls for callee in calls[caller]
             if FOLDERS.index(callee[0]) > FOLDERS.index(caller[0])]
    wrong += [f'a circle in {circle[0][0]}: ' + ' '.join(name + '.c' for _, name in circle) for circle in circles(calls)]
    return wrong, f'{len(files)} files, no circle', len(files) >= 40


if __name__ == '__main__':
    rules.judge(globals()[sys.argv[1]], *sys.argv[2:])

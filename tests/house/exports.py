#!/usr/bin/env python3
"""exports.py SHARED STATIC MAP PRIVATE-MAP VERSION HEADER...: the library exports what the headers declare, no more and no less.

Goal: nobody can come to depend on an internal name, and no promised name is missing. Method: three
lists are compared: the functions declared with ZKL_API, the version map, and the dynamic symbols of
the shared library. Its soname and flags, and the names that the static library brings into a program,
are looked at besides."""
import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def without_comments(path):
    return re.sub(r'/\*.*?\*/', '', pathlib.Path(path).read_text(encoding='utf-8'), flags=re.DOTALL)


def compare(problems, one, ones, other, others):
    problems += [f'{name} is in {one} but not in {other}' for name in sorted(ones - others)]
    problems += [f'{name} is in {other} but not in {one}' for name in sorted(others - ones)]


def main():
    library, archive, version_map, private_map, version, *headers = sys.argv[1:]
    wanted = 'libzklock.so.' + version.partition('.')[0]
    problems = []

    declared = set()
    for header in headers:
        declared |= set(re.findall(r'^ZKL_API[^;(]*?\b(\w+)\s*\(', without_comments(header), re.MULTILINE))

    mapped, nodes = set(), {'ZKLOCK_PRIVATE'}
    for node, body in re.findall(r'([\w.]+)\s*\{(.*?)\}', without_comments(version_map), re.DOTALL):
        nodes.add(node)
        for name in re.findall(r'([\w*]+)\s*;', body.partition('local:')[0].partition('global:')[2]):
            if name in mapped:
                problems.append(f'{name} is in the map twice')
            if '*' in name:
                problems.append(f'the map exports the pattern {name}')
            mapped.add(name)

    private = set(re.findall(r'(\w+)\s*;', without_comments(private_map).partition('global:')[2]))
    exported, for_the_command = set(), set()
    for line in run('nm', '-D', '--defined-only', library).splitlines():
        name, _, version = line.split()[-1].partition('@')
        if name in nodes:
            continue
        if version.lstrip('@') == 'ZKLOCK_PRIVATE':
            for_the_command.add(name)
            continue
        exported.add(name)
        if version.lstrip('@') not in nodes:
            problems.append(f'{name} is exported without a version of the map')

    if not declared:
        problems.append('no function is declared with ZKL_API')
    compare(problems, 'the headers', declared, 'the map', mapped)
    compare(problems, 'the headers', declared, 'the library', exported)

    compare(problems, 'the private map', private, 'the library', for_the_command)

    dynamic = run('readelf', '-W', '-d', library)
    soname = re.search(r'\(SONAME\).*\[(.*)\]', dynamic)
    if not soname or soname.group(1) != wanted:
        problems.append(f'the soname is {soname.group(1) if soname else "missing"}, not {wanted}')
    # A thread's key destructor is code of the library and runs when the thread ends: after a dlclose too.
    if not re.search(r'\(FLAGS_1\).*\bNODELETE\b', dynamic):
        problems.append('the library is not linked with -z nodelete')

    for line in run('nm', '-g', '--defined-only', archive).splitlines():
        name = line.split()[-1] if line.strip() else ''
        if name and not name.endswith(':') and not name.startswith(('zkl_', '__')):
            problems.append(f'{name} in the static library can clash with a name of the program')

    for problem in problems:
        print('exports:', problem)
    print(f'exports: {len(declared)} declared, {len(mapped)} in the map, {len(exported)} exported, '
          f'{len(problems)} problems')
    return 1 if problems else 0


sys.exit(main())

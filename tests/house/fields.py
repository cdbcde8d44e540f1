#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each field of a struct of src/core, src/api and src/driver is read somewhere in the library, and not only written, or
looked at by tests. By clang's syntax tree, so that fields of one name in several structs are told apart.

An address that is taken counts as a read, and so does a part of the field that is used.

fields.py ROOT CLANG"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

import rules

FOLDERS = ('core', 'api', 'driver')
NODE = re.compile(r'^([| `-]*)(\w+) (0x\w+)(.*)$')
MEMBER = re.compile(r'(?:->|\.)(\w*) (0x\w+)(?: \w+)?$')
STATEMENTS = ('CompoundStmt', 'IfStmt', 'ForStmt', 'WhileStmt', 'DoStmt', 'CaseStmt', 'DefaultStmt')

# Read by nobody who names them, and why that is right.
EXEMPT = {('zkl_errand', name): 'the command reads it'
          for name in ('answer', 'blamed', 'created', 'mtime_ms', 'number', 'version')}


class Looked:
    """What one source says: its fields by their address in the tree, and which of them are read."""

    def __init__(self, structs):
        self.structs, self.names, self.read = structs, {}, set()
        self.stack = []  # of the line: [kind, rest, children so far, struct]

    def found(self):
        return set(self.names.values()), {self.names[address] for address in self.read if address in self.names}

    def is_read(self, nth):
        """Of a MemberExpr that is the nth child of the node above it."""
        above = self.stack[::-1]
        kind, rest = above[0][0], above[0][1]
        if kind == 'BinaryOperator' and rest.endswith("'='"):
            return nth > 0
        changes = kind == 'CompoundAssignOperator' and nth == 0
        changes = changes or (kind == 'UnaryOperator' and ("'++'" in rest or "'--'" in rest))
        return not changes or above[1][0] not in STATEMENTS

    def take(self, line):
        match = NODE.match(line)
        if not match:
            return
        prefix, kind, address, rest = match.groups()
        del self.stack[len(prefix) // 2:]
        above = self.stack[-1] if self.stack else ['', '', 0, None]
        nth, struct = above[2], above[3]
        above[2] += 1
        if kind == 'RecordDecl':
            named = re.search(r' struct (\w+) definition$', rest)
            struct = named[1] if named else struct
        elif kind == 'FieldDecl' and struct in self.structs:
            name = re.search(r" (\w+) '", rest)
            if name and 'implicit' not in rest:
                self.names[address] = (struct, name[1])
        elif kind == 'MemberExpr':
            member = MEMBER.search(rest)
            if member and self.is_read(nth):
                self.read.add(member[2])
        self.stack.append([kind, rest, 0, struct])


def command(root, build, clang, source):
    """Of the compiler proper, which takes many sources at once: what it costs to start it is more than most of them cost."""
    run = subprocess.run([clang, '-###', '-std=gnu17', '-D_GNU_SOURCE', '-DTHREADED', '-fsyntax-only', '-Xclang', '-ast-dump',
                          '-I', root / 'src', '-I', root / 'include', '-I', pathlib.Path(build) / 'include', source],
                         stderr=subprocess.PIPE, text=True, check=True, env={**os.environ, 'CCACHE_DISABLE': '1'})
    return [word for word in shlex.split(run.stderr.splitlines()[-1])[:-1] if word != '-fcolor-diagnostics']


def look(compiler, structs, sources):
    """Pairs of the fields and what is read of them, one for each source."""
    with subprocess.Popen([*compiler, *sources], stdout=subprocess.PIPE, text=True) as run:
        looked = Looked(structs)
        for line in run.stdout:
            if line.startswith('TranslationUnitDecl'):
                yield looked.found()
                looked = Looked(structs)
            looked.take(line)
        yield looked.found()
    if run.returncode != 0:
        sys.exit(f'fields.py: clang ends with {run.returncode}')


def main(root, build, clang):
    root = pathlib.Path(root)
    files = [f for folder in FOLDERS for f in sorted((root / 'src' / folder).glob('*.[ch]'))]
    structs = {name for f in files for name in re.findall(r'^struct (\w+) \{', f.read_text(), re.M)}
    sources = [f for f in files if f.suffix == '.c']
    fields, read = collections.Counter(), set()
    compiler = command(root, build, clang, sources[0])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for part in pool.map(lambda part: list(look(compiler, structs, part)), (sources[::2], sources[1::2])):
            for named, used in part:
                fields.update(named)
                read |= used
    unread = sorted(set(fields) - read - set(EXEMPT))
    stale = sorted(set(EXEMPT) - (set(fields) - read))
    return ([*(f'struct {struct}: {name} is never read' for struct, name in unread),
             *(f'struct {struct}: {name} is excused, and there is no need' for struct, name in stale)],
            f'{len(fields)} fields of {len(structs)} structs', len(fields) >= 500)


rules.judge(main, *sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers for C++ compile as somebody else's program includes them, strictly, and so do the examples in them.

Goal: no warning comes from a header of ours, whatever the program asks for, and no example is wrong. Method: each
header is included twice; each code block of a comment is compiled, and what uses every method: a block with an #include
is a file, any other some statements.

cpp.py ROOT COMPILER STANDARD [OPTION...]"""
import pathlib
import re
import shutil
import subprocess
import sys

STRICT = ['-pedantic', '-Wall', '-Wextra', '-Wshadow', '-Wconversion', '-Wold-style-cast', '-Wnon-virtual-dtor', '-Werror']
FRAGMENT = '''#include <mutex>
#include <zklock/zklock.hpp>
void fragment(zkl::client &client, zkl::mutex &from, zkl::mutex &to, zkl::semaphore &transfers);
void fragment(zkl::client &client, zkl::mutex &from, zkl::mutex &to, zkl::semaphore &transfers)
{
'''


def blocks(text):
    """What stands in comments, indented by five blanks behind the star."""
    for comment in re.findall(r'/\*.*?\*/', text, re.DOTALL):
        for block in re.findall(r'(?:^ *\*(?:     .*)?\n)+', comment, re.MULTILINE):
            lines = [re.sub(r'^ *\*( {5})?', '', line) for line in block.splitlines()]
            if any(lines):
                yield '\n'.join(lines).strip('\n') + '\n'


def sources(root):
    headers = sorted((root / 'include/zklock').glob('*.hpp'))
    twice = ''.join(f'#include <zklock/{path.name}>\n' for path in headers) * 2
    yield 'the headers, twice', twice + 'int header_is_used;\n'
    for path in headers:
        for number, block in enumerate(blocks(path.read_text(encoding='utf-8')), 1):
            yield f'{path.name}, example {number}', block if '#include' in block else FRAGMENT + block + '}\n'
    yield 'every method', (root / 'tests/package/consumer.cpp').read_text(encoding='utf-8')


def main(root, compiler, standard, *options):
    if not shutil.which(compiler):
        print(f'{compiler} is not installed')
        return 77
    root, wrong, count = pathlib.Path(root), 0, 0
    for name, source in sources(root):
        done = subprocess.run([compiler, f'-std={standard}', *options, *STRICT, '-I', root / 'include', '-fsyntax-only',
                               '-x', 'c++', '-'], input=source, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        count += 1
        if done.returncode != 0:
            wrong += 1
            print(f'{name}:\n{done.stdout}')
    print(f'{count} sources, {wrong} problems')
    return 1 if wrong or count < 5 else 0


sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Compiles blocks of C, Java and Python. Each function returns what was wrong, or ''."""
import pathlib
import re
import shutil
import subprocess

# Statements stand in a function, which has what they may use.
FRAGMENT = '''#include <stdio.h>
#include <stdlib.h>
#include <zklock/inspect.h>
#include <zklock/zklock.h>
void work(void);
void fragment(struct zkl_client *client, struct zkl_mutex *mutex);
void fragment(struct zkl_client *client, struct zkl_mutex *mutex)
{{
    (void)client;
    (void)mutex;
    {{
#line {line} "{page}"
{text}    }}
}}
'''
JAVA_FRAGMENT = '''import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.*;
class Fragment {{
    static void work() {{}}
    void fragment(CuratorFramework client) throws Exception {{
{text}    }}
}}
'''
JARS = sorted(pathlib.Path('/usr/share/java').glob('curator-*.jar'))


def failed(command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    return done.stdout if done.returncode != 0 else ''


def compile_c(block, compiler, include, library, folder):
    """A block with an #include is a file, a program if it has a main; any other is some statements."""
    head = f'#line {block.line} "{block.page}"\n'
    is_file = '#include' in block.text
    source = head + block.text if is_file else FRAGMENT.format(**vars(block))
    command = [compiler, '-std=c11', '-D_DEFAULT_SOURCE', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-I', include,
               '-DTHREADED']  # as pkg-config says for guard.h
    if not re.search(r'\bmain\(', source):
        return failed([*command, '-Wno-unused-function', '-fsyntax-only', '-x', 'c', '-'], input=source)
    return failed([*command, '-o', folder / 'a.out', '-x', 'c', '-', '-x', 'none', library], input=source)


def compile_java(block, folder):
    if not shutil.which('javac') or not JARS:
        print(f'{block.where()}: javac or Curator is not installed, this block was left out')
        return ''
    source = folder / 'Fragment.java'
    source.write_text(JAVA_FRAGMENT.format(text=block.text), encoding='utf-8')
    return failed(['javac', '-J-XX:-UsePerfData', '-cp', ':'.join(map(str, JARS)), '-d', folder, source])


def compile_python(block):
    try:
        compile('\n' * (block.line - 1) + block.text, block.page, 'exec')
    except SyntaxError as error:
        return str(error)
    return ''

# SPDX-License-Identifier: Apache-2.0
"""Compiles blocks of C, C++, Java and Python. Each function returns what was wrong, or ''."""
import pathlib
import re
import shutil
import subprocess

# Statements stand in a function, which has what they may use; what they can't have in there, above a line "...".
FRAGMENT = '''#include <stdio.h>
#include <stdlib.h>
{includes}
void begin_work(void *job);
int more_rows(void);
void stop_writing(void);
void try_again_later(void);
void work(void);
void write_report(uint64_t token);
void write_row(uint64_t token);
{declarations}
{above}
void fragment({arguments});
void fragment({arguments})
{{
    {used}
    {{
#line {line} "{page}"
{text}    }}
}}
'''
INCLUDES = ['zklock/inspect.h', 'zklock/zklock.h']
ARGUMENTS = {'client': 'struct zkl_client', 'mutex': 'struct zkl_mutex'}
# Of the examples in the public headers, each of which has its own header besides.
HEADERS_ARGUMENTS = {**ARGUMENTS, 'rwlock': 'struct zkl_rwlock', 'semaphore': 'struct zkl_semaphore',
                     'cancel': 'struct zkl_cancel', 'other': 'struct zkl_mutex', 'permit': 'struct zkl_permit', 'both': 'struct zkl_multi',
                     'owner': 'struct zkl_owner', 'zh': 'struct _zhandle', 'job': 'void'}
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


def fragment(block):
    """A program around statements, and what stands above them."""
    in_header = block.page.startswith('include/')
    includes = [block.page.removeprefix('include/'), 'zklock/zklock.h'] if in_header else INCLUDES
    has = HEADERS_ARGUMENTS if in_header else ARGUMENTS
    above, divided, text = block.text.partition('\n...\n')
    if not divided:
        above, text = '', block.text
    line = block.line + (above.count('\n') + 2 if divided else 0)
    return FRAGMENT.format(page=block.page, line=line, text=text,
                           above=f'#line {block.line} "{block.page}"\n{above}',
                           declarations=' '.join(f'{kind};' for kind in has.values() if kind != 'void'),
                           includes='\n'.join(f'#include <{name}>' for name in includes),
                           arguments=', '.join(f'{kind} *{name}' for name, kind in has.items()),
                           used=' '.join(f'(void){name};' for name in has))


def compile_c(block, compiler, include, library, folder):
    """A block with an #include is a file, a program if it has a main; any other is some statements."""
    head = f'#line {block.line} "{block.page}"\n'
    is_file = '#include' in block.text
    source = head + block.text if is_file else fragment(block)
    command = [compiler, '-std=c11', '-D_DEFAULT_SOURCE', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-I', include,
               '-I', pathlib.Path(library).parent.parent / 'include', '-DTHREADED']  # as pkg-config says for guard.h
    if not re.search(r'\bmain\(', source):
        return failed([*command, '-Wno-unused-function', '-fsyntax-only', '-x', 'c', '-'], input=source)
    return failed([*command, '-o', folder / 'a.out', '-x', 'c', '-', '-x', 'none', library], input=source)


def compile_cpp(block, include):
    """Whole files only."""
    if not shutil.which('c++'):
        print(f'{block.where()}: c++ is not installed, this block was left out')
        return ''
    return failed(['c++', '-std=c++17', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-I', include, '-fsyntax-only', '-x',
                   'c++', '-'], input=f'#line {block.line} "{block.page}"\n{block.text}')


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

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compiled.py RULE ROOT COMPILER STANDARD [OPTION...]: rules that compilers judge. Each is a function here."""
import pathlib
import re
import shutil
import subprocess
import sys

import rules

WARNINGS = ['-Wall', '-Wextra', '-Werror']


def said(root, compiler, standard, source, *options, warnings=('-pedantic', *WARNINGS)):
    """Of this text, as a program of somebody else would have it: what the compiler says, nothing if it is right."""
    done = subprocess.run([compiler, '-x', 'c++' if standard.startswith(('c++', 'gnu++')) else 'c', f'-std={standard}', *options,
                           *warnings, '-I', root / 'include', '-fsyntax-only', '-'], input=source, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode and f'{done.stdout}\n'


def wrong(root, compiler, standard, sources, *options, **more):
    """Of pairs of a name and a text."""
    return [f'{name}:\n{text}' for name, source in sources if (text := said(root, compiler, standard, source, *options, **more))]


# --- the headers

def headers(root, compiler, standard):
    """Each public header compiles by itself, twice included, without a warning."""
    names = [path.name for path in sorted((root / 'include/zklock').glob('*.h'))]
    return (wrong(root, compiler, standard, ((name, f'#include <zklock/{name}>\n' * 2 + 'int header_is_used;\n') for name in names)),
            f'{len(names)} headers', len(names) > 10)


def initializers(root, compiler, standard):
    """Each initializer is a constant, for a variable, for what is const, and in an array. Its struct has its name."""
    names = [name for path in sorted((root / 'include/zklock').glob('*.h'))
             for name in re.findall(r'^#define (ZKL_[A-Z_]*)_INIT ', rules.text(path), re.M)]
    source = '#include <zklock/inspect.h>\n#include <zklock/metrics.h>\n#include <zklock/zklock.h>\n'
    for name in names:
        struct = f'struct {name.lower()}'
        source += f'static {struct} a_{name} = {name}_INIT;\nstatic const {struct} b_{name} = {name}_INIT;\n'
        source += f'static {struct} c_{name}[2] = {{{name}_INIT, {name}_INIT}};\n'
    all_of = ', '.join(f'&{way}_{name}' for name in names for way in 'abc')
    source += 'const void *each(int which);\nconst void *each(int which)\n{\n'
    source += f'    const void *const all[] = {{{all_of}}};\n    return all[which];\n}}\n'
    return wrong(root, compiler, standard, [('initializers', source)]), f'{len(names)} initializers', len(names) > 5


def sources(root, compiler, standard, build):
    """The library builds with a newer standard than its own, as a program that takes its sources in may want."""
    files = [path for folder in ('core', 'api', 'driver', 'secret') for path in sorted((root / 'src' / folder).glob('*.c'))]
    done = subprocess.run([compiler, f'-std={standard}', '-fsyntax-only', *WARNINGS, '-D_GNU_SOURCE', '-DTHREADED', f'-I{root}/src',
                           f'-I{root}/include', f'-I{build}/include', *files], stderr=subprocess.PIPE, text=True, check=False)
    return [done.stderr] if done.returncode else [], f'{len(files)} files', len(files) > 50


# --- the headers for C++

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


def of_cpp(root):
    """Each header twice; each code block of a comment, where one with an #include is a file, any other some statements; and what
    uses every method."""
    paths = sorted((root / 'include/zklock').glob('*.hpp'))
    yield 'the headers, twice', ''.join(f'#include <zklock/{path.name}>\n' for path in paths) * 2 + 'int header_is_used;\n'
    for path in paths:
        for number, block in enumerate(blocks(rules.text(path)), 1):
            yield f'{path.name}, example {number}', block if '#include' in block else FRAGMENT + block + '}\n'
    yield 'every method', rules.text(root / 'tests/package/consumer.cpp')


def cpp(root, compiler, standard, *options):
    """The headers for C++ compile as somebody else's program includes them, strictly, and so do the examples in them."""
    each = list(of_cpp(root))
    return wrong(root, compiler, standard, each, *options, warnings=STRICT), f'{len(each)} sources', len(each) >= 5


# --- what can not be

C = [(good, good.replace(*change)) for good, change in (
    ('struct zkl_mutex_options o = ZKL_MUTEX_OPTIONS_INIT; o.retain_ms = 1; (void)o;', ('MUTEX', 'LOCK')),
    *(('struct zkl_mutex_options o = {0}; o.' + field + ' = 0; (void)o;', ('mutex_options', 'lock_options'))
      for field in ('name', 'local_handoffs_max', 'retain_ms')),
    ('struct zkl_lock_options o = ZKL_LOCK_OPTIONS_INIT; zkl_rwlock_new(rwlock, client, "/x", &o);', ('lock_o', 'mutex_o')),
    ('struct zkl_lock_options o = {0}; zkl_rwlock_new(rwlock, client, "/x", &o);', ('lock_o', 'mutex_o')),
    ('struct zkl_lock_options o = {0}; zkl_semaphore_new(semaphore, client, "/x", 1, &o);', ('lock_o', 'mutex_o')),
    ('struct zkl_lock_options o = {0}; zkl_semaphore_mutex_new(mutex, client, "/x", &o);', ('lock_o', 'mutex_o')),
    ('struct zkl_mutex_options o = {0}; zkl_mutex_new(mutex, client, "/x", &o);', ('mutex_o', 'lock_o')),
    ('zkl_mutex_unlock(*mutex);', ('*mutex', '*rwlock')),
    ('zkl_permit_release(permits[0]);', ('permits[0]', 'permits')),
)]
CPP = [(good, good.replace(*change)) for good, change in (
    *(('zkl::mutex_options o; o.' + field + '; (void)o;', ('mutex_o', 'lock_o'))
      for field in ('name = "x"', 'local_handoffs_max = 1', 'retain = std::chrono::milliseconds(1)')),
    ('zkl::lock_options o; zkl::shared_mutex m(client, "/x", o);', ('lock_o', 'mutex_o')),
    ('zkl::lock_options o; zkl::semaphore m(client, "/x", 1, o);', ('lock_o', 'mutex_o')),
    ('zkl::lock_options o; zkl::semaphore_mutex m(client, "/x", o);', ('lock_o', 'mutex_o')),
    ('zkl::mutex_options o; zkl::mutex m(client, "/x", o);', ('mutex_o', 'lock_o')),
    ('zkl::mutex m(std::move(mutex));', ('std::move', '')),
    ('std::shared_lock<zkl::shared_mutex> l(shared);', ('zkl::shared_mutex', 'zkl::mutex')),
    ('std::shared_lock<zkl::shared_mutex> l(shared);', ('(shared)', '(mutex)')),
    ('std::unique_lock<zkl::mutex> l(mutex); if (l) l.unlock();', ('(l)', '(mutex)')),
    ('if (zkl::permit p = semaphore.try_acquire()) p.release();', ('zkl::permit p', 'bool p')),
    ('std::unique_lock<zkl::mutex> l(mutex, std::chrono::seconds(1));', ('std::chrono::seconds(1)', '1000')),
    ('if (mutex.still_held(std::chrono::milliseconds(5))) mutex.unlock();', ('std::chrono::milliseconds(5)', '5')),
)]
FRAMES = {
    'c11': (C, '''#include <zklock/zklock.h>
int use(struct zkl_client *client, struct zkl_mutex **mutex, struct zkl_rwlock **rwlock,
        struct zkl_semaphore **semaphore, struct zkl_permit **permits);
int use(struct zkl_client *client, struct zkl_mutex **mutex, struct zkl_rwlock **rwlock,
        struct zkl_semaphore **semaphore, struct zkl_permit **permits)
{
    (void)client, (void)mutex, (void)rwlock, (void)semaphore, (void)permits;
    STATEMENTS
    return 0;
}
'''),
    'c++17': (CPP, '''#include <mutex>
#include <shared_mutex>
#include <zklock/zklock.hpp>
void use(zkl::client &client, zkl::mutex &mutex, zkl::shared_mutex &shared, zkl::semaphore &semaphore);
void use(zkl::client &client, zkl::mutex &mutex, zkl::shared_mutex &shared, zkl::semaphore &semaphore)
{
    (void)client, (void)mutex, (void)shared, (void)semaphore;
    STATEMENTS
}
'''),
}


def refused(root, compiler, standard):
    """An option, or a way to use a lock, that would be refused or ignored does not compile: each pair is some statements that
    do, with every warning an error, and the same with one thing changed, of which the compiler complains."""
    pairs, frame = FRAMES[standard]
    said_of = [said(root, compiler, standard, frame.replace('STATEMENTS', ''.join(
        f'{{\n#line 1 "pair {number}"\n{pair[is_bad]}\n}}\n' for number, pair in enumerate(pairs))), warnings=WARNINGS) or ''
               for is_bad in (False, True)]
    problems = [f'compiles: {bad}' for number, (good, bad) in enumerate(pairs)
                if good == bad or f'pair {number}:1' not in said_of[True]]
    return problems + ([f'what should compile does not:\n{said_of[False]}'] if said_of[False] else []), f'{len(pairs)} pairs', pairs


def main(rule, root, compiler, *words):
    if not shutil.which(compiler):
        rules.skip(f'{compiler} is not installed')
    return globals()[rule](pathlib.Path(root).resolve(), compiler, *words)


if __name__ == '__main__':
    rules.judge(main, *sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""not_compiled.py ROOT COMPILER LANGUAGE: what a kind of lock does not have can't be asked for.

Goal: an option, or a way to use a lock, that would be refused or ignored does not compile. Method: each pair is some
statements that compile, with every warning an error, and the same with one thing changed, which do not."""
import pathlib
import shutil
import subprocess
import sys

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
    'c': (C, '''#include <zklock/zklock.h>
int use(struct zkl_client *client, struct zkl_mutex **mutex, struct zkl_rwlock **rwlock,
        struct zkl_semaphore **semaphore, struct zkl_permit **permits);
int use(struct zkl_client *client, struct zkl_mutex **mutex, struct zkl_rwlock **rwlock,
        struct zkl_semaphore **semaphore, struct zkl_permit **permits)
{
    (void)client, (void)mutex, (void)rwlock, (void)semaphore, (void)permits;
    STATEMENTS
    return 0;
}
''', '-std=c11'),
    'c++': (CPP, '''#include <mutex>
#include <shared_mutex>
#include <zklock/zklock.hpp>
void use(zkl::client &client, zkl::mutex &mutex, zkl::shared_mutex &shared, zkl::semaphore &semaphore);
void use(zkl::client &client, zkl::mutex &mutex, zkl::shared_mutex &shared, zkl::semaphore &semaphore)
{
    (void)client, (void)mutex, (void)shared, (void)semaphore;
    STATEMENTS
}
''', '-std=c++17'),
}


def compiles(root, compiler, language, statements):
    _, frame, standard = FRAMES[language]
    done = subprocess.run([compiler, '-x', language, standard, '-Wall', '-Wextra', '-Werror', '-fsyntax-only',
                           '-I', pathlib.Path(root) / 'include', '-'], input=frame.replace('STATEMENTS', statements),
                          text=True, capture_output=True, check=False)
    return done.returncode == 0


def main(root, compiler, language):
    if not shutil.which(compiler):
        print(f'{compiler} is not installed')
        return 77
    pairs, problems = FRAMES[language][0], []
    if not compiles(root, compiler, language, '\n'.join('{ ' + good + ' }' for good, _ in pairs)):
        problems.append('what should compile does not')
    for good, bad in pairs:
        if good == bad or compiles(root, compiler, language, bad):
            problems.append(f'compiles: {bad}')
    print('\n'.join(problems) or f'{len(pairs)} pairs')
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))

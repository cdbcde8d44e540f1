#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""blocks.py code ROOT COMPILER LIBRARY   the code of README.md, docs/*.md and the man pages compiles
blocks.py run ROOT MESON BUILD         their commands do what is said, with what the build installs, on the servers in
                                       ZKLOCK_SERVERS

Goal: nothing on a page that does not work. Method: the blocks are taken from the pages. C, C++, Java and Python are
compiled; commands are run, page by page, and a block "text" behind one is what it prints, but for numbers; a crontab's at once, a
configuration file is read by zklock. What is
neither stands in EXCUSED, with the reason, or fails. Of commands inside sentences their options are looked up."""
import pathlib
import re
import shlex
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'lib'))
import compiled
import installed
import pages
import ran

WHAT, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
README_LINES_MAX = 20  # of a program there

COMPILED = {'c', 'cpp', 'java', 'python'}
RUN = {'sh', 'crontab', 'conf'}
OTHER = {'text', 'mermaid', 'diff'}  # tests/house compares the last two with the code

# (page, first line): why it is neither run nor compiled.
EXCUSED = {
    ('README.md', 'sh examples/demo.sh'): 'a minute long; the suite demo runs it',
    ('README.md', 'sh tests/run.sh'): 'this test is a part of it',
    ('README.md', 'meson setup build && meson install -C build && ldconfig'):
        'it changes the system; the suite package does so below a folder',
    ('docs/tutorial.md', 'meson setup build && meson install -C build && ldconfig'): 'as in the README',
    ('docs/tutorial.md', 'zklock-dev --nodes 1'): 'it runs until ^C: the servers here are as private; the suite tool has it',
    ('docs/tutorial.md', 'export ZKLOCK_SERVERS=127.0.0.1:PORT'): 'the test has set it to the port of its own servers',
    ('docs/security-tls.md', 'client=$(sh tests/tls/client_library.sh /opt/zookeeper-tls)'):
        'it changes the system; the suite tls builds both so',
    ('docs/CONTRIBUTING.md', 'sh tests/run.sh'): 'as in the README',
    ('docs/man/zklock-run.1', '[Service]'): "a unit of systemd, which is not here; tests/tool/manager.txt is one's manager",
    ('docs/adding-a-lock-kind.md', '#include <assert.h>'): 'tests/house/kinds.py runs it against changed sources',
    ('docs/migration.md', "/* ZooKeeper's zoo_lock.h */"): 'Debian has no package of that header',
    ('docs/benchmarks.md', 'sh tests/bench/run.sh'): 'two hours; the suite bench has a short form',
    ('docs/benchmarks.md',
     'sh tests/bench/run.sh --peers zklock,floor-1rt,curator --workloads W1,W2 --rounds 9 --fsync no'):
        'minutes; the suite bench has a short form',
}


def excused(block):
    return EXCUSED.get((block.page, block.first_line()))


def installs_packages(block):
    return 'apt-get install' in block.text


# --- what is on the pages ----------------------------------------------------------------------------

def check_list(blocks):
    """Every block is of a known kind, every excuse is for one that is there."""
    problems = [f'{block.where()}: a block of the unknown kind "{block.language}"'
                for block in blocks if block.language not in COMPILED | RUN | OTHER]
    there = {(block.page, block.first_line()) for block in blocks}
    problems += [f'{page} has no block "{line}": it can leave EXCUSED' for page, line in sorted(EXCUSED.keys() - there)]
    problems += [f'{block.where()}: a program of more than {README_LINES_MAX} lines' for block in blocks
                 if block.page == 'README.md' and block.language == 'c' and block.text.count('\n') > README_LINES_MAX]
    return problems


def check_packages(block):
    """Root alone can run it; but it is to name what examples/setup.sh installs."""
    setup = (ROOT / 'examples/setup.sh').read_text(encoding='utf-8')
    wanted = set(re.search(r"zkl_build_packages='(.*?)'", setup, re.DOTALL)[1].split())
    missing = wanted - set(shlex.split(block.text))
    return [f'{block.where()}: {", ".join(sorted(missing))} of examples/setup.sh is not there'] if missing else []


def check_code(blocks, compiler, library):
    problems, count = check_list(blocks), 0
    with tempfile.TemporaryDirectory(prefix='zkl-docs-') as folder:
        folder = pathlib.Path(folder)
        for block in blocks:
            if block.language not in COMPILED or excused(block):
                continue
            count += 1
            wrong = {'c': lambda b: compiled.compile_c(b, compiler, ROOT / 'include', library, folder),
                     'cpp': lambda b: compiled.compile_cpp(b, ROOT / 'include'),
                     'java': lambda b: compiled.compile_java(b, folder),
                     'python': compiled.compile_python}[block.language](block)
            if wrong:
                problems.append(f'{block.where()} does not compile:\n{wrong}')
    return problems, f'{count} of {len(blocks)} blocks compiled, {len(EXCUSED)} excused'


# --- commands inside sentences -------------------------------------------------------------------------

def helps(environment):
    """The help of each subcommand of zklock, and of tests/run.sh."""
    def said(*command):
        return installed.run(command, env=environment, cwd=ROOT)
    tool = said('zklock', '--help')
    found = {name: said('zklock', name, '--help') for name in re.findall(r'^  (\w+)  ', tool, re.MULTILINE)}
    suites = re.findall(r'^([\w-]+) +up to', said('sh', 'tests/run.sh', '--help'), re.MULTILINE)
    return found, [*suites, 'all', 'ci']


def check_span(span, tool, suites):
    words = re.split(r'\s+', span.partition(' -- ')[0])
    if words[:2] == ['sh', 'tests/run.sh']:
        known = len(words) < 3 or words[2] in suites or not words[2].islower() or words[2].startswith('-')
        return '' if known else f'there is no suite {words[2]}'
    if words[0] != 'zklock' or len(words) < 2 or words[1].startswith('-'):
        return ''
    if words[1] not in tool:
        return f'there is no subcommand {words[1]}'
    options = [word.split('=')[0] for word in words[2:] if re.match(r'--?\w', word)]
    unknown = [option for option in options
               if not re.search(rf'(?<![\w-]){re.escape(option)}(?![\w-])', tool[words[1]])]
    return f'{words[1]} has no option {unknown[0]}' if unknown else ''


def check_spans(environment):
    """What stands in backticks and begins like a command has a subcommand and options that are there."""
    tool, suites = helps(environment)
    problems, count = [], 0
    for path in [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md')), *sorted((ROOT / 'docs').glob('evidence/*.md'))]:
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            for span in re.findall(r'`([^`]+)`', line):
                count += span.startswith(('zklock ', 'sh tests/run.sh'))
                wrong = check_span(span, tool, suites)
                if wrong:
                    problems.append(f'{path.relative_to(ROOT)}:{number}: `{span}`: {wrong}')
    return problems, count


# --- commands in blocks ---------------------------------------------------------------------------------

def run_page(blocks, environment):
    problems, count = [], 0
    with tempfile.TemporaryDirectory(prefix='zkl-docs-') as home:
        page = ran.Page(pathlib.Path(home), environment)
        for block, after in zip(blocks, [*blocks[1:], None]):
            if block.name:
                page.keep(block)
            if block.language not in RUN or excused(block):
                continue
            if installs_packages(block):
                problems += check_packages(block)
                continue
            count += 1
            wrong = page.run(block, after if after and after.language == 'text' else None)
            if wrong:
                problems.append(f'{block.where()}: {block.first_line()}: {wrong}')
        page.end()
    return problems, count


def check_run(blocks, meson, build):
    with tempfile.TemporaryDirectory(prefix='zkl-docs-') as root:
        installed.install(meson, build, root)
        environment = installed.environment(pathlib.Path(root))
        problems, spans = check_spans(environment)
        count = 0
        for name in sorted({block.page for block in blocks}):
            wrong, ran_here = run_page([block for block in blocks if block.page == name], environment)
            problems += wrong
            count += ran_here
    return problems, f'{count} of {len(blocks)} blocks run, {spans} commands in sentences looked up'


def main():
    blocks = pages.collect(ROOT)
    check = {'code': check_code, 'run': check_run}[WHAT]
    problems, summary = check(blocks, *sys.argv[3:])
    for problem in problems:
        print('docs:', problem)
    print(f'docs: {summary}, {len(problems)} problems')
    return 1 if problems or not blocks else 0


sys.exit(main())

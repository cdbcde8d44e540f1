# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of one page as its reader would: block by block in one home folder, each block in a shell that has
what the blocks before it exported, and with the page's programs at hand."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

BLOCK_S = 60   # for one block
OUTPUT_S = 20  # for a block to show what the page says that it shows

# The shell of a block: with the environment of the block before, which it leaves to the next.
SHELL = '''[ ! -f "$HOME/.exported" ] || . "$HOME/.exported"
set -e
{text}
export -p >"$HOME/.exported"
'''
# Of the terminal's environment cron has next to nothing. .bin stands for where zklock is installed; the servers are in a
# configuration file, of the page or of the system.
CRON = '''[ -f ~/.config/zklock.conf ] || servers="ZKLOCK_SERVERS=$ZKLOCK_SERVERS"
env -i HOME="$HOME" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" PATH="$HOME/.bin:/usr/bin:/bin" $servers sh -c {command}'''
# A configuration file: read to the end, and its names are known. The environment comes before its values.
CONF = '''mkdir -p "$HOME/conf"
cat >"$HOME/conf/zklock.conf" <<'END'
{text}END
XDG_CONFIG_HOME="$HOME/conf" ZKLOCK_AUTH=digest:reader:secret zklock status /conf
'''
# Commands that pages make up, to have something to run.
MADE_UP = ['.bin/backup', '.bin/make-report', '.bin/render', '.bin/transfer', 'backup.sh']
# What differs from run to run, escaped: the name of a machine, UUIDs, times, and numbers of several digits.
VARIES = re.compile(r'HOST|[0-9a-f]{8}(?:\\-[0-9a-f]{4}){3}\\-[0-9a-f]{12}|\d+\\\.\d+|\d{2,}')


def pattern(shown):
    """Each line that a page shows, as an expression for it in any run."""
    lines = (VARIES.sub(r'[\\w.-]+', re.escape(' '.join(line.split()))) for line in shown.splitlines())
    return re.compile('.*'.join(lines), re.DOTALL)


def as_cron(text):
    """The commands of a crontab, at once."""
    commands = (line.split(None, 5)[5].replace('/usr/local/bin/', '.bin/') for line in text.splitlines())
    return '\n'.join(CRON.format(command=shlex.quote(command)) for command in commands)


class Page:
    def __init__(self, home, environment):
        self.home = home
        self.groups = []
        programs = home / '.bin'
        programs.mkdir()
        (programs / 'zklock').symlink_to(shutil.which('zklock', path=environment['PATH']))
        for name in MADE_UP:
            (home / name).write_text('#!/bin/sh\n', encoding='utf-8')
            (home / name).chmod(0o755)
        self.environment = {**environment, 'HOME': str(home), 'ENV': '', 'XDG_CONFIG_HOME': '',
                            'PATH': f'{programs}:{environment["PATH"]}'}

    def keep(self, block):
        """A program that the page has under a name."""
        (self.home / block.name).write_text(block.text, encoding='utf-8')

    def shell(self, text):
        """(what is wrong or '', output). Jobs in the background go on until the page ends."""
        output = self.home / '.output'
        with open(output, 'wb') as to:
            job = subprocess.Popen(['sh', '-c', SHELL.format(text=text)], cwd=self.home, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=to, stderr=to, start_new_session=True)
        self.groups.append(job.pid)
        try:
            status = job.wait(BLOCK_S)
        except subprocess.TimeoutExpired:
            return f'it did not end within {BLOCK_S} s', output.read_text(errors='replace')
        return f'it ended with status {status}' if status else '', output.read_text(errors='replace')

    def run(self, block, shown):
        """What is wrong, or ''. A page that shows the output may take a moment to get there: of its reader's, who types."""
        text = {'sh': str, 'crontab': as_cron, 'conf': lambda text: CONF.format(text=text)}[block.language](block.text)
        deadline = time.monotonic() + OUTPUT_S
        while True:
            wrong, output = self.shell(text)
            if not wrong and shown and not pattern(shown.text).search(' '.join(output.split())):
                wrong = f'{shown.where()} does not show what it prints'
            if not wrong or not shown or time.monotonic() > deadline:
                return f'{wrong}: {output}' if wrong else ''
            time.sleep(0.2)

    def end(self):
        """What was left in the background goes, zklock and all that it runs by its own doing."""
        deadline = time.monotonic() + 10
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGTERM)
                while time.monotonic() < deadline:
                    os.killpg(group, 0)
                    time.sleep(0.02)
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                pass

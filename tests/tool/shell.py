# SPDX-License-Identifier: Apache-2.0
"""shell.py LINE: a shell that knows one job, the line for sh, and no more: it says when the job stops, and brings it to the
foreground again when a line is typed. Without a terminal it kills a job that stops."""
import os
import signal
import sys


def give_terminal(group):
    try:
        os.tcsetpgrp(0, group)
    except OSError:
        pass  # there is none


def main(line):
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        give_terminal(os.getpid())
        for number in signal.SIGTTOU, signal.SIGPIPE, signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
        os.execv('/bin/sh', ['sh', '-c', line])
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        give_terminal(os.getpgrp())
        if not os.WIFSTOPPED(status):
            print(f'[signal {os.WTERMSIG(status)}]' if os.WIFSIGNALED(status) else f'[exit {os.WEXITSTATUS(status)}]', flush=True)
            return
        print('[stopped]', flush=True)
        if not sys.stdin.readline():
            os.killpg(job, signal.SIGKILL)
        give_terminal(job)
        os.killpg(job, signal.SIGCONT)


main(*sys.argv[1:])

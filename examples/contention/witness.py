# SPDX-License-Identifier: Apache-2.0
"""The journal: what every process and thread did, in the order in which it happened. The workers' side is fence.h, which
says why its lines have one length."""
import collections
import os
import re

SIZE = 128

# process, life, thread: whose. at: microseconds since the run's beginning. What the others are hangs on the kind:
#   run     value: processes, found: threads of each
#   start   all threads are ready
#   stop    the time is over
#   enter   the lock was granted; found: the counter read; us: the wait
#   write   the record is about to get value; found: what it holds until then
#   stale   the fence refused the token; value: the refused one, 0 when entering
#   leave   before the unlock; us: since the grant
#   freed   after the unlock; value: its error code without the sign
#   done    a thread has made its count of updates
#   kill    by the parent, once it has waited for the dead process
#   paused  by the parent, once the process has stopped
#   woken   by the parent, before the process goes on
Line = collections.namedtuple('Line', 'kind process life thread token value found us at', defaults=[0] * 8)
KINDS = {'run', 'start', 'stop', 'enter', 'write', 'stale', 'leave', 'freed', 'done', 'kill', 'paused', 'woken'}
FORM = re.compile(r'(\w+) (\d+)\.(\d+)\.(\d+) token=([0-9a-f]+) value=(\d+) found=(\d+) us=(\d+) at=(\d+) *\n')


class BadFile(Exception):
    """Of journal or record."""


def append(journal, line):
    text = (f'{line.kind} {line.process}.{line.life}.{line.thread} token={line.token:x} value={line.value} '
            f'found={line.found} us={line.us} at={line.at}')
    os.write(journal, f'{text:<{SIZE - 1}}\n'.encode())


def read(journal):
    """All lines, of which the first says how many processes and threads there are."""
    with open(f'/proc/self/fd/{journal}', encoding='ascii', newline='\n') as file:
        for number, text in enumerate(iter(lambda: file.read(SIZE), ''), 1):
            form = FORM.fullmatch(text) if len(text) == SIZE else None
            if not form or form[1] not in KINDS or (number == 1 and form[1] != 'run'):
                raise BadFile(f'journal, line {number}: not a line of a journal: {text[:60]}')
            yield Line(form[1], *(int(each, 16 if i == 3 else 10) for i, each in enumerate(form.groups()[1:])))


def read_counter(record):
    """Of the record as it is now; an empty file is a record of zeros."""
    text = os.pread(record, SIZE, 0).decode()
    form = re.fullmatch(r'counter=(\d+) token=[0-9a-f]+ writer=\d+\.\d+\.\d+ *\n?', text)
    if text and not form:
        raise BadFile(f'record: {text[:60]}')
    return int(form[1]) if text else 0

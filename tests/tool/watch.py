#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""watch.py ZKLOCK ZKLOCK-DEV PICTURE: what `zklock status --watch` shows on a terminal, as an SVG.

The servers are those of `zklock-dev`, holders and waiters are `zklock run`, the terminal is a pseudo-terminal: nothing
in the picture is written by hand."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

ZKLOCK, ZKLOCK_DEV, PICTURE = sys.argv[1:]
COLUMNS, ROWS = 120, 24
PATIENCE_S = 60

# A lock, the options of zklock run, how many have it or wait for it.
WORK = [('/locks/backup', [], 3),
        ('/locks/catalogue', ['--shared'], 2),
        ('/locks/catalogue', [], 1),
        ('/locks/downloads', ['--permits', '2'], 3)]
WHOLE = ['/locks/backup  mutex, 1 held, 2 waiting', '/locks/catalogue  rwlock, 2 held, 1 waiting',
         '/locks/downloads  semaphore, 2 of 2 held, 1 waiting']

# Colours of the terminal, and a bright text for bold.
PLAIN = '#d0d0d0'
COLOURS = {'1': '#ffffff', '32': '#7fd77f', '33': '#e0c060'}
CHARACTER, LINE, MARGIN = 7.8, 18, 14


def started(children, *command, **options):
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    children.append(child)
    return child


def wait_for_queue(path, count):
    """The picture has them in the order in which they were started."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        shown = subprocess.run([ZKLOCK, 'status', path], capture_output=True, text=True, check=True).stdout
        if len(re.findall('^  (?:holds|waits)', shown, re.MULTILINE)) >= count:
            return
        time.sleep(0.1)
    sys.exit(f'watch.py: not {count} at {path}: {shown}')


def start_work(children):
    count = {}
    for path, options, number in WORK:
        for _ in range(number):
            started(children, ZKLOCK, 'run', *options, path, '--', 'sleep', str(PATIENCE_S))
            count[path] = count.get(path, 0) + 1
            wait_for_queue(path, count[path])


def last_frame(children):
    """What the terminal shows once all are there, line by line."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', ROWS, COLUMNS, 0, 0))
    started(children, ZKLOCK, 'status', '--watch', '/locks', stdout=theirs)
    text, end = '', time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            text += os.read(ours, 65536).decode()
        frames = re.findall('\033\\[H(.*?)\033\\[J', text, re.DOTALL)
        if len(frames) > 2 and all(line in frames[-1] for line in WHOLE):
            os.close(theirs)
            return frames[-1].replace('\033[K', '').replace('\r', '').splitlines()
    sys.exit(f'watch.py: not all were shown: {text[-2000:]}')


def spans(line):
    """The line's pieces, each with its colour."""
    colour = PLAIN
    for piece in re.split('(\033\\[\\d+m)', line):
        code = re.fullmatch('\033\\[(\\d+)m', piece)
        if code:
            colour = COLOURS.get(code.group(1), PLAIN)
        elif piece:
            yield f'<tspan fill="{colour}">{escape(piece)}</tspan>'


def draw(lines):
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
           f'viewBox="0 0 {width:.0f} {height}">',
           '<style>text{font:13px monospace;white-space:pre}</style>',
           f'<rect width="{width:.0f}" height="{height}" rx="6" fill="#1c1c1c"/>']
    out += [f'<text x="{MARGIN}" y="{MARGIN + LINE * row + 13}" xml:space="preserve">{"".join(spans(line))}</text>'
            for row, line in enumerate(lines) if line]
    return '\n'.join(out + ['</svg>', ''])


def main():
    children = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TMPDIR=folder, TERM='xterm', XDG_CONFIG_HOME=folder)
        os.environ.pop('NO_COLOR', None)
        try:
            dev = started(children, ZKLOCK_DEV, '--nodes', '1', stdout=subprocess.PIPE, text=True)
            servers = dev.stdout.readline()
            if not servers:
                sys.exit(77)  # no java, or no ZooKeeper
            os.environ['ZKLOCK_SERVERS'] = servers.strip()
            start_work(children)
            picture = draw(last_frame(children))
        finally:
            for child in reversed(children):
                child.terminate()
                child.wait(timeout=PATIENCE_S)
    ElementTree.fromstring(picture)
    with open(PICTURE, 'w', encoding='utf-8') as out:
        out.write(picture)


main()

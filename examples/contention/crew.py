# SPDX-License-Identifier: Apache-2.0
"""The parent's side: starts the processes, takes in what they say, strikes them, and sees to it that they end."""
import ctypes
import mmap
import os
import select
import signal
import sys
import tempfile
import time

import witness

PROCESSES_MAX = THREADS_MAX = 64
TURN_S = 0.1
START_TIMEOUT_S = 30  # a client gives up connecting well before
STOP_TIMEOUT_S = 15   # beyond session timeout and close
ODD_SHOWN = 5


class Failed(Exception):
    """The run must end. Its text is for the user; None: a signal asked for it."""


class Board(ctypes.Structure):
    """Memory that all share; worker.c has the same and says what is what."""
    _fields_ = [('station', ctypes.c_int), ('parole', ctypes.c_int), ('updates', ctypes.c_uint64 * PROCESSES_MAX),
                ('acquired', ctypes.c_uint64 * PROCESSES_MAX), ('holding', ctypes.c_int * PROCESSES_MAX),
                ('done', ctypes.c_uint64 * THREADS_MAX * PROCESSES_MAX)]


class Member:
    def __init__(self):
        self.pid = 0  # 0: not running
        self.input = -1
        self.life = 0
        self.paused = False


def clock_us():
    return time.monotonic_ns() // 1000


def complain(why):
    """One line, and False."""
    print(f'contention: {why}', file=sys.stderr, flush=True)
    return False


def open_files(keep):
    """Journal and record, made anew; without a folder to keep them they leave no trace, whatever ends the run."""
    try:
        if keep is None:
            return tempfile.TemporaryFile(), tempfile.TemporaryFile()
        return open(os.path.join(keep, 'journal'), 'w+b'), open(os.path.join(keep, 'record'), 'w+b')
    except OSError as error:
        raise Failed(f'{"--keep: " if keep else ""}cannot make files: {error}') from error


class Crew:
    def __init__(self, worker, options):
        self.worker, self.options = worker, options
        self.signal = 0     # SIGINT and the like: end, and die of it
        self.started = False  # all were ready and may begin
        self.odd = 0        # calls that returned what they should not
        self.standing = None  # (process, thread): a holder stands at the station that was asked for
        self.ready = 0
        self.members = [Member() for _ in range(options.processes)]
        self.epoch_us = clock_us()
        self._take_signals()
        self.files = open_files(options.keep)
        self.journal, self.record = (file.fileno() for file in self.files)
        self.append = os.open(f'/proc/self/fd/{self.journal}', os.O_WRONLY | os.O_APPEND)
        self.memory = os.memfd_create('board')
        os.ftruncate(self.memory, ctypes.sizeof(Board))
        self.board = Board.from_buffer(mmap.mmap(self.memory, ctypes.sizeof(Board)))
        self.news, self.news_in = os.pipe()
        self.rest = b''
        for fd in self.journal, self.record, self.memory:
            os.set_inheritable(fd, True)
        self.note('run', value=options.processes, found=options.threads)

    def _take_signals(self):
        """A signal is taken in a turn, where everything can be ended in good order. One that was ignored when we were started
        (nohup) stays ignored."""
        self.signals, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, lambda *_: None)

    def note(self, kind, number=0, **more):
        witness.append(self.append, witness.Line(kind, number, self.members[number].life, at=clock_us() - self.epoch_us, **more))

    # --- starting

    def _start(self, number):
        o, member = self.options, self.members[number]
        words = [o.servers if o.lock else '', o.path, o.session_timeout, number, member.life, o.threads, o.count, o.work_us,
                 o.seed, self.epoch_us, self.journal, self.record, self.memory]
        its_input, member.input = os.pipe()
        member.pid = os.posix_spawn(self.worker, [self.worker, *map(str, words)], os.environ, setsigdef=[signal.SIGPIPE],
                                    file_actions=[(os.POSIX_SPAWN_DUP2, its_input, 0), (os.POSIX_SPAWN_DUP2, self.news_in, 1)])
        os.close(its_input)
        if self.started:
            os.write(member.input, b'g')

    def start(self):
        for number in range(len(self.members)):
            self._start(number)
        end_s = time.monotonic() + START_TIMEOUT_S
        while self.ready < len(self.members):
            self.turn(TURN_S)
            if time.monotonic() > end_s:
                raise Failed('start: not all processes got ready in time')
        self.note('start')
        for member in self.members:
            os.write(member.input, b'g')
        self.started = True

    # --- news

    def _hear(self, line):
        kind, process, _, thread, *text = line.split(' ', 4)
        if kind == 'ready':
            self.ready += 1
        elif kind == 'station':
            self.standing = int(process), int(thread)
        elif kind == 'odd':
            self.odd += 1
            if self.odd <= ODD_SHOWN:
                complain(f'process {process} thread {thread}: {text[0]}')
        else:
            raise Failed(f'process {process}: {text[0]}')

    def _hear_all(self):
        while select.select([self.news], [], [], 0)[0]:
            self.rest += os.read(self.news, 1 << 16)
            *lines, self.rest = self.rest.split(b'\n')
            for line in lines:
                self._hear(line.decode(errors='replace'))

    def _ended(self, number, status):
        member = self.members[number]
        self._forget(member)
        if status == 0:
            return
        self.note('kill', number)
        self._hear_all()  # its own words come first
        how = f'signal {-status}' if status < 0 else f'exit status {status}'
        raise Failed(f'process {number} ended by itself, {how}')

    @staticmethod
    def _forget(member):
        os.close(member.input)
        member.pid, member.input = 0, -1

    def running(self):
        return sum(member.pid != 0 for member in self.members)

    def turn(self, timeout_s):
        """Wait at most so long for news from processes, for their ends and for signals, and take them in."""
        if not select.select([self.signals, self.news], [], [], timeout_s)[0]:
            return
        self._hear_all()
        try:
            heard = set(os.read(self.signals, 512)) - {signal.SIGCHLD}
        except BlockingIOError:
            return
        if heard:
            self.signal = heard.pop()
            raise Failed
        for number, member in enumerate(self.members):
            if member.pid:
                pid, status = os.waitpid(member.pid, os.WNOHANG)
                if pid:
                    self._ended(number, os.waitstatus_to_exitcode(status))

    # --- ending

    def _kill(self, member):
        os.kill(member.pid, signal.SIGKILL)
        os.waitpid(member.pid, 0)
        self._forget(member)

    def kill(self):
        """Whatever still runs."""
        for number, member in enumerate(self.members):
            if member.pid:
                self._kill(member)
                self.note('kill', number)

    def stop(self):
        self.note('stop')
        for member in self.members:
            if member.pid:
                os.close(member.input)
                member.input = os.open('/dev/null', os.O_RDONLY)
        end_s = time.monotonic() + STOP_TIMEOUT_S + self.options.session_timeout / 1000
        while self.running():
            self.turn(TURN_S)
            self.let_go()
            if time.monotonic() > end_s:
                raise Failed('end: not all processes ended in time; they were killed')

    def let_go(self):
        """A holder may have taken a request just as it was taken back."""
        if self.standing:
            self.board.parole = 1
            self.standing = None

    # --- striking

    def replace(self, number):
        """Kill one process, wait until it is dead, write that down, start its next life."""
        member = self.members[number]
        self._kill(member)
        self.note('kill', number)  # only now is it certain that it does nothing any more
        member.life += 1
        self.board.holding[number] = 0
        self._start(number)

    def pause(self, number):
        """Returns once it has stopped."""
        member = self.members[number]
        os.kill(member.pid, signal.SIGSTOP)
        _, status = os.waitpid(member.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._ended(number, os.waitstatus_to_exitcode(status) or 1)
        member.paused = True
        self.note('paused', number)

    def wake(self, number):
        member = self.members[number]
        member.paused = False
        self.note('woken', number)
        os.kill(member.pid, signal.SIGCONT)

    def updates(self, without=None):
        return sum(n for number, n in enumerate(self.board.updates) if number != without)

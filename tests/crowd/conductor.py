# SPDX-License-Identifier: Apache-2.0
"""The conductor of a crowd: peers; and, for the suites interop, fleet and soak, the private server that they meet at, the
journal that judges them, and the tests of a program that are about them.

The peers: processes, each a client of the same server, that obey commands. There is a peer for each language
(tests/interop/interop.py); each has the command line PEER SERVERS JOURNAL, that of zklock an optional CREDENTIAL more,
with which its nodes are open to their creator only.

A peer prints "ready" once it is connected. It then reads commands from standard input, one a line, and answers on
standard output. A line is for one worker: a thread of that peer, whose name begins with the peer's: c1 and c2 of
the peer c, o1.3 of the peer o1. Each worker does one thing at a time and answers it with one line.

    j1 new L mutex /path [OPTION...]   a handle for all workers of this peer; kinds:
           mutex, single (a mutex any thread may release), rwlock (with halves L.read, L.write),
           semaphore, multi (/path,/path...), none (lets everybody in)
    j1 lock L MS            wait at most MS; 0: try only     ok | no: not acquired
    j1 unlock L             what this worker has             ok
    j1 run L N PERCENT      lock, enter the journal, nap, leave it, unlock, N times;
                            of a rwlock PERCENT as a writer  ok
    j1 list L               the contenders, in order         ok DATA|DATA...
    c1 node L               the node of what it holds        ok PATH
    j1 revoke PATH MS       ask PATH's holder to release     ok | no: still there
    j1 revoked L MS         wait to be asked for it          ok | no
    j1 drop L               free the handle                  ok
    j1 version              the release of Curator, Kazoo    ok 5.4.0

Of zklock's peer alone, for soak and chaos:

    s1.0 do STEP ; STEP...  one after the other (steps.c); an answer of each                 ok ANSWER ANSWER...
           join M L1,L2.read   a multi-lock of handles that are there
           enter M MS          lock, also again; MS 0: try, -1: for ever; with the word "cancel" behind it "s1.0 cancel",
                               which has no answer, ends that: WINDOW,COUNT... or ZKL_E... The journal has each place while
                               the worker has it.
           leave M             unlock. Both are -: not done, once an enter has failed, or if M has not been entered.
           guest comes         what it makes from here on is a client's of its own; "leaves"
           nap MS; new and drop as above
    s1.w weigh heap         what the process has in use      ok BYTES
    s1.0 leak WHAT          memory, descriptors or threads: it keeps some        ok
    p1.0 play S             what chaos/play.c has, S being its handle of the semaphore's mutex: ok in the end

Anything unexpected is answered "error WHAT". A peer ends when its input does. An OPTION is NAME or NAME=VALUE, and
what a peer does not know it passes over. Of the handle: permits=N, count=N (permits that one lock takes),
last=single (the last member of a multi-lock is one), name=TEXT (of a named lock), names=kazoo, owner=TEXT,
revocable=poll or callback, retain=MS, local=N, posted, metrics; of Kazoo those in peer.py. How zklock's "run" locks
with it: try, sync, timed (short deadlines), each again and again; lease=MS; late (now and then a lease runs out);
downgrade (a writer becomes a reader); nap (longer, after each)."""
import argparse
import fnmatch
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

import journal

START_S = 180
END_S = 60
ANSWER_S = 120  # for what comes without a wait, on a machine that may be busy
QUIET_S = 120  # if nobody comes in for this long, they hang
STILL_S = 0.3  # how long somebody who waits is watched
GONE_S = 60  # sessions of processes that were killed
LISTEN_S, POLL_S, SECOND_S = 0.02, 0.02, 1
SKIPPED = 77


class Failed(Exception):
    """Why a test has failed."""


class Skipped(Exception):
    """What it needs is not there."""


def length(full, brief):
    """ZKL_TEST_LONG=1: a test at its full length, else in short."""
    return full if os.environ.get('ZKL_TEST_LONG') == '1' else brief


def number(least, most):
    """The type of an option."""
    def take(text):
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f'must be a whole number from {least} to {most}, not "{text}"')
        return int(text)
    return take


def check(fine, why):
    if not fine:
        raise Failed(why)


def wait(condition, why, seconds=ANSWER_S):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f'not within {seconds} s: {why}')
        time.sleep(POLL_S)


class Row:
    """Of a table: "KIND PATHS OPTION...", as above, and threads=N, writers=PERCENT."""

    def __init__(self, text):
        self.text = text
        _, paths, *options = text.split()
        self.options = dict(option.partition('=')[::2] for option in options)
        name = self.options.get('name')
        self.places = [path + (f'#{name}' if name else '') for path in paths.split(',')]

    def number(self, name, otherwise):
        return int(self.options.get(name, otherwise))


class Peer:
    """One process. Whatever becomes of us, it goes with us."""

    def __init__(self, name, command, folder, fds):
        self.name = name
        self.log = pathlib.Path(folder, f'peer-{name.rstrip(".")}.log')
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', *map(str, command)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, cwd=folder, pass_fds=fds)
        self.pid = self.process.pid
        self.output = self.process.stdout.fileno()
        self.ready = None  # what it said behind that word
        self.rest = b''

    def entries(self, folder):
        """In a folder that /proc has of it: "fd", "task"."""
        return len(os.listdir(f'/proc/{self.pid}/{folder}'))


class Crew:
    """Peers, which write their logs in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.peers = {}
        self.busy = set()  # workers that have not answered yet
        self.said = {}  # by worker: what nobody has asked for yet
        self.parts_of = {}  # by worker: a generator of commands, to which their answers are sent
        self.calls = {}  # by worker: its last command, and when it was said
        self.ended = ''  # the first one that ended by itself, or not well, as a sentence

    # --- processes

    def start(self, name, command, fds=()):
        """If it does not run. No name may begin another's."""
        if name not in self.peers:
            self.peers[name] = Peer(name, command, self.folder, fds)

    def await_all(self):
        """Until all that were started are connected."""
        end = time.monotonic() + START_S
        while not all(peer.ready is not None for peer in self.peers.values()):
            self.listen(SECOND_S)
            check(not self.ended, self.ended)
            check(time.monotonic() < end, 'some peer does not start')

    def bury(self, peer):
        peer.process.stdin.close()
        peer.process.stdout.close()
        status = peer.process.wait()
        del self.peers[peer.name]
        self.busy -= {worker for worker in self.busy if worker.startswith(peer.name)}
        self.said = {worker: text for worker, text in self.said.items() if not worker.startswith(peer.name)}
        return status

    def kill(self, name):
        self.peers[name].process.kill()
        self.bury(self.peers[name])

    def stop(self, names):
        """Let them end; kill those that don't. False: one ended, or had ended, in another way than with success."""
        well = not self.ended
        peers = [self.peers[name] for name in names]
        for peer in peers:
            peer.process.stdin.close()
        for peer in peers:
            try:
                peer.process.wait(END_S)
            except subprocess.TimeoutExpired:
                peer.process.kill()
            well = self.bury(peer) == 0 and well
        return well

    def logs(self):
        """What they wrote on standard error."""
        return [f'{log.stem}: {line}' for log in pathlib.Path(self.folder).glob('peer-*.log')
                for line in log.read_text(errors='replace').splitlines()]

    # --- lines

    def take(self, peer, line):
        worker, _, text = line.partition(' ')
        if worker == 'ready':
            peer.ready = text
        else:
            self.said[worker] = text.rstrip()
            self.busy.discard(worker)
            if worker in self.parts_of:
                self.go_on(worker, self.said.pop(worker))

    def listen(self, seconds):
        """Take what the peers say, for at most so long."""
        outputs = {peer.output: peer for peer in self.peers.values()}
        for output in select.select(list(outputs), [], [], seconds)[0]:
            peer, part = outputs[output], os.read(output, 1 << 16)
            *lines, peer.rest = (peer.rest + part).split(b'\n')
            for line in lines:
                self.take(peer, line.decode(errors='replace'))
            if not part:
                status = self.bury(peer)
                if peer.name == 'h' and status == SKIPPED:
                    raise Skipped(self.logs()[-1])
                self.ended = self.ended or f'peer {peer.name} has ended, with status {status}'

    def say(self, line):
        """Send a command to a worker."""
        worker = line.split(' ')[0]
        check(worker not in self.busy, f'{worker} has not answered yet: {line}')
        self.said.pop(worker, None)
        self.tell(line)
        self.busy.add(worker)
        self.calls[worker] = line, time.monotonic()

    def tell(self, line):
        """One without an answer."""
        peer = next((peer for name, peer in self.peers.items() if line.startswith(name)), None)
        check(peer, f'the peer has ended: {line}')
        try:
            peer.process.stdin.write(line.encode() + b'\n')
            peer.process.stdin.flush()
        except BrokenPipeError as error:
            raise Failed(f'the peer has ended: {line}') from error

    def take_part(self, worker, part):
        """The worker does what the generator draws, until its end."""
        self.parts_of[worker] = part
        self.go_on(worker, None)

    def go_on(self, worker, text):
        try:
            self.say(self.parts_of[worker].send(text))
        except StopIteration:
            del self.parts_of[worker]

    def answer_within(self, worker, seconds):
        """Its answer, once; None: there is none."""
        end = time.monotonic() + seconds
        while worker in self.busy and time.monotonic() < end:
            self.listen(max(end - time.monotonic(), 0))
        return self.said.pop(worker, None)

    def answer(self, worker):
        text = self.answer_within(worker, ANSWER_S)
        check(text is not None, f'no answer of {worker}')
        return text

    def ask(self, line):
        self.say(line)
        return self.answer(line.split(' ')[0])

    def fault(self):
        """None: all run, and each answer that nobody has asked for begins with "ok". Else one that does not."""
        odd = (f'{worker}: {text}' for worker, text in self.said.items() if not text.startswith('ok'))
        return next(odd, self.ended or None)


class Crowd(Crew):
    """The server, whose host is the peer h, and all others."""

    def __init__(self, host):
        self.files = tempfile.TemporaryDirectory(prefix='zkl-crowd-')
        super().__init__(self.files.name)
        self.journal = None
        self.parts = []  # of a run: (peer, row, its first worker, threads)
        self.start('h', [host])
        self.await_all()
        self.servers = self.peers['h'].ready

    def close(self):
        self.kill_all()
        self.stop(list(self.peers))
        self.files.cleanup()

    def others(self):
        return [name for name in self.peers if name != 'h']

    def kill_all(self):
        for name in self.others():
            self.kill(name)

    def play(self, text):
        """Step by step, "; " or the end of a line between two:
            COMMAND              is answered "ok"
            COMMAND -> TEXT      is answered so, or, with a * behind it, begins so
            COMMAND ...          has no answer yet
            WORKER -> TEXT       has one now
            WORKER waits         has none for a while
            PATH has N           children, sooner or later
            PATH is free         of contenders, sooner or later"""
        for step in re.split(r'; |\n', text.strip()):
            line, arrow, expected = step.strip().partition(' ->')
            words = line.split()
            if words[-1] == '...':
                self.say(line[:-len(' ...')])
            elif words[-1] == 'waits':
                said = self.answer_within(words[0], STILL_S)
                check(said is None, f'{step.strip()}: {said}')
            elif words[1:2] == ['has']:
                wait(lambda path=words[0], n=int(words[2]): len(self.children(path)) == n, line)
            elif words[1:] == ['is', 'free']:
                wait(lambda path=words[0]: self.ephemerals(path) == 0, line, GONE_S)
            else:
                said = self.answer(line) if len(words) == 1 else self.ask(line)
                expected = expected.strip() if arrow else 'ok'
                fine = said.startswith(expected[:-1]) if expected.endswith('*') else said == expected
                check(fine, f'{step.strip()}: {said}')

    # --- the server

    def host(self, command):
        """What it answers behind "ok"."""
        text = self.ask('h ' + command)
        check(text.startswith('ok'), f'{command}: {text}')
        return text[len('ok '):]

    def children(self, path):
        return self.host('children ' + path).split()

    def ephemerals(self, path):
        """So many are at the path and below."""
        return int(self.host('ephemerals ' + path))

    def word(self, word):
        """The answer to one of ZooKeeper's four-letter words."""
        host, _, port = self.servers.partition(':')
        with socket.create_connection((host, int(port)), START_S) as connection:
            connection.sendall(word.encode())
            with connection.makefile(encoding='utf-8') as answer:
                return answer.read()

    # --- a run

    def open_journal(self, parties):
        """Empty, for parties with these letters."""
        if self.journal:
            self.journal.close()
        self.journal = journal.Journal(os.path.join(self.folder, 'journal'), parties)
        self.parts = []
        return self.journal.path

    def add(self, peer, row, threads):
        """The peer makes a handle for the row, and so many threads will run with it, if the row does not say how many. The
        journal knows its places before anybody comes."""
        first = sum(its_threads for its_peer, _, _, its_threads in self.parts if its_peer == peer)
        threads = row.number('threads', threads)
        for path in row.places:
            place = self.journal.place(path)
            place.permits = max(place.permits, row.number('permits', 1))
        self.play(f'{peer}0 new L{len(self.parts)} {row.text}')
        self.parts.append((peer, row, first, threads))
        return threads

    def go(self, rounds):
        """All threads begin to run, so many times each."""
        for number, (peer, row, first, threads) in enumerate(self.parts):
            for worker in range(first, first + threads):
                self.say(f'{peer}{worker} run L{number} {rounds} {row.number("writers", 0)}')

    def drop(self):
        for number, (peer, *_) in enumerate(self.parts):
            self.play(f'{peer}0 drop L{number}')

    def judge(self, meanwhile=lambda: None):
        """Read the journal until all workers have answered: None, or the first rule that was broken, a worker's error, or that
        nobody came in for long."""
        lines, end = self.journal.lines, time.monotonic() + QUIET_S
        try:
            while self.busy:
                self.listen(LISTEN_S)
                self.journal.read()
                if self.fault():
                    return self.fault()
                now = time.monotonic()
                if self.journal.lines > lines:
                    lines, end = self.journal.lines, now + QUIET_S
                if now > end:
                    return 'some worker is not through in time'
                meanwhile()
            self.journal.read()
        except journal.Broken as broken:
            return str(broken)
        return self.fault()


# --- the tests of a program -------------------------------------------------------------------------------------------------

def report(word, name, why, crowd):
    print(f'{word}: {name}: {why}', *crowd.logs(), sep='\n', file=sys.stderr, flush=True)


def run_tests(tests, host, before=lambda crowd: None):
    """Each of a table that a wildcard, the last argument, names, if there is one: name to what is called with the crowd. One
    that fails leaves workers in the middle of something: they are killed, so before each those that are needed start."""
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))
    pattern = sys.argv[2] if len(sys.argv) > 2 else '*'
    chosen = {name: test for name, test in tests.items() if fnmatch.fnmatch(name, pattern)}
    failed = not chosen
    try:
        crowd = Crowd(host)
    except Skipped as why:
        print(f'skipped: {why}')
        return SKIPPED
    try:
        for name, test in chosen.items():
            print(f'--- {name}', flush=True)
            try:
                before(crowd)
                test(crowd)
            except Skipped as why:
                print(f'skipped: {why}', flush=True)
            except Failed as why:
                failed = True
                report('FAILED', name, why, crowd)
            crowd.listen(0)
            if crowd.busy or crowd.ended:
                crowd.kill_all()
                crowd.ended = ''
        if not crowd.stop(list(crowd.peers)):
            failed = True
            report('FAILED', 'the end', crowd.ended or 'not all ended well', crowd)
    finally:
        crowd.close()
    return int(failed)

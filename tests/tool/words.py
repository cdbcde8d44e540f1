# SPDX-License-Identifier: Apache-2.0
"""The words of the tests that are text."""
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import pathlib
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from ctypes import byref, c_size_t

import hooks
from kills import Kills, children_of, guard_of, is_gone, number_of, state_of
from starts import Starts
from wires import OPS, Wires
from world import Acl, Failure, LIB, Names, Options, Servers, Shared, Skipped, Stat, WAIT_MS, must, wait_until

UUID = '_c_01234567-89ab-4def-8123-456789abcdef'
NONODE, NOAUTH, NODEEXISTS = -101, -102, -110
FLAGS = {'ephemeral': 1, 'numbered': 3}
DEFAULT = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP,
           signal.SIGPIPE]
TEXT_MAX = 2**20


def fits(count, text):
    """It is "3", at least "3+" or at most "3-"."""
    number = int(text.rstrip('+-'))
    return count >= number if text.endswith('+') else count <= number if text.endswith('-') else count == number


def has(text, word):
    """Behind a '!' stands what must not be in the text, behind a '=' the whole of it, behind "*2 " what is in it twice; a '^' is
    for its beginning, and ".a.0.b=c" for what it says as JSON."""
    rest = word[1:]
    if word.startswith('*'):
        times, _, part = rest.partition(' ')
        return sum(text.startswith(part, i) for i in range(len(text))) == int(times)
    if word.startswith('.'):
        return json_has(text, word)
    return {'=': lambda: text == rest, '!': lambda: rest not in text,
            '^': lambda: text.startswith(rest)}.get(word[:1], lambda: word in text)()


def json_has(text, word):
    path, how, wanted = re.fullmatch(r'\.([^=<>]*)([=<>])(.*)', word, re.DOTALL).groups()
    value = json.loads(os.fsencode(text).decode('utf-8'))
    for name in path.split('.'):
        value = dict(enumerate(value)).get(int(name), '-') if isinstance(value, list) else value.get(name, '-')
    if how == '=':
        return (value if isinstance(value, str) else json.dumps(value)) == wanted
    return value > int(wanted) if how == '>' else value < int(wanted) or LIB.lag_is_slow()


def check_said(text, said):
    for word in said:
        if not has(text, word):
            raise Failure(f'"{word}" is not so: {text}')


class Job:
    """A process with what it says: on a terminal, or else in a file. By a line of sh these are zklock's arguments unless zklock,
    zklock-dev or exec is in it."""

    def __init__(self, line, argv=(), columns=0):
        if line is not None:
            whole = 'zklock ' in line or 'zklock-dev ' in line or line.startswith('exec ')
            argv = ['/bin/sh', '-c', line if whole else 'exec zklock ' + line]
        self.screen, self.status, self.columns = b'', None, columns
        self.output, slave = pty.openpty() if columns else (os.memfd_create('output'), -1)
        if columns:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
            os.set_blocking(self.output, False)
            actions = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(slave), os.O_RDWR, 0), *((os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2))]
        else:
            actions = [(os.POSIX_SPAWN_OPEN, 0, '/dev/null', os.O_RDONLY, 0),
                       *((os.POSIX_SPAWN_DUP2, self.output, fd) for fd in (1, 2))]
        self.pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsid=columns > 0, setsigdef=DEFAULT)
        if columns:
            os.close(slave)

    def text(self):
        if self.output < 0:
            return os.fsdecode(self.screen)
        if not self.columns:
            return os.fsdecode(os.pread(self.output, TEXT_MAX, 0))
        try:
            self.screen += os.read(self.output, TEXT_MAX)
        except OSError:
            pass  # nothing new, or nobody has the terminal any more
        return os.fsdecode(self.screen)

    def has_ended(self):
        if self.columns:
            self.text()
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def check_end(self, how, said=()):
        """By "5", "69/79", "SIGTERM" or "any"."""
        if not wait_until(self.has_ended, 3 * WAIT_MS):
            raise Failure(f'it does not end: {self.text()}')
        status, text = self.status, self.text()
        if self.output >= 0:
            os.close(self.output)
        self.screen, self.output = os.fsencode(text), -1
        if how.startswith('SIG'):
            good = os.WIFSIGNALED(status) and os.WTERMSIG(status) == number_of(how[3:]) and not os.WCOREDUMP(status)
        else:
            good = how == 'any' or os.WIFEXITED(status) and str(os.WEXITSTATUS(status)) in how.split('/')
        if not good:
            raise Failure(f'status {status:#x}, not {how}: {text}')
        check_said(text, said)


class Manager:
    """A service manager's socket. Its text is what it was told, a line each."""
    status = 0  # nothing to end

    def __init__(self, folder, kind):
        self.name, self.told = f'{folder}/manager-{time.monotonic_ns()}', ''
        self.name = '@' + self.name[1:] if kind == 'abstract' else self.name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind('\0' + self.name[1:] if kind == 'abstract' else self.name)
        if kind == 'deaf':
            with contextlib.suppress(BlockingIOError):
                while True:
                    self.socket.sendto(b'', self.name)

    def text(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.told += os.fsdecode(self.socket.recv(65536)) + '\n'
        return self.told


class Words(Kills, Starts, Wires):
    """Of one test. A word is the method of its name; what a question returns is whether it is so."""

    def __init__(self, server, clocks):
        super().__init__()
        self.server, self.clocks, self.said = server, clocks, ()
        self.jobs, self.works, self.proxies, self.links, self.traps, self.pipes, self.ensemble_ = {}, {}, {}, [], [], {}, None
        self.wires = [server.session()]
        if clocks:
            clocks.began_ns = time.time_ns()
        self.raw, self.began_ms, self.leader, self.owned, self.owns = self.wires[0], 0, 0, 0, 0
        self.unheard = socket.socket()  # a port of the test's own, at which nobody listens
        self.unheard.bind(('127.0.0.1', 0))
        others = ('NO_COLOR', 'LD_PRELOAD', 'NOTIFY_SOCKET', 'SYSTEMD_EXEC_PID')
        for name in [n for n in os.environ if n.startswith(('ZKLOCK_', 'WATCHDOG_')) or n in others]:
            del os.environ[name]
        folders = [os.path.dirname(os.environ['ZKL_TEST_' + name]) for name in ('TOOL', 'DEV', 'WORK')]
        host, pid = socket.gethostname(), str(os.getpid())
        os.environ.update({f'T{thread}': f'{host} {pid} {thread}' for thread in range(1, 8)})
        os.environ.update(
            PATH=':'.join([*folders, os.environ['ZKL_TEST_PATH']]), XDG_CONFIG_HOME=server.folder, SHELL='/bin/sh', TERM='xterm',
            ZKLOCK_SERVERS=server.list, ZKLOCK_SESSION_TIMEOUT='10', HOST=host, PID=pid, UUID=UUID, DIR=server.folder,
            SERVERS=server.list, NOBODY=f'127.0.0.1:{self.unheard.getsockname()[1]}', OWN=f'/own-{time.monotonic_ns()}',
            HERE=os.path.dirname(os.path.abspath(__file__)), NL='\n', CR='\r', CTRL_C='\3', CTRL_Z='\32')
        pathlib.Path(server.folder, 'zklock.conf').unlink(missing_ok=True)

    def end_all(self):
        """The overlaps that were found."""
        for trap in self.traps:
            trap.goes_on = True
        for job in self.jobs.values():
            if job.status is None:
                os.kill(job.pid, signal.SIGKILL)
                job.check_end('any')
        for proxy in self.links:
            LIB.proxy_stop(proxy)
        self.end_wires_()
        self.end_starts_()
        for wire in self.wires:
            LIB.wire_close(wire)
        for fd in sum(self.pipes.values(), ()):
            os.close(fd)
        if self.ensemble_:
            self.ensemble_.stop()
        self.unheard.close()
        return sum(work.overlaps for work in self.works.values())

    # --- processes

    def begin_(self, name, line):
        if name in self.jobs and self.jobs[name].status is None:
            raise Failure(f'{name} has not ended')
        self.jobs[name] = Job(line)
        os.environ[name + '_pid'] = str(self.jobs[name].pid)

    def work_(self, name, line, how):
        self.worked(name)
        self.begin_(name, f'run {line} -- work ${name} 0 {how}')
        if not wait_until(lambda: self.works[name].begun >= 1):
            raise Failure(f'it does not begin: {self.jobs[name].text()}')

    def end_past_(self, passing, how, line):
        def is_past():
            job = Job(line)
            if wait_until(job.has_ended, 3 * WAIT_MS) and job.status == int(passing) << 8:
                return False
            job.check_end(how, self.said)
            return True
        must(not wait_until(is_past, 3 * WAIT_MS), f'the ends were {passing}')

    def worked(self, name):
        path = f'{self.server.folder}/shared-{time.monotonic_ns()}'
        with open(path, 'w+b') as file:
            file.truncate(ctypes.sizeof(Shared))
            self.works[name] = Shared.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(Shared)))
        os.environ[name] = path

    def terminal(self, name, columns, *words):
        self.jobs[name] = Job(None, words, int(columns))

    def type(self, name, keys):
        os.write(self.jobs[name].output, os.fsencode(keys))

    def hang_up(self, name):
        os.close(self.jobs[name].output)
        self.jobs[name].output = -1

    def pid(self, name, who):
        os.environ[name] = str(self.pid_(who))

    def pid_(self, who):
        """Of zklock A, of "guard:A", of "command:A", of the first "child:A", or a number."""
        kind, _, name = who.rpartition(':')
        pid = int(who) if who.isdigit() else self.works[name].pid if kind == 'command' else self.jobs[name].pid
        return guard_of(pid) if kind == 'guard' else next(iter(children_of(pid)), 0) if kind == 'child' else pid

    def kill(self, who, name):
        must(not self.pid_(who), f'there is no {who}')
        os.kill(self.pid_(who), number_of(name))

    def ends(self, name, how):
        self.jobs[name].check_end(how, self.said)

    def manager(self, name, kind='usual'):
        """Its socket's name is in the variable."""
        self.jobs[name] = Manager(self.server.folder, kind)
        os.environ[name] = self.jobs[name].name

    def forget_told(self, name):
        self.jobs[name].text()
        self.jobs[name].told = ''

    def silent(self, name):
        """It is told nothing for a moment."""
        self.forget_told(name)
        time.sleep(0.2)
        return not self.jobs[name].text()

    def says(self, name):
        return all(has(self.jobs[name].text(), word) for word in self.said)

    def begun(self, name, times):
        return self.works[name].begun == int(times)

    def came(self, name, number, times):
        return fits(self.works[name].signals[number_of(number)], times)

    def gone(self, who):
        return is_gone(self.pid_(who))

    def stopped(self, who):
        return state_of(self.pid_(who)) == 'T'

    # --- nodes

    def create_(self, path, data, flags, acl=''):
        entries = [entry.split(':', 2) for entry in acl.split(',') if entry]
        array = (Acl * len(entries))(*[(int(perms), scheme.encode(), who.encode()) for perms, scheme, who in entries])
        made = ctypes.create_string_buffer(2000)
        rc = LIB.wire_create_acl(self.raw, os.fsencode(path), os.fsencode(data), flags, array if entries else None,
                                 c_size_t(len(entries)), made, c_size_t(2000))
        return rc, made.value.decode()

    def node(self, path, *words):
        """node PATH [DATA] [ephemeral | numbered] [acl PERMS:SCHEME:ID,...]: with what is above it."""
        data, flags, acl = '', 0, ''
        for word, before in zip(words, ('', *words)):
            if before == 'acl':
                acl = word
            elif word in FLAGS:
                flags = FLAGS[word]
            elif word != 'acl':
                data = word
        for slash in [i for i, letter in enumerate(path) if letter == '/' and i > 0]:
            must(self.create_(path[:slash], '', 0)[0] not in (0, NODEEXISTS), path[:slash])
        rc, os.environ['node'] = self.create_(path, data, flags, acl)
        must(rc, path)

    def contender(self, path, marker, data):
        """Nothing but a node."""
        self.node(f'{path}/{UUID}-{marker}', data, 'numbered')

    def delete(self, path):
        must(LIB.wire_delete(self.raw, os.fsencode(path), -1), path)

    def set(self, path, data):
        must(LIB.wire_set(self.raw, os.fsencode(path), os.fsencode(data), -1), path)

    def acl(self, path, acl):
        perms, scheme, who = acl.split(':', 2)
        must(LIB.wire_set_acl(self.raw, path.encode(), byref(Acl(int(perms), scheme.encode(), who.encode())), c_size_t(1)), path)

    def auth(self, scheme, credential):
        must(LIB.wire_auth(self.raw, scheme.encode(), credential.encode()), scheme)

    def children_(self, path):
        names = Names()
        rc = LIB.wire_children(self.raw, path.encode(), byref(names))
        must(rc != NONODE and rc, path)
        return sorted((name.decode() for name in names.name[:names.n]), key=lambda name: name[-10:])

    def children(self, path, count):
        return len(self.children_(path)) == int(count)

    def first(self, path):
        """Into $node."""
        os.environ['node'] = f'{path}/{self.children_(path)[0]}'

    def read_(self, path, read=LIB.wire_get, *more):
        text = ctypes.create_string_buffer(65536)
        must(read(self.raw, os.fsencode(path), text, c_size_t(65536), *more), path)
        return os.fsdecode(text.value)

    def data(self, path):
        check_said(self.read_(path, LIB.wire_get, None), self.said)

    def acl_of(self, path):
        check_said(self.read_(path, LIB.wire_get_acl), self.said)

    def look(self, path):
        """Its data and stat, as $data, $czxid and so on."""
        stat = Stat()
        os.environ['data'] = self.read_(path, LIB.wire_get, byref(stat))
        os.environ.update({name: str(getattr(stat, name)) for name, _ in Stat._fields_})

    def exists(self, path):
        rc = LIB.wire_exists(self.raw, os.fsencode(path), None)
        must(rc != NONODE and rc, path)
        return rc == 0

    def own(self, path, size):
        """Own nodes in this queue, as many as stay below these bytes with those of before. The server counts a path with the 4 bytes
        of its length. $owned are the bytes, $owns the nodes, $session their session."""
        asked = f'{path}/{UUID}-lock-'
        each = 4 + len(asked) + 10
        while self.owned + each <= int(size):
            must(self.create_(asked, 'owner', FLAGS['numbered'])[0], asked)
            self.owned += each
            self.owns += 1
        os.environ.update(owned=str(self.owned), owns=str(self.owns), session=f'{LIB.wire_session(self.raw):x}')

    def closed(self, path):
        """To be read and written by this connection."""
        return LIB.wire_get(self.raw, path.encode(), ctypes.create_string_buffer(10), c_size_t(10), None) == NOAUTH and \
            LIB.wire_set(self.raw, path.encode(), b'', -1) == NOAUTH

    def session(self, which):
        """Nodes to come are of another session, or of the first one again."""
        if which == 'other':
            self.wires.append(self.server.session())
        self.raw = self.wires[-1 if which == 'other' else 0]

    # --- proxies

    def asked(self, name, op, times):
        return fits(sum(LIB.proxy_counts(self.proxies[name], number) for number in OPS[op]), times)

    def hook(self, name, kind, *words):
        """One of hooks.py."""
        self.traps.append(getattr(hooks, kind)(*words))
        LIB.proxy_set_hook(self.proxies[name], self.traps[-1].hook, None)

    def unhook(self, name):
        LIB.proxy_set_hook(self.proxies[name], None, None)

    def struck(self):
        os.environ['caught'] = self.traps[-1].caught
        return self.traps[-1].struck

    def spoil(self):
        self.traps[-1].spoil = True

    def go_on(self):
        self.traps[-1].goes_on = True

    # --- servers

    def word(self, word):
        """One of four letters."""
        check_said(self.flw_text_('query', word.encode())[1], self.said)

    def flw_paths(self, count):
        found, text = self.flw_text_('watch_paths')
        check_said(text, self.said)
        return found == int(count)

    def counter(self, path, due):
        """The next number below it, in the data of the ensemble's first node, which does not run."""
        number = ctypes.c_int32()
        self.ensemble_.change_data('get_counter', 0, path.encode(), byref(number))
        return number.value == int(due)

    def set_counter(self, path, number):
        try:
            self.ensemble_.change_data('set_counter', 0, path.encode(), int(number))
        except Failure as why:
            os.environ['said'] = str(why)
            return False
        return True

    def ensemble(self, nodes, *settings):
        """ensemble NODES [OPTION[.NODE]=VALUE...]: by the options of zkserver.h; at $ENSEMBLE."""
        options = Options(nodes=int(nodes))
        for name, value in (setting.split('=', 1) for setting in settings):
            name, _, node = name.partition('.')
            value = int(value) if value.isdigit() else value.encode()
            if node:
                getattr(options, name)[int(node)] = value
            else:
                setattr(options, name, value)
        if self.ensemble_:
            self.ensemble_.stop()
        self.ensemble_ = None
        if self.clocks:
            os.environ['LD_PRELOAD'] = os.environ['ZKL_TEST_WALL_SO']
        self.ensemble_ = Servers(options)
        os.environ.pop('LD_PRELOAD', None)
        os.environ['ENSEMBLE'] = self.ensemble_.list

    def fails_to_start(self, code, *settings):
        """Because of that."""
        try:
            self.ensemble(1, *settings)
        except Skipped as why:
            return code == '-2' and check_said(str(why), self.said)
        except Failure as why:
            return code == '-1' and check_said(str(why), self.said)
        return False

    def servers(self, *words):
        """The same for each zklock to come."""
        self.ensemble(*words)
        os.environ['ZKLOCK_SERVERS'] = self.ensemble_.list

    def at(self, node, verb):
        self.ensemble_.do(verb, int(node))

    def ready(self):
        self.ensemble_.wait_ready()

    def at_leader(self):
        """Nodes to come are made there; the others are $follower and $third, and the addresses $LEADER, $FOLLOWER, $THIRD."""
        leader = self.ensemble_.leader()
        for i, name in enumerate(('leader', 'follower', 'third')):
            os.environ[name] = str((leader + i) % 3)
            os.environ[name.upper()] = self.ensemble_.address((leader + i) % 3)
        self.wires.append(self.ensemble_.session(leader))
        self.raw = self.wires[-1]

    def rename(self, node, old, new):
        """In the data of a server that does not run."""
        self.ensemble_.change_data('rename', int(node), old.encode(), new.encode())

    def counters(self, *words):
        """counters PATH NUMBER...: the next sequence numbers, in the data of the server."""
        while self.wires:
            LIB.wire_close(self.wires.pop())
        must(LIB.zks_restart_node(self.server.zks, c_size_t(0)), 'restart')  # writes a snapshot
        self.server.do('stop', 0)
        for path, number in zip(words[::2], words[1::2]):
            self.server.change_data('set_counter', 0, path.encode(), int(number))
        self.server.do('start', 0)
        self.server.wait_ready()
        self.wires.append(self.server.session())
        self.raw = self.wires[0]

    def other(self, name, text):
        """A server of another make, as far as srvr goes: it hangs up on everything else."""
        listener = socket.create_server(('127.0.0.1', 0))
        os.environ[name] = f'127.0.0.1:{listener.getsockname()[1]}'

        def serve():
            while True:
                link, _ = listener.accept()
                with link:
                    if link.recv(4, socket.MSG_WAITALL) == b'srvr':
                        link.sendall(text.encode())

        threading.Thread(target=serve, daemon=True).start()

    def clock(self, ms):
        """The server's: so much later than when the test began."""
        self.clocks.set(self.server.pid(0), int(ms))

    def next_leader(self, ms):
        """The leader is killed, and the next one's clock is so much later."""
        self.leader = self.ensemble_.leader()
        for node in {0, 1, 2} - {self.leader}:
            self.clocks.set(self.ensemble_.pid(node), int(ms))
        self.ensemble_.do('kill', self.leader)
        self.ensemble_.wait_ready()
        must(self.ensemble_.leader() == self.leader, 'the same leader')

    def complete(self):
        """The one that was killed is back."""
        self.ensemble_.do('start', self.leader)
        self.ensemble_.wait_ready()

    # --- the rest

    def export(self, name, value):
        os.environ[name] = value

    def unset(self, *names):
        for name in names:
            os.environ.pop(name, None)

    def now(self):
        self.began_ms = LIB.net_now_ms()
        LIB.lag_begin()

    def lasted(self, ms):
        return LIB.net_now_ms() - self.began_ms >= int(ms)

    def within(self, ms):
        """Of the time since "now" nothing counts that the machine took."""
        return LIB.lag_end_ms() < int(ms)

    def free_port(self, name):
        port = ctypes.c_int()
        must(LIB.net_free_ports(byref(port), c_size_t(1)), 'a free port')
        os.environ[name] = str(port.value)

    def needs(self, line, why):
        """Skipped if this line of sh fails."""
        if subprocess.call(['sh', '-c', line], stderr=subprocess.DEVNULL) != 0:
            raise Skipped(why)

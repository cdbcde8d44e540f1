# SPDX-License-Identifier: Apache-2.0
"""The words of the tests of the launcher: its servers, their ports, and processes that start one and end."""
import ctypes
import errno
import os
import signal
import socket
from ctypes import byref, c_int, c_size_t

from kills import proc_of
from world import HOST, LIB, Options, Servers, WAIT_MS, must

MODES = {'no-answer': -1, 'standalone': 1, 'follower': 3}
PR_SET_PDEATHSIG = 1
LIB.zks_log_path.restype = ctypes.c_char_p


def parent_of(pid):
    return proc_of(pid, 'stat').rpartition(')')[2].split()[1] if pid else 0


class Starts:
    """What Words has of them."""

    def __init__(self):
        super().__init__()
        self.strays, self.occupied = [], []  # processes; descriptors

    def end_starts_(self):
        for pid in self.strays:
            os.kill(pid, signal.SIGKILL)
        self.vacate()

    # --- the ensemble

    def about(self, node):
        """$pid, $keeper, $port, $address and $log of a node, and $leader and $folder."""
        all_, node = self.ensemble_, int(node)
        pid = all_.pid(node)
        os.environ.update(pid=str(pid), keeper=str(parent_of(pid)), port=str(all_.port(node)), address=all_.address(node),
                          log=LIB.zks_log_path(all_.zks, c_size_t(node)).decode(), leader=str(LIB.zks_leader(all_.zks)),
                          folder=all_.folder)

    def is_up(self, node):
        return self.ensemble_.pid(int(node)) != 0

    def mode(self, node, due, ms=WAIT_MS):
        return LIB.flw_mode(HOST, self.ensemble_.port(int(node)), int(ms)) == MODES[due]

    def refuses(self, node, verb):
        return getattr(LIB, f'zks_{verb}_node')(self.ensemble_.zks, c_size_t(int(node))) == -1

    def stop_servers(self):
        self.ensemble_.stop()
        self.ensemble_ = None

    @staticmethod
    def serves(address):
        """The port of a server that is gone refuses immediately."""
        return LIB.flw_mode(HOST, int(address.rpartition(':')[2]), WAIT_MS) == MODES['standalone']

    # --- ports

    def occupy(self, port):
        """As a server that sets SO_REUSEADDR."""
        self.occupied.append(LIB.net_listen_on(int(port)))
        must(self.occupied[-1] < 0, port)

    def vacate(self):
        for fd in self.occupied:
            os.close(fd)
        self.occupied.clear()

    def reserve(self):
        """One of its own, $port."""
        port, fd = c_int(), c_int()
        must(LIB.net_reserve_ports(byref(port), byref(fd), c_size_t(1)), 'a port')
        self.occupied.append(fd.value)
        os.environ['port'] = str(port.value)

    @staticmethod
    def is_reserved(port):
        """A descriptor of this process is bound to it."""
        def name_of(fd):
            try:
                with socket.socket(fileno=os.dup(int(fd))) as one:
                    return one.getsockname()
            except OSError:
                return ''
        return any(name[1:2] == (int(port),) for name in map(name_of, os.listdir('/proc/self/fd')))

    @staticmethod
    def is_to_be_had(port):
        """By who looks for one."""
        with socket.socket() as one:
            try:
                one.bind((HOST.decode(), int(port)))
            except OSError as why:
                must(why.errno != errno.EADDRINUSE, why)
                return False
        return True

    # --- who starts a server, and ends

    def starter(self, pause=''):
        """A process that has started a $server, whose parent is $keeper, and $bystander, its child, which lives on."""
        report, its_report = os.pipe()
        pid = os.fork()
        if pid == 0:
            self.be_starter_(its_report, pause)
        os.close(its_report)
        with os.fdopen(report) as lines:
            words = lines.readline().split()
        must(len(words) != 4, f'the starter says {words}')
        os.environ.update(zip(('bystander', 'server', 'keeper', 'folder'), words), starter=str(pid))
        self.strays += [pid, int(words[0])]

    @classmethod
    def be_starter_(cls, report, pause):
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            servers = Servers(Options(nodes=1))
            bystander = cls.bystander_(servers, report)
            server = servers.pid(0)
            if pause:
                servers.do('pause', 0)
            os.write(report, f'{bystander} {server} {parent_of(server)} {servers.folder}\n'.encode())
            os.close(report)
            signal.pause()
        finally:
            os._exit(1)

    @staticmethod
    def bystander_(servers, report):
        """It holds every other descriptor of its parent; its call has no effect."""
        stopped, its_stopped = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(report)
            signal.alarm(300)  # should the test be killed before it kills us
            servers.stop()
            os.close(its_stopped)
            signal.pause()
            os._exit(0)
        os.close(its_stopped)
        must(os.read(stopped, 1), 'the bystander')
        return pid

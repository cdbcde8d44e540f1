# SPDX-License-Identifier: Apache-2.0
"""A private ZooKeeper for the benchmark, and what it and its sockets count."""
import dataclasses
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

# The launcher's own options are for quick starts; here the server is to be as fast as it gets.
JVM = '-Xms1g -Xmx1g -XX:TieredStopAtLevel=4'
CONNECTION = re.compile(r'/\S*:(\d+)\[\d+\]\(queued=\d+,recved=(\d+),sent=(\d+)')
WORD_TIMEOUT_S = 10
POLL_S = 0.05
QUIET_POLLS = 5
ALIVE_S = 0.3  # a client of the library in which somebody waits sends something that often; others send less


@dataclasses.dataclass
class Counters:
    """What the clients of some processes sent (packets) and got (bytes) since they connected."""
    requests: int = 0
    received_bytes: int = 0

    def __sub__(self, other):
        return Counters(self.requests - other.requests, self.received_bytes - other.received_bytes)


class Server:
    """One server, or an ensemble."""

    def __init__(self, launcher, fsync, nodes=1, tick_ms=500):
        self.tick_s = tick_ms / 1000
        command = ['setpriv', '--pdeathsig', 'TERM', launcher, '--nodes', str(nodes), '--tick', str(tick_ms), '--jvm', JVM,
                   '--quiet']
        if fsync:
            command.append('--fsync')
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError('no ZooKeeper server')
        self.ports = [int(one.rpartition(':')[2]) for one in self.address.split(',')]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()

    def ask(self, word, port=0):
        """The answer to one of ZooKeeper's four-letter words, by the first server or the one at that port."""
        with socket.create_connection(('127.0.0.1', port or self.ports[0]), WORD_TIMEOUT_S) as connection:
            connection.sendall(word.encode())
            answer = b''
            while True:
                part = connection.recv(1 << 16)
                if not part:
                    return answer.decode()
                answer += part

    def version(self):
        return re.search(r'version: ([\w.]+)', self.ask('srvr')).group(1)

    def monitor(self, name):
        return int(re.search(rf'^{name}\t(\d+)', self.ask('mntr'), re.MULTILINE).group(1))

    def ephemerals(self):
        """The paths of all ephemeral nodes."""
        return set(re.findall(r'^\t(/\S+)$', self.ask('dump'), re.MULTILINE))

    def cpu_us(self):
        """What its processes have used so far."""
        total, pids = 0, [self.process.pid]
        for pid in pids:
            directory = pathlib.Path('/proc') / str(pid)
            times = (directory / 'stat').read_text(encoding='ascii').rpartition(')')[2].split()[11:13]
            total += sum(int(ticks) for ticks in times)
            for task in (directory / 'task').iterdir():
                try:
                    pids += [int(child) for child in (task / 'children').read_text(encoding='ascii').split()]
                except FileNotFoundError:
                    pass  # a thread of Java's that has just ended
        return total * 1e6 / os.sysconf('SC_CLK_TCK')

    def sockets(self):
        """Local port: (pid, bytes received) of each connection to these servers."""
        there = ' or '.join(f'dport = :{port}' for port in self.ports)
        output = subprocess.run(['ss', '-tinpHO', 'state', 'established', f'( {there} )'], check=True,
                                capture_output=True, text=True).stdout
        found = {}
        for line in output.splitlines():
            port = re.search(rf':(\d+)\s+\S+:(?:{"|".join(map(str, self.ports))})\s', line)
            pid, received = re.search(r'pid=(\d+)', line), re.search(r'bytes_received:(\d+)', line)
            if port and pid:
                found[int(port.group(1))] = int(pid.group(1)), int(received.group(1)) if received else 0
        return found

    def counters(self, pids):
        """Of the connections that these processes have now."""
        total = Counters()
        sockets = self.sockets()
        connections = [one for port in self.ports for one in CONNECTION.findall(self.ask('cons', port))]
        for port, received, _ in connections:
            pid, got = sockets.get(int(port), (None, 0))
            if pid in pids:
                total.requests += int(received)
                total.received_bytes += got
        return total

    def wait_nodes(self, nodes, timeout_s):
        """Until there are so many ephemeral nodes. It asks again and again, as who waits next is to come soon."""
        deadline = time.monotonic() + timeout_s
        while self.monitor('zk_ephemerals_count') < nodes:
            if time.monotonic() > deadline:
                raise TimeoutError(f'no queue of {nodes} within {timeout_s} s')

    def wait_queued(self, pids, nodes, timeout_s):
        """Until there are so many ephemeral nodes, and each of these processes sends no more than what says that it is there:
        with many of them that never ends."""
        deadline = time.monotonic() + timeout_s
        quiet, before, asked = 0, -1, time.monotonic()
        while quiet < QUIET_POLLS:
            if time.monotonic() > deadline:
                raise TimeoutError(f'no queue of {nodes} within {timeout_s} s')
            time.sleep(POLL_S)
            now, last, asked = self.counters(pids).requests, asked, time.monotonic()
            alive = len(pids) * math.ceil((asked - last) / ALIVE_S)
            quiet = quiet + 1 if now <= before + alive else 0
            before = now
            if quiet == 1 and self.monitor('zk_ephemerals_count') < nodes:
                quiet = 0

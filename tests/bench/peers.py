# SPDX-License-Identifier: Apache-2.0
"""Who is measured, and the processes they are. Another peer is another line here, and one file that speaks as peer.h
says."""
import dataclasses
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

JARS = ['curator-recipes.jar', 'curator-framework.jar', 'curator-client.jar', 'zookeeper.jar', 'slf4j-simple.jar']
ANSWER_S = 60  # beyond what was asked for


@dataclasses.dataclass
class Peer:
    name: str
    program: str  # zklock, floor, local, readers, curator, kazoo or go
    variant: str = ''
    warm_cycles: int = 200


ALL = [
    Peer('zklock', 'zklock'),
    Peer('zklock-posted', 'zklock', 'posted'),
    Peer('zklock-local', 'zklock', 'local', 20000),
    Peer('zklock-retained', 'zklock', 'retained', 20000),
    Peer('floor-local', 'local', warm_cycles=20000),
    Peer('floor-sync', 'floor', 'sync'),
    Peer('floor-pipe', 'floor', 'pipe'),
    Peer('floor-1rt', 'floor', '1rt'),
    Peer('floor-2w', 'floor', '2w'),
    Peer('floor-named', 'floor', 'named'),
    Peer('floor-group', 'floor', 'group'),
    Peer('floor-group-posted', 'floor', 'group-posted'),
    Peer('curator', 'curator', 'shared', 2000),
    Peer('curator-own', 'curator', 'own', 2000),
    Peer('kazoo', 'kazoo'),
    Peer('gozk', 'go'),
    Peer('zklock-cached', 'readers'),
    Peer('floor-atomics', 'readers'),
    Peer('floor-clocks', 'readers'),
]
BY_NAME = {peer.name: peer for peer in ALL}


class PeerFailed(Exception):
    pass


class Violation(Exception):
    """Two were inside one lock."""


class Places:
    """Where the programs are."""

    def __init__(self, root, build, temp):
        self.root, self.build, self.temp = pathlib.Path(root), pathlib.Path(build), pathlib.Path(temp)
        self.here = self.root / 'tests/bench'
        self.python = next((p for p in ('python3', '/usr/bin/python3') if self._has_kazoo(p)), None)

    @staticmethod
    def _has_kazoo(python):
        return shutil.which(python) is not None and subprocess.run(
            [python, '-c', 'import kazoo.client'], capture_output=True, check=False).returncode == 0

    def why_not(self, peer):
        """Why a peer can't run here, or ''."""
        if peer.program == 'curator' and not (self.build / 'classes/Peer.class').exists():
            return 'Curator is not installed'
        if peer.program == 'kazoo' and self.python is None:
            return 'Kazoo is not installed'
        if peer.program == 'go' and not (self.build / 'goworker').exists():
            return 'go-zookeeper is not installed'
        return ''

    def command(self, peer):
        if peer.program == 'curator':
            jars = ':'.join([str(self.build / 'classes')] + ['/usr/share/java/' + jar for jar in JARS])
            return ['java', '-Xmx1g', '-XX:-UsePerfData', f'-Djava.io.tmpdir={self.temp}',
                    f'-XX:ErrorFile={self.temp}/hs_err.log', '-Djava.net.preferIPv4Stack=true',
                    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', jars, 'Peer']
        if peer.program == 'kazoo':
            return [self.python, '-B', str(self.here.parent / 'crowd/peer.py')]
        if peer.program == 'go':
            return [str(self.build / 'goworker')]
        return [str(self.build / 'tests/bench' / f'bench-{peer.program}')]


class Process:
    def __init__(self, command, log):
        self.log = pathlib.Path(log)
        with open(log, 'wb') as errors:
            # Whatever becomes of us, it goes with us.
            self.process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL'] + command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors)
        self.pid = self.process.pid
        self.rest = b''

    def tell(self, order):
        try:
            self.process.stdin.write(order.encode() + b'\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer tells why

    def answer(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        while b'\n' not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise PeerFailed(f'no answer within {timeout_s:.0f} s')
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                text = self.log.read_text(errors='replace').strip()
                raise (Violation if 'VIOLATION' in text else PeerFailed)(text[-1000:] or 'it ended')
            self.rest += part
        line, self.rest = self.rest.split(b'\n', 1)
        return json.loads(line)

    def status(self, name):
        """A number of /proc/PID/status: kB for memory."""
        for line in pathlib.Path(f'/proc/{self.pid}/status').read_text(encoding='utf-8').splitlines():
            if line.startswith(name + ':'):
                return int(line.split()[1])
        raise KeyError(name)

    def stop(self, gently):
        self.process.stdin.close()
        try:
            if not gently:
                self.process.kill()
            self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Group:
    """The processes of one peer in one workload."""

    def __init__(self, places, peer, processes, words_of):
        self.peer = peer
        self.processes = []
        try:
            for i in range(processes):
                command = places.command(peer) + [f'variant={peer.variant}', f'index={i}'] + words_of(i)
                self.processes.append(Process(command, places.temp / f'{peer.name}-{i}.log'))
            self.answers(ANSWER_S)
        except BaseException:
            self.stop(gently=False)
            raise

    def pids(self):
        return {process.pid for process in self.processes}

    def answers(self, timeout_s):
        return [process.answer(timeout_s) for process in self.processes]

    def order(self, order, timeout_s=0):
        for process in self.processes:
            process.tell(order)
        return self.answers(timeout_s + ANSWER_S)

    def order_in_turn(self, order, timeout_s=0):
        """Each when the one before has answered."""
        for process in self.processes:
            process.tell(order)
            process.answer(timeout_s + ANSWER_S)

    def status(self, name):
        return sum(process.status(name) for process in self.processes)

    def stop(self, gently=True):
        for process in self.processes:
            process.stop(gently)
        self.processes = []

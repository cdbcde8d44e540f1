# SPDX-License-Identifier: Apache-2.0
"""What may not grow: memory, descriptors and threads of the processes; nodes, watches and sessions on the server. All is
looked at now and then, while all workers of the soak stand still with nothing held or wanted, so each number has to be what
it was at the first look. Of memory, which is cut up and kept for later, only the trend counts."""
import os
import pathlib
import re
import time

REST_S = 10  # for deletes that go on after a call timed out
LOOK_S = 0.02
LINES = 10
PAGE = os.sysconf('SC_PAGESIZE')
FOLDERS = {'descriptors': 'fd', 'threads': 'task'}
SLACK = {'bytes of heap': 8 << 10, 'bytes of resident memory': 2 << 20}  # so much more there may be at the end


class Gauge:
    """Made before anybody locks. paths: as many nodes come and go."""

    def __init__(self, crowd, processes, paths):
        self.crowd, self.processes = crowd, processes
        self.nodes_before = self.nodes()
        self.nodes_max = self.nodes_before + paths
        self.looks = []  # one: a number of the server, or a list with one of each process, by its name

    def nodes(self):
        return int(re.search(r'Node count: (\d+)', self.crowd.word('srvr'))[1])

    def counted(self):
        """All but memory."""
        look = {'nodes': self.nodes(), 'watches': int(re.search(r'Total watches:(\d+)', self.crowd.word('wchs'))[1]),
                'sessions': self.crowd.word('cons').count('sid=') - 1}  # without the host's own
        for name, folder in FOLDERS.items():
            look[name] = [self.crowd.peers[process].entries(folder) for process in self.processes]
        return look

    def too_much(self, look):
        """A sentence, or None. At the first look nothing is too much of a process."""
        if look['nodes'] > self.nodes_max or look['watches'] or look['sessions'] != len(self.processes):
            return (f'left behind: {look["nodes"]} nodes (at first {self.nodes_before}, and {self.nodes_max} are allowed), '
                    f'{look["watches"]} watches, {look["sessions"]} sessions of {len(self.processes)}')
        for name in FOLDERS if self.looks else ():
            for process, (before, now) in enumerate(zip(self.looks[0][name], look[name])):
                if now > before:
                    return f'process {process} has {now} {name}, at first {before}'
        return None

    def look(self, at_s):
        """The next one, of everything except memory again and again for a while, until nothing is too much. None, or a
        sentence."""
        end = time.monotonic() + REST_S
        while why := self.too_much(look := self.counted()):
            if time.monotonic() > end:
                return why
            time.sleep(LOOK_S)
        look['at_s'] = at_s
        look['bytes of heap'] = [int(self.crowd.ask(f'{process}w weigh heap').split()[1]) for process in self.processes]
        pids = [self.crowd.peers[process].pid for process in self.processes]
        look['bytes of resident memory'] = [PAGE * int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1])
                                            for pid in pids]
        self.looks.append(look)
        return None

    def trend(self):
        """None, or: the memory of a process grows. Something that grows is less in the whole first third than at any time in the
        last one, however it goes up and down meanwhile. The very first look, when much is used for the first time, does not
        count."""
        third = (len(self.looks) - 1) // 3
        for name, slack in SLACK.items():
            for process in range(len(self.processes)):
                most = max(look[name][process] for look in self.looks[1:1 + third])
                least = min(look[name][process] for look in self.looks[-third:])
                if least > most + slack:
                    return f'process {process} grows: at most {most} {name} in the first third, at least {least} in the last'
        return None

    def report(self):
        step = -(-len(self.looks) // LINES)
        for look in self.looks[:-1:step] + self.looks[-1:]:
            heap, resident = (sum(look[name]) for name in SLACK)
            print(f'  at rest after {look["at_s"]:.0f} s: heaps {heap / 1024:.1f} KB, resident {resident / 2**20:.1f} MB, '
                  f'{sum(look["descriptors"])} descriptors, {sum(look["threads"])} threads; server: {look["nodes"]} nodes, '
                  f'{look["watches"]} watches, {look["sessions"]} sessions')

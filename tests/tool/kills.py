# SPDX-License-Identifier: Apache-2.0
"""The words of the tests in which processes are killed, stopped or cut off: whom a killer finds, and who is dead in time."""
import contextlib
import ctypes
import os
import pathlib
import random
import re
import signal
import time

from world import HOST, LIB, Skipped, WAIT_MS, must, wait_until

# Of a session of 2 s: its end, and the longest time for which a lock can be proved.
END_MS, WINDOW_MS = 2000, 1875
ROUND = [signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT]
AT_ONCE_S = 0.1
MACHINES, STRIKE_PERCENT, LONGEST_WORK_MS, LATEST_STRIKE_MS, LONGEST_STOP_MS = 'AB', 40, 20, 80, 1500


def number_of(name):
    return int(name) if name.isdigit() else signal.Signals['SIG' + name]


def proc_of(pid, name):
    """A file of /proc; blanks stand for NULs. Empty if there is none."""
    try:
        return pathlib.Path(f'/proc/{pid}/{name}').read_text(encoding='utf-8', errors='replace').replace('\0', ' ')
    except OSError:
        return ''


def is_gone(pid):
    """Neither running nor stopped."""
    return state_of(pid) in 'XZ'


def state_of(pid):
    """The letter of /proc, or X."""
    return (proc_of(pid, 'stat').rpartition(')')[2].split() or ['X'])[0]


def children_of(pid):
    return [int(child) for child in proc_of(pid, f'task/{pid}/children').split()]


def guard_of(pid):
    """0: it has none."""
    return next((child for child in children_of(pid) if proc_of(child, 'comm') == 'zklock-guard\n'), 0)


def tree_of(pid):
    """The process and all that descends from it."""
    return [pid, *(below for child in children_of(pid) for below in tree_of(child))]


def found(killer, root):
    """Whom it signals, in no order that it would care for: as systemd ends a unit, and as many end a tree of processes; as pkill
    zklock, pkill -f with a word of zklock's own, and pkill -f with the command's; as killall with the path of a program, and
    pidof."""
    tool, work = os.environ['ZKL_TEST_TOOL'], os.environ['ZKL_TEST_WORK']
    wanted = {'unit': lambda pid: True,
              'name': lambda pid: 'zklock' in proc_of(pid, 'comm'),
              'zklocks-line': lambda pid: '/zklock run' in proc_of(pid, 'cmdline'),
              'commands-line': lambda pid: work in proc_of(pid, 'cmdline'),
              'program': lambda pid: os.readlink(f'/proc/{pid}/exe') == tool}
    if killer not in wanted:
        return {'group': [-root], 'alone': [root]}[killer]
    tree = [pid for pid in tree_of(root) if wanted[killer](pid)]
    return random.sample(tree, len(tree))


class Kills:
    """What Words has of them."""

    # --- signals that come once

    def times_(self, who, number):
        return self.works[who.rpartition(':')[2]].signals[number]

    def kill_by(self, who, killer, name):
        """Some may end by what others got."""
        for pid in found(killer, self.pid_(who)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number_of(name))

    def once_each(self, who, killer, rounds):
        """Signals are passed on in the order in which zklock got them, so no more will come of a round once a later one, to zklock
        alone, has come. What comes together is handled in any order. If the killer was itself kept from the processor for long, its
        signals are several."""
        due = [self.times_(who, number) for number in ROUND]
        for i in range(int(rounds)):
            number, nth, began = ROUND[i % 4], i % 4, time.monotonic()
            self.kill_by(who, killer, str(int(number)))
            at_once = time.monotonic() - began < AT_ONCE_S
            self.mark_(who)
            due[nth] += 1
            must(not wait_until(lambda: self.times_(who, number) >= due[nth]), f'{killer}, round {i}: no signal {number}')
            if at_once:
                must(self.times_(who, number) - due[nth], f'{killer}, round {i}: so many times signal {number} came too often')
            due[nth] = self.times_(who, number)

    def mark_(self, who):
        marks = self.times_(who, signal.SIGUSR2)
        os.kill(self.pid_(who), signal.SIGUSR2)
        must(not wait_until(lambda: self.times_(who, signal.SIGUSR2) == marks + 1), 'no mark')

    def counts_apart(self, name):
        """One signal to the command's group and, after twice the time that a killer may take, one to zklock: were they two?"""
        before = self.times_(name, signal.SIGHUP)
        os.killpg(os.getpgid(self.works[name].pid), signal.SIGHUP)
        must(not wait_until(lambda: self.times_(name, signal.SIGHUP) > before), 'not one')
        time.sleep(0.4)
        os.kill(self.pid_(name), signal.SIGHUP)
        self.mark_(name)
        return self.times_(name, signal.SIGHUP) > before + 1

    def guarded(self, who):
        return guard_of(self.pid_(who)) != 0

    def processes(self, who, count):
        """It and all that descends from it."""
        return len(tree_of(self.pid_(who))) == int(count)

    # --- a number given anew

    def numbers_can_be_chosen(self):
        probe = os.posix_spawn('/bin/true', ['true'], {})
        os.waitpid(probe, 0)
        if LIB.stranger_with(probe) != probe:
            raise Skipped("a process's number can't be chosen here")
        os.kill(probe, signal.SIGKILL)
        os.waitpid(probe, 0)

    def stranger(self, pid):
        """A child of the test's that has this number."""
        must(LIB.stranger_with(int(pid)) != int(pid), f'a stranger with the number {pid}')

    def stranger_lives(self, pid):
        lives = os.waitpid(int(pid), os.WNOHANG)[0] == 0
        if lives:
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)
        return lives

    # --- a lock that is lost

    def victim(self, session, how):
        """A, behind the proxy P, with a command that works so. A busy machine may take the lock from it before."""
        self.proxy('P')
        os.environ['ZKLOCK_SESSION_TIMEOUT'] = session
        self.worked('A')
        for _ in range(10):
            self.begin_('A', f'run -v --servers $P $OWN -- work $A 0 {how}')
            begins = wait_until(lambda: self.works['A'].begun or self.jobs['A'].has_ended())
            if not begins or self.works['A'].begun:
                break
        must(not self.works['A'].begun, f'it does not begin: {self.jobs["A"].text()}')
        self.now()
        self.struck_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def next(self):
        """A contender that is nothing but a node, $next, until it has the lock."""
        self.contender(os.environ['OWN'], 'lock-', 'next')
        os.environ['next'] = os.environ['node']
        name = os.path.basename(os.environ['next'])
        must(not wait_until(lambda: self.children_(os.environ['OWN'])[0] == name), self.jobs['A'].text())

    def dies_in_time(self):
        """The next one gets the lock only after the command is dead, and the command died before the window's end, or later by no more
        than what the machine took from every process: from the guard, which then kills late, as well."""
        work = self.works['A']
        self.next()
        is_dead = is_gone(work.pid)
        self.late_ms = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.struck_ns) // 10**6 - LIB.lag_end_ms()
        must(not is_dead and self.late_ms <= END_MS - WINDOW_MS, 'another one has the lock, and the command lives: late')
        must(not wait_until(lambda: is_gone(work.pid)), 'the command lives')
        lived_ns = work.alive_ns - self.struck_ns
        must(max(0, lived_ns - (WINDOW_MS + self.late_ms) * 10**6), 'ns that it lived too long')
        self.delete(os.environ['next'])

    def spare(self):
        """The guard says by how much the command's end preceded the window's end. That may be negative by no more than what the machine
        took from every process."""
        said = re.search(r'the command has ended, (-?\d+) ms', self.jobs['A'].text())
        must(not said or int(said[1]) <= -self.late_ms, self.jobs['A'].text())

    def end_session(self):
        """As NoteSession of hooks.py has it."""
        noted = self.traps[-1]
        must(LIB.wire_expire_session(HOST, self.server.port(0), ctypes.c_int64(noted.session), noted.password, WAIT_MS), 'its end')

    # --- a standard error that nobody reads

    def pipe(self, name):
        """A full one; the variable is its file's name."""
        self.pipes[name] = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.environ[name] = f'/proc/{os.getpid()}/fd/{self.pipes[name][1]}'
        self.fill(name)

    def fill(self, name):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self.pipes[name][1], bytes(4096))

    def read_all(self, name):
        with contextlib.suppress(BlockingIOError):
            while os.read(self.pipes[name][0], 4096):
                pass

    def polls(self, who):
        """Its main thread waits for a descriptor."""
        number = proc_of(self.pid_(who), 'syscall').partition(' ')[0]
        return number.isdigit() and LIB.is_poll(int(number))

    # --- two machines

    def strike_jobs(self, runs):
        """Two machines start one job again and again, while zklock, its guard or the command is killed, or zklock is stopped for a
        while instead."""
        seed = os.environ.get('ZKL_TEST_SEED') or str(time.monotonic_ns() % 10**6)
        print(f'ZKL_TEST_SEED={seed}')
        dice, due, runs, strikes = random.Random(seed), [], int(runs), []  # due: when what is to be done
        self.worked('W')

        def turn():
            for name in MACHINES:
                if self.rests_(name) and self.works['W'].begun < runs:
                    due[:] = [task for task in due if task[1] != name] + self.start_job_(dice, name)
            for task in [task for task in due if task[0] <= LIB.net_now_ms() and not self.rests_(task[1])]:
                due.remove(task)
                due.extend(self.strike_(dice, *task[1:]))
                strikes.append(task)
            return self.works['W'].begun >= runs and all(self.rests_(name) for name in MACHINES)

        must(not wait_until(turn, runs * WAIT_MS // 10), f'{self.works["W"].begun} runs, and no end')
        print(f'{self.works["W"].begun} runs, {sum(not task[2] for task in strikes)} strikes, {self.works["W"].overlaps} overlaps')

    def start_job_(self, dice, name):
        """Perhaps it is struck."""
        if name in self.jobs:
            os.close(self.jobs[name].output)
        self.begin_(name, f'run -w 120 $OWN -- work $W {dice.randint(1, LONGEST_WORK_MS)} stubborn')
        struck = dice.randint(1, 100) <= STRIKE_PERCENT
        return [(LIB.net_now_ms() + dice.randint(1, LATEST_STRIKE_MS), name, False)] if struck else []

    def rests_(self, name):
        return name not in self.jobs or self.jobs[name].has_ended()

    def strike_(self, dice, name, goes_on):
        """What is due then: what was stopped goes on some time later."""
        zklock = self.jobs[name].pid
        command = self.works['W'].pid
        victim = dice.choice([zklock, guard_of(zklock), command * (not is_gone(command)), 0 - zklock])
        if goes_on:
            os.kill(zklock, signal.SIGCONT)
        elif victim < 0:
            os.kill(zklock, signal.SIGSTOP)
            return [(LIB.net_now_ms() + dice.randint(1, LONGEST_STOP_MS), name, True)]
        elif victim > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        return []

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""contention.py WORKER [OPTION...]: many processes and threads, one lock, one record, and a checker that believes none of them.

WORKER is the program that worker.c and fence.c are. Each of its threads locks, reads the record's counter, works a
moment, writes the counter plus one and unlocks. What happened stands in a journal that knows nothing of the lock
(witness.py), the record has a fence that refuses old tokens (fence.h), and in the end a checker plays the journal once
more (checker.py). --help lists the options."""
import os
import signal
import sys

sys.dont_write_bytecode = True

import checker
import picture
import report
import options
from crew import clock_us, complain, Crew, Failed
from mischief import Mischief
from progress import Progress
from witness import BadFile

TURN_S, TURN_MISCHIEF_S, STALL_US = 0.1, 0.002, 60000000


def supervise(crew, progress):
    """Until the time is over and no kind of mischief is missing, or all have made their counts; then until no process is
    stopped any more."""
    o, mischief = crew.options, Mischief(crew)
    updates, since_us = 0, clock_us()
    end_us = since_us + o.seconds * 1000000
    while True:
        over = crew.running() == 0 or (o.seconds and clock_us() >= end_us and not mischief.missing)
        if over and mischief.rest():
            return
        crew.turn(TURN_MISCHIEF_S if o.crash or o.pause else TURN_S)
        news = mischief.step()
        if news:
            progress.say(news)
        progress.step()
        if crew.updates() != updates:
            updates, since_us = crew.updates(), clock_us()
        if clock_us() - since_us > STALL_US:  # a run by count has no other end if the lock stands still
            raise Failed(f'no update for {STALL_US // 1000000} s: given up')


def judge(crew):
    try:
        well = report.verdict(crew.options, checker.run(crew.journal, crew.record), crew.odd)
        if crew.options.svg:
            picture.draw(crew.options, crew.journal)
    except BadFile as why:
        return complain(why)
    except OSError as error:
        return complain(f'{"--svg" if error.filename == crew.options.svg else "--summary"} {error.filename}: {error.strerror}')
    return well


def run(crew):
    """True if all is well. Even of a run that went wrong the verdict is worth to be known."""
    well = True
    try:
        crew.start()
        progress = Progress(crew)
        try:
            supervise(crew, progress)
        finally:
            progress.end()
        crew.stop()
    except Failed as why:
        well = complain(why) if why.args else False
    finally:
        crew.kill()  # nobody is left, or something went wrong
    return crew.started and not crew.signal and judge(crew) and well


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith('-'):
        sys.exit(__doc__.partition(':')[0])
    o = options.parse(sys.argv[2:])
    if not o.json:
        report.head(o)
    try:
        crew = Crew(sys.argv[1], o)
        well = run(crew)
    except (Failed, OSError) as why:
        return 0 if complain(why) else 1
    if crew.signal:
        complain(f'ended by signal {crew.signal}')
        signal.signal(crew.signal, signal.SIG_DFL)
        os.kill(os.getpid(), crew.signal)
    return 0 if well else 1


if __name__ == '__main__':
    sys.exit(main())

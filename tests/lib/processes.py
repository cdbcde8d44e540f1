# SPDX-License-Identifier: Apache-2.0
"""Programs that a script runs, several at a time, each with a group of its own, so that they end with the script."""
import argparse
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import threading

live = set()  # processes
stopping = threading.Event()


class Stopped(Exception):
    """This script was told to end."""


def send(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def stop(*_):
    stopping.set()
    for process in list(live):
        send(process, signal.SIGTERM)


def run(command, seconds, **options):
    """Its exit status (None: it did not end in time), what it said, and its seconds of the processor."""
    if stopping.is_set():
        raise Stopped
    late = []
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", start_new_session=True, **options)
    timer = threading.Timer(seconds, lambda: (late.append(seconds), send(process, signal.SIGKILL)))
    live.add(process)
    timer.start()
    with process.stdout:
        output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    live.discard(process)
    process.returncode = os.waitstatus_to_exitcode(status)
    if stopping.is_set():
        raise Stopped
    return None if late else process.returncode, output, usage.ru_utime + usage.ru_stime


def arguments(description, known, **flags):
    """Options without a value, and names of some of what is known; none: all."""
    parser = argparse.ArgumentParser(description=description)
    for name, sentence in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=sentence)
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(known):
        parser.error("there is no " + ", ".join(sorted(unknown)))
    return chosen


def judge(what, items, look_at):
    """As many at once as there are processors: whether each is as expected, and what there is to say. The exit status."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, contextlib.suppress(Stopped):
        for good, text in pool.map(look_at, items):
            passed += good
            print(text, flush=True)
    print(f"{what}: {passed} passed, {len(items) - passed} failed")
    return 1 if passed < len(items) else 0

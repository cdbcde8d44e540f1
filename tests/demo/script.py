# SPDX-License-Identifier: Apache-2.0
"""script.py: examples/demo.sh says at its start how long it will take, and shows what its options ask for.

Goal: nobody waits without knowing how long. Method: the first line that it writes, on a pseudo-terminal, on a pipe, and
beside JSON on the standard error; and the acts' seconds against what the script says of them."""
import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import terminal

ROOT = pathlib.Path(__file__).parents[2]
DEMO = ['sh', str(ROOT / 'examples/demo.sh')]
SHORT = ['--processes', '2', '--threads', '2', '--seconds', '2']
SAID = re.compile(r'this takes (about \d+ s to build, then )?as long as the options say\n')


def check(condition, text):
    if not condition:
        sys.exit(f'demo script: {text}')


def demo(*args):
    run = subprocess.run([*DEMO, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    check(run.returncode == 0, f'{args} failed: {run.stdout}{run.stderr}')
    return run


def on_terminal(*args):
    status, text = terminal.run([*DEMO, *args])
    check(status == 0, f'on a terminal {args} failed: {text}')
    return text.replace('\r\n', '\n')


text = on_terminal(*SHORT)
check(SAID.match(text), f'on a terminal it does not begin with its time: {text}')
check(re.search(r'^contention: processes=2 .*lost_updates=0', text, re.MULTILINE), f'no verdict on a terminal: {text}')

said = demo(*SHORT)
check(SAID.match(said.stdout), f'on a pipe it does not begin with its time: {said.stdout}')
check('to build' not in said.stdout.split('\n')[0], f'it is built, and yet: {said.stdout}')
check(re.search(r'^contention: processes=2 .*lost_updates=0', said.stdout, re.MULTILINE), f'no verdict: {said.stdout}')

said = demo('--json', *SHORT)
check(SAID.match(said.stderr), f'beside JSON it does not begin with its time: {said.stderr}')
check(json.loads(said.stdout)['lost_updates'] == 0, f'not JSON alone: {said.stdout}')

acts = re.findall(r'--seconds (\d+)', (ROOT / 'examples/acts.sh').read_text(encoding='utf-8'))
announced = re.search(r'about (\d+) s for (\w+) acts', (ROOT / 'examples/demo.sh').read_text(encoding='utf-8'))
total, most = sum(map(int, acts)), int(announced[1])
check(len(acts) == 5 and announced[2] == 'five', f'the script says {announced[0]}, but there are {len(acts)}')
check(total < most <= total + 10, f'the script says {announced[0]}, but they take {total} s without start and end')

# SPDX-License-Identifier: Apache-2.0
"""demo.py json|picture|progress CONTENTION...: what the demo gives to programs and to eyes, on the servers in ZKLOCK_SERVERS.

Goal: JSON, picture and live progress say what happened. Method: the same run told twice is compared: JSON with the
plain final line, the picture's bars and marks with JSON; progress on a pseudo-terminal and on a pipe."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True

import terminal

PART, *CONTENTION = sys.argv[1:]
SVG = '{http://www.w3.org/2000/svg}'
BAR = re.compile(r'M(\d+) \d+H(\d+)v\d+H\1z')


def check(condition, text):
    if not condition:
        sys.exit(f'demo {PART}: {text}')


def contention(*args, status=0):
    """What a run prints, with a bound."""
    run = subprocess.run([*CONTENTION, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)
    check(run.returncode == status, f'{args} ended with {run.returncode}, not {status}: {run.stdout}{run.stderr}')
    return run


def told(*args, status=0):
    return json.loads(contention('--json', *args, status=status).stdout)


# --- JSON ------------------------------------------------------------------------------------------------------------

def agrees_with_final_line(folder, *args):
    summary = folder / 'summary'
    summary.unlink(missing_ok=True)
    said = told('--summary', summary, *args)
    line = summary.read_text(encoding='utf-8')
    plain = dict(re.findall(r'(\w+)=([-\d.]+)', line))
    check(len(plain) == 7, f'the final line has not seven numbers: {line}')
    for name, number in plain.items():
        check(float(number) == said[name], f'{name} is {said[name]} in JSON, {number} in the final line')
    check(sum(each['acquisitions'] for each in said['each_process']) == said['acquisitions'], 'the sum is not right')
    check(len(said['each_process']) == said['processes'], 'there is not one entry for each process')
    return said


def test_json(folder):
    said = agrees_with_final_line(folder, '--processes', '2', '--threads', '3', '--count', '20')
    check(said['acquisitions'] == 120 and said['updates'] == 120, f'not 2 x 3 x 20 acquisitions: {said}')
    check(said['lock'] and said['faults'] == [], f'no good run: {said}')
    said = agrees_with_final_line(folder, '--path', '/demo/a"quoted\\path', '--seconds', '1')
    check(said['path'] == '/demo/a"quoted\\path', f'the path is {said["path"]}')
    said = agrees_with_final_line(folder, '--no-lock', '--seconds', '1')
    check(not said['lock'] and said['lost_updates'] > 0, f'without the lock: {said}')


# --- picture ---------------------------------------------------------------------------------------------------------

class Picture:
    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        self.rows = self.root.findall(f"{SVG}g[@class='row']")
        self.holds = sorted(bar for row in self.rows for bar in self.bars(row, 'holding'))
        self.overlaps = sum(b[0] < a[1] for a, b in zip(self.holds, self.holds[1:]))

    @staticmethod
    def bars(row, kind):
        """(from, to) of each, in microseconds."""
        path = row.find(f".//{SVG}path[@class='{kind}']").get('d')
        found = [(int(a), int(b)) for a, b in BAR.findall(path)]
        check(path.count('M') == len(found), f'a bar is not as it should be: {path[:200]}')
        return found

    def marks(self, kind):
        defined = self.root.findall(f".//{SVG}defs/{SVG}g[@id='{kind}']")
        check(len(defined) == 1, f'the mark {kind} is not defined')
        return sum(use.get('href') == f'#{kind}' for row in self.rows for use in row.iter(f'{SVG}use'))

    def legend(self):
        return ' '.join(self.root.find(f"{SVG}g[@id='legend']").itertext())


def has_waits_before_holds(picture):
    for row in picture.rows:
        ends = {to for _, to in Picture.bars(row, 'waiting')}
        for start, _ in Picture.bars(row, 'holding'):
            check(start in ends, f'no wait ends at {start} us, where a hold begins')


def test_picture(folder):
    path = folder / 'picture.svg'
    said = told('--crash', '--pause', '--processes', '3', '--work', '20', '--seconds', '8', '--svg', path)
    picture = Picture(path)
    names = [row.find(f'{SVG}text').text for row in picture.rows]
    check(names == [f'process {p} thread {t}' for p in range(3) for t in range(2)], f'the rows are {names}')
    check(picture.overlaps == 0, f'{picture.overlaps} holds overlap')
    fewest = said['acquisitions'] - said['refused_stale']
    check(0 < fewest <= len(picture.holds) <= said['acquisitions'], f'{len(picture.holds)} holds: {said}')
    has_waits_before_holds(picture)
    check(said['kills'] and picture.marks('crash') == 2 * said['kills'], f'{picture.marks("crash")} crashes: {said}')
    check(said['pauses'] and picture.marks('pause') == 2 * said['pauses'], f'{picture.marks("pause")} pauses: {said}')
    check(picture.marks('refused') == said['refused_stale'], f'{picture.marks("refused")} refused: {said}')
    for text in 'waits', 'holds the lock', 'stopped', 'killed', 'refused':
        check(text in picture.legend(), f'no {text} in the legend: {picture.legend()}')

    # That this test can see an overlap.
    said = told('--no-lock', '--seconds', '2', '--svg', path)
    check(said['overlaps'] > 0 and Picture(path).overlaps > 0, f'without the lock nothing overlaps: {said}')
    told('--path', '/demo/<&>', '--count', '3', '--svg', path)
    check('/demo/<&>' in ''.join(Picture(path).root.itertext()), 'the path is not in the title')
    run = contention('--count', '1', '--svg', folder / 'none/picture.svg', status=1)
    check(run.stderr.count('\n') == 1 and '--svg' in run.stderr, f'not one line: {run.stderr}')


# --- progress --------------------------------------------------------------------------------------------------------

def on_terminal(*args, **environment):
    """All that a run writes to a pseudo-terminal."""
    status, text = terminal.run([*CONTENTION, *args], **environment)
    check(status == 0, f'{args} failed: {text}')
    return text


def test_progress(folder):
    text = on_terminal('--processes', '2', '--seconds', '3', '--work', '5')  # long enough to be seen with it
    drawn, _, rest = text.rpartition('\033[J')
    check(re.search(r'\d s of 3 .*\d acquisitions, \d+ per second, held by', re.sub('\033\\[\\d*m', '', drawn)), text)
    check(len(re.findall(r'process  1 #', drawn)) > 5 and 'holds' in drawn, f'no row for each process: {text}')
    check('\033[32m' in drawn, 'no colours')
    check(re.search(r'^contention: processes=2', rest, re.MULTILINE), f'no verdict: {rest}')
    text = on_terminal('--processes', '2', '--seconds', '1', NO_COLOR='1')
    check('\033[J' in text and not re.search(r'\033\[\d*m', text), f'NO_COLOR was not heard: {text}')
    text = on_terminal('--processes', '2', '--seconds', '1', TERM='dumb')
    check('\033' not in text and 'per second' not in text, f'drawn on a dumb terminal: {text}')
    run = contention('--processes', '2', '--seconds', '1')
    check('\033' not in run.stdout + run.stderr and 'per second' not in run.stdout, f'drawn on a pipe: {run.stdout}')


with tempfile.TemporaryDirectory() as name:
    {'json': test_json, 'picture': test_picture, 'progress': test_progress}[PART](pathlib.Path(name))

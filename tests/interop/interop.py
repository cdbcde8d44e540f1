# SPDX-License-Identifier: Apache-2.0
"""What the tests of this suite share: a peer for each language, and a race among them.

The peers are c (zklock), j (Java, Curator), k (Python, Kazoo) and g (Go, go-zookeeper, with a mutex alone and without a
bound). Java and Go are compiled at the first start, into the build folder. Go need not be there; without the others all
tests are skipped."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / 'crowd'), str(HERE.parent / 'bench')]

import conductor
from conductor import Row, Skipped, check, wait  # for the tests, too
from peers import JARS, Places

CROWD = HERE.parent / 'crowd'
BUILT = pathlib.Path(sys.argv[1]).resolve() / 'tests/crowd'
CLASSES, GO = BUILT / 'classes', BUILT / 'go-peer'
PYTHON = Places(HERE, BUILT, '').python
CLASS_PATH = ':'.join('/usr/share/java/' + jar for jar in JARS)
LANGUAGES = 'cjkg'
WORKERS = 2  # of each side
ROUNDS = conductor.length(2000, 500)  # of each side

commands = {}  # by language; those that take part, once they were compiled


# --- languages --------------------------------------------------------------------------------------------------------------

def missing():
    """What is not installed, with its package, or None."""
    if not shutil.which('javac'):
        return 'there is no javac in PATH: apt-get install default-jdk-headless'
    if not os.access('/usr/share/java/curator-recipes.jar', os.R_OK):
        return 'there is no Curator: apt-get install libcurator-recipes-java'
    return None if PYTHON else 'there is no Kazoo: apt-get install python3-kazoo'


def compile_java():
    source, made = CROWD / 'Peer.java', CLASSES / 'Peer.class'
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        done = subprocess.run(['javac', '-J-Xmx128m', '-J-XX:+UseSerialGC', '-J-XX:-UsePerfData', '-Xlint:all,-path', '-cp',
                               CLASS_PATH, '-d', CLASSES, source], check=False)
        check(done.returncode == 0, f'javac refuses {source}')


def compile_go():
    """True where Go and go-zookeeper are installed."""
    source = CROWD / 'peer.go'
    done = subprocess.run(['sh', CROWD.parent / 'lib/go.sh', source, GO], check=False)
    check(done.returncode in (0, conductor.SKIPPED), f'go refuses {source}')
    return done.returncode == 0


def start(crowd):
    """All that do not run, with a new journal."""
    if not commands:
        compile_java()
        commands.update({
            'c': [BUILT / 'peer'],
            'j': ['java', '-Xmx96m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData',
                  '-Djava.io.tmpdir=.', '-XX:ErrorFile=hs_err.log', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
                  '-cp', f'{CLASSES}:{CLASS_PATH}', 'Peer'],
            'k': [PYTHON, '-B', CROWD / 'peer.py']})
        if compile_go():
            commands['g'] = [GO]
    journal = crowd.open_journal(LANGUAGES)
    for language, command in commands.items():
        crowd.start(language, [*command, crowd.servers, journal])
    crowd.await_all()


def need_go():
    if 'g' not in commands:
        raise Skipped('there is no go-zookeeper: apt-get install golang-go and golang-github-go-zookeeper-zk-dev, or '
                      'golang-github-samuel-go-zookeeper-dev')


def release(crowd, language):
    """(5, 4) for 5.4.0."""
    return tuple(map(int, re.match(r'ok (\d+)\.(\d+)', crowd.ask(f'{language}1 version')).groups()))


# --- a race -----------------------------------------------------------------------------------------------------------------

def run_race(crowd, sides, rounds):
    """Everybody makes a handle and enters once, so that the run begins with all connected, compiled and loaded; then all run
    at the same time. Ends with the first rule that is broken: None, or that rule."""
    for language, row in sides:
        if language == 'g':
            need_go()
        crowd.add(language, row, WORKERS)
    for each in 1, rounds // WORKERS:
        crowd.go(each)
        fault = crowd.judge()
        if fault:
            return fault
    crowd.drop()
    return None


def split(sides):
    """ "c mutex /path names=kazoo": language, and a row."""
    return [(side[0], Row(side[2:])) for side in sides]


def print_figures(place, seconds):
    each = ', '.join(f'{language} {place.visits_of[language]}' for language in LANGUAGES)
    print(f'{place.path}: {place.visits} visits ({each}) in {seconds:.1f} s, {place.share():.1f} % of the hand-offs between '
          f'languages, at most {place.crowd_max} inside, {place.mixed} visits beside another language', flush=True)


def check_place(place, sides, rounds, together, share_min):
    check(not place.inside, f'{place.path}: {place.inside} are still inside')
    here = [(language, row) for language, row in sides if place.path in row.places]
    for language, row in here:
        due = (rounds + WORKERS) * row.number('count', 1)  # one that takes several permits comes in several times
        check(place.visits_of[language] == due, f'{place.path}: {place.visits_of[language]} visits of {language}, not {due}')
    check(len(here) < 2 or place.share() >= share_min,
          f'{place.path}: {place.share():.1f} % of the hand-offs between languages, {share_min} are due')
    check(place.crowd_max >= together, f'{place.path}: at most {place.crowd_max} inside, not {together}')
    check(together < 2 or place.mixed > 0, f'{place.path}: nobody met another language')


def race(*sides, together=1, rounds=ROUNDS, share_min=30):
    """A test: two or three languages on one lock, of which so many must have been seen inside at a time, and share_min percent
    of the visits follow one of another language. No rule may be broken, and no node left behind."""
    sides = split(sides)

    def run(crowd):
        begun = time.monotonic()
        fault = run_race(crowd, sides, rounds)
        check(not fault, fault)
        seconds = time.monotonic() - begun
        for place in crowd.journal.places.values():
            print_figures(place, seconds)
            check_place(place, sides, rounds, together, share_min)
            crowd.play(f'{place.path} is free')
    return run


def lost_race(*sides):
    """A test: somebody must be seen beside another one."""
    def run(crowd):
        fault = run_race(crowd, split(sides), ROUNDS)
        print(f'seen: {fault}', flush=True)
        check(fault and ' comes in beside ' in fault, f'not seen, but: {fault}')
        crowd.kill_all()  # they are in the middle of it
    return run


# --- a program --------------------------------------------------------------------------------------------------------------

def run(tests):
    """Those of a table, or all of a module's functions that begin so."""
    why = missing()
    if why:
        print(f'skipped: {why}')
        return conductor.SKIPPED
    tests = {name: test for name, test in tests.items() if name.startswith('test_')}
    return conductor.run_tests(tests, BUILT / 'host', start)

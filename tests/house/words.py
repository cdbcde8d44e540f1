#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The English of pages, headers and comments keeps few of the habits that slow a reader down.

Goal: a reader finds the words of other lock libraries, and a subject in each sentence. Method: regular expressions
count the habits of HABITS in three sets of texts. "pages" are README.md, docs, the man pages and the public headers.
"sources" are the comments and the sentences (strings with a blank) of src, "tests" those of the C code of tests and
examples. The test fails if a habit occurs more than
a quarter as often as in commit START, whose counts are in BASELINE. An expression also matches some innocent uses.
It matched them in START, too.

words.py ROOT                  the test
words.py ROOT --where          every place
words.py ROOT --measure COMMIT the counts of a commit, as BASELINE has them; this needs git"""
import io
import pathlib
import re
import subprocess
import sys
import tarfile

START = 'a861a6c'
BASELINE = {
    'pages': {'who': 108, 'told': 214, 'go': 170, 'at once': 94, 'let go': 61, 'is to': 60, 'so many': 30, 'but for': 32,
              'mend': 17},
    'sources': {'who': 93, 'told': 172, 'go': 159, 'at once': 27, 'let go': 24, 'is to': 109, 'so many': 28,
                'but for': 18, 'mend': 0},
    'tests': {'who': 190, 'told': 357, 'go': 262, 'at once': 129, 'let go': 52, 'is to': 83, 'so many': 70, 'but for': 18,
              'mend': 3},
}

# Words behind which "who" asks ("shows who holds"), or has a noun of its own ("those who wait").
BEFORE_WHO = (
    'ask asks asked asking show shows showed see sees seen know knows known say says decide decides print prints draw '
    'draws drew list lists find finds measures about '
    'those all one ones people somebody anybody everybody nobody operators readers users callers clients others '
    'contributors maintainers')
HABITS = {
    # "of who waits" for "of the waiting client". Headings that ask are no such relatives.
    'who': r'(?<!-)\bwho\b(?!-)(?! (?:excludes|may call|logs in|watches|keeps|else|you)\b)(?!\.)(?![^.;:]{0,60}\?)',
    'told': r'\b(?:tell|tells|told|telling)\b',
    # For "is removed". Innocent: "go on", "goes wrong", "come and go", the language Go, "go-zookeeper".
    'go': r'(?<!let )(?<!lets )(?<!letting )(?<!in one )(?<!come and )(?<!comes and )(?<!comes or )\b(?:go|goes|gone|went)\b'
          r'(?!-| (?:on|out|wrong|well|back|down|past|up|into|over|through|together|further)\b)',
    'at once': r'\bat once\b',
    'let go': r'\b(?:let|lets|letting)(?: \w+)? go\b',
    # For "must".
    'is to': r'\b(?:is|are|was|were) (?:not )?to [a-z]',
    'so many': r'\bso (?:many|long)\b',
    'but for': r'\bbut for\b',
    'mend': r'(?<!names=)\bmend(?:s|ed|ing)?\b',
}
# Fewer are a fault of this script.
FILES_MIN = {'pages': 60, 'sources': 150, 'tests': 200}
CODE = ('tests', 'examples')
CASE_COUNTS = {'go'}
ASKED = r'\bwho holds(?: \w+){0,2},? (?:and )?who waits\b'


def places(habit, text):
    if habit == 'who':
        text = re.sub(ASKED, lambda found: '_' * len(found[0]), text, flags=re.IGNORECASE)
    for found in re.finditer(HABITS[habit], text, 0 if habit in CASE_COUNTS else re.IGNORECASE):
        last = re.search(r'(\w+),? $', text[max(0, found.start() - 40):found.start()])
        if habit != 'who' or not last or last[1].lower() not in BEFORE_WHO.split():
            yield found.start()


def flat(text):
    """In one line, without what comments and man pages have in front of their lines."""
    text = re.sub(r'^[ \t]*(?:/\*+|\*/?(?= |$)|//|\.\\"|\.[A-Z][a-z]\b)', ' ', text, flags=re.MULTILINE)
    return re.sub(r'\s+', ' ', text)


def said(code):
    """The comments of C code, and its strings with a blank; a string's parts are joined."""
    found = re.findall(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"(?:\s+"(?:\\.|[^"\\\n])*")*', code, re.DOTALL)
    return '\n\n'.join(re.sub(r'"\s+"', '', text) for text in found if text[0] == '/' or ' ' in text)


def texts(files):
    """Pairs of a path's set and its words, of pairs of a path and its text."""
    for path, text in files:
        if re.fullmatch(r'README\.md|docs/.*\.(?:md|[1-9])', path):
            yield 'pages', path, flat(text)
        elif re.fullmatch(r'include/zklock/\w+\.(?:h|hpp|h\.in)', path):
            yield 'pages', path, flat(said(text))
        elif re.fullmatch(r'src/.*\.[ch]', path):
            yield 'sources', path, flat(said(text))
        elif re.fullmatch(r'(?:tests|examples)/.*\.(?:[ch]|cpp)', path):
            yield 'tests', path, flat(said(text))


def of_folder(root):
    root = pathlib.Path(root)
    for top in ('README.md', 'docs', 'include', 'src', 'tests', 'examples'):
        for path in [root / top] if (root / top).is_file() else sorted((root / top).rglob('*')):
            if path.is_file() and (top not in CODE or path.suffix in ('.c', '.h', '.cpp')) and path.suffix != '.svg':
                yield path.relative_to(root).as_posix(), path.read_text(encoding='utf-8')


def of_commit(root, commit):
    packed = subprocess.run(['git', '-C', root, 'archive', commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for member in tar:
            if member.isfile() and re.match(r'README\.md|docs/.*(?<!svg)$|include/|src/|(?:tests|examples)/.*\.(?:[ch]|cpp)$', member.name):
                yield member.name, tar.extractfile(member).read().decode()


def counted(files):
    counts = {kind: dict.fromkeys(HABITS, 0) for kind in FILES_MIN}
    read = dict.fromkeys(FILES_MIN, 0)
    for kind, _, text in texts(files):
        read[kind] += 1
        for habit in HABITS:
            counts[kind][habit] += sum(1 for _ in places(habit, text))
    if any(read[kind] < least for kind, least in FILES_MIN.items()):
        sys.exit(f'only these numbers of files were found: {read}')
    return counts


def show_places(files):
    for _, path, text in texts(files):
        for habit in HABITS:
            for at in places(habit, text):
                print(f'{path}: {habit}: {text[max(0, at - 50):at + 40]}')


def main(root, option='', commit=''):
    if option == '--measure':
        for kind, counts in counted(of_commit(root, commit)).items():
            print(f'    {kind!r}: {counts},')
        return 0
    if option == '--where':
        show_places(of_folder(root))
        return 0
    now, wrong = counted(of_folder(root)), 0
    for kind, counts in now.items():
        for habit, count in counts.items():
            before = BASELINE[kind][habit]
            most = before // 4
            wrong += count > most
            print(f'{kind:8} {habit:8} {count:4} of {before:4} in {START}, at most {most}{" - too many" * (count > most)}')
    if wrong:
        print('words.py ROOT --where lists the places; CONTRIBUTING.md has other words for them')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py ROOT: the pages of docs/ can be read and found.

Goal: a reader knows at once whether a page is for them, finds every page from docs/README.md, and no link is dead.
Method: of each page its length, its first paragraph, its widths (a table may be wider, code has the width of code),
and every relative link with its anchor, which GitHub makes of a heading. README.md of the sources has its widths
and links checked, too."""
import pathlib
import re
import sys

import rules

LINES_MAX = 300
WIDTH_MAX, TABLE_MAX, CODE_MAX = 80, 160, 100
OPENING = 'This page is for '
CODE = {'c', 'cpp', 'java', 'python', 'diff'}
LIST_ITEM = re.compile(r' *([-*]|\d+\.) ')
ALONE = re.compile(r' *([-*] )?(\S+|!?\[[^\]]*\]\([^)]*\)\W*|`[^`]*`\W*)')
LINK = re.compile(r'!?\[[^\]]*\]\(([^)\s]+)\)')
HEADING = re.compile(r'#+ (.*)')
NO_OPENING = {'README.md'}


def lines_outside_code(text):
    """(number, line) of what is no code block."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith('```'):
            inside = not inside
        elif not inside:
            yield number, line


def anchors(text):
    """As GitHub makes them: small letters, blanks as dashes, marks left out; a second one of a name gets a number."""
    found = set()
    for _, line in lines_outside_code(text):
        heading = HEADING.fullmatch(line)
        if heading:
            name = re.sub(r'[^\w\- ]', '', LINK.sub(lambda m: m[0][1:m[0].index(']')], heading[1]).lower())
            name, count = name.strip().replace(' ', '-'), 0
            while (f'{name}-{count}' if count else name) in found:
                count += 1
            found.add(f'{name}-{count}' if count else name)
    return found


def first_paragraph(text):
    for part in re.split(r'\n\s*\n', text):
        part = part.strip()
        if part and not part.startswith(('#', '<!--', '![', '[![')):
            return part
    return ''


def limit_of(line, language):
    """Commands and what they print have the width that they have."""
    if language is not None:
        return CODE_MAX if language in CODE else sys.maxsize
    if line.startswith(('    ', '<!--')) and not LIST_ITEM.match(line):
        return sys.maxsize
    return TABLE_MAX if line.startswith('|') else WIDTH_MAX


def wide(text):
    """Lines that are too wide. One that is a single word, link or span of code can't be broken."""
    language = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith('```'):
            language = line[3:] if language is None else None
        limit = limit_of(line, language)
        if len(line) > limit and (language or line.startswith('|') or not ALONE.fullmatch(line)):
            yield f'{number}: {len(line)} columns, and {limit} are the most'


def targets(path, text):
    """(number of the line, file, anchor) of each relative link. Links are read over the end of a line."""
    kept = '\n'.join('' if line.startswith('    ') else re.sub(r'`[^`\n]*`', '', line) for line in blanked(text))
    for match in LINK.finditer(kept):
        link = match[1]
        if not re.match(r'\w+:', link):
            name, _, anchor = link.partition('#')
            yield kept.count('\n', 0, match.start()) + 1, (path.parent / name if name else path).resolve(), anchor


def blanked(text):
    """All lines, those of code blocks empty."""
    there = dict(lines_outside_code(text))
    return [there.get(number, '') for number in range(1, text.count('\n') + 2)]


def dead(path, text, texts):
    for number, file, anchor in targets(path, text):
        if not file.exists():
            yield f'{number}: there is no {file.name}'
        elif anchor and anchor not in anchors(texts.get(file) or file.read_text(encoding='utf-8')):
            yield f'{number}: {file.name} has no #{anchor}'


def unreached(start, texts):
    """Pages that no way of links leads to."""
    seen, waiting = set(), [start]
    while waiting:
        page = waiting.pop()
        if page not in seen and page in texts:
            seen.add(page)
            waiting += [file for _, file, _ in targets(page, texts[page])]
    return set(texts) - seen


def problems_of(name, path, text, texts):
    if text.count('\n') > LINES_MAX:
        yield f'{name} has {text.count(chr(10))} lines, and {LINES_MAX} are the most'
    if name not in NO_OPENING and not first_paragraph(text).startswith(OPENING):
        yield f'{name} does not open with its readers ("{OPENING}...")'
    yield from (f'{name}:{problem}' for problem in wide(text))
    yield from (f'{name}:{problem}' for problem in dead(path, text, texts))


def main(root):
    root = pathlib.Path(root).resolve()
    paths = sorted((root / 'docs').glob('*.md')) + sorted((root / 'docs').glob('*/*.md'))
    texts = {path: path.read_text(encoding='utf-8') for path in paths}
    problems = [f'{path.relative_to(root)} is not reached from docs/README.md'
                for path in sorted(unreached(root / 'docs/README.md', texts))]
    for path in [root / 'README.md', *paths]:
        text = path.read_text(encoding='utf-8')
        problems += problems_of(str(path.relative_to(root)), path, text, texts)
    return problems, f'{len(paths)} pages', len(paths) >= 20


rules.judge(main, *sys.argv[1:])

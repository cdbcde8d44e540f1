# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the documentation: Markdown's and mdoc's, as a list of Block."""
import dataclasses
import re

FENCE = re.compile(r'```(\S*)$')
CRONTAB = re.compile(r'([\d*,/-]+ +){5}\w')
CONF = re.compile(r'(#.*\n|\w+ = .*\n)+')
LIST_ITEM = re.compile(r'\s*([-*]|\d+\.) ')


@dataclasses.dataclass
class Block:
    page: str      # its path in the sources
    line: int      # of its first line, from 1
    language: str  # "sh" of an indented block; in a manual page what a display looks like
    text: str      # with a newline at the end of each line
    name: str      # the file that the line before it names in backticks, alone and with a colon; or ""

    def where(self):
        return f'{self.page}:{self.line}'

    def first_line(self):
        return self.text.split('\n', 1)[0]


def unindent(lines):
    return ''.join(line[4:] + '\n' for line in lines)


def markdown(page, text):
    """Fenced blocks, and those that are indented by four blanks."""
    lines, at, before = text.splitlines(), 0, ''
    while at < len(lines):
        fence, begin = FENCE.match(lines[at]), at
        if fence:
            while lines[at + 1] != '```':
                at += 1
            name = re.fullmatch(r'(?:.* )?`([\w.-]+)`:', before)
            yield Block(page, begin + 2, fence[1], ''.join(line + '\n' for line in lines[begin + 1:at + 1]),
                        name[1] if name else '')
            at += 1
        elif lines[at].startswith('    ') and not LIST_ITEM.match(before) and (at == 0 or not lines[at - 1]):
            while at + 1 < len(lines) and lines[at + 1].startswith('    '):
                at += 1
            yield Block(page, begin + 1, 'sh', unindent(lines[begin:at + 1]), '')
        if lines[at].strip():
            before = lines[at]
        at += 1


def mdoc(page, text):
    """Displays and single display lines, but for those of a SYNOPSIS, which tests/house/man.py compares with the headers."""
    command = page.endswith('.1')
    lines, at, section = text.splitlines(), 0, ''
    while at < len(lines):
        line, begin = lines[at], at
        section = line[4:] if line.startswith('.Sh ') else section
        if line.startswith('.Bd -literal') and section != 'SYNOPSIS':
            while lines[at + 1] != '.Ed':
                at += 1
            yield from display(page, begin + 2, lines[begin + 1:at + 1], command)
        elif line.startswith('.Dl '):
            yield from display(page, begin + 1, [line[4:]], command)
        at += 1


def display(page, line, lines, command):
    text = ''.join(line + '\n' for line in lines).replace('\\e', '\\').replace('\\&', '').replace('\\-', '-')
    language = 'c'
    if command and '#include' not in text:
        language = 'crontab' if CRONTAB.match(text) else 'conf' if CONF.fullmatch(text) else 'sh'
    yield Block(page, line, language, text, '')


def header(page, text):
    """What stands behind an empty line, indented by four blanks, in the comments of a public header."""
    lines, at = text.splitlines(), 0
    while at < len(lines):
        begin = at
        if lines[at].startswith(' *     ') and lines[at - 1] == ' *':
            while lines[at + 1].startswith(' *     ') or (lines[at + 1] == ' *' and lines[at + 2].startswith(' *     ')):
                at += 1
            yield Block(page, begin + 1, 'c', ''.join(line[7:] + '\n' for line in lines[begin:at + 1]), '')
        at += 1


def collect(root):
    """All blocks, page by page."""
    blocks = []
    for path in [root / 'README.md', *sorted((root / 'docs').glob('*.md')), *sorted((root / 'docs').glob('evidence/*.md'))]:
        blocks += markdown(str(path.relative_to(root)), path.read_text(encoding='utf-8'))
    for path in sorted((root / 'docs/man').glob('*.[137]')):
        blocks += mdoc(str(path.relative_to(root)), path.read_text(encoding='utf-8'))
    for path in sorted((root / 'include/zklock').glob('*.h')):
        blocks += header(str(path.relative_to(root)), path.read_text(encoding='utf-8'))
    return blocks

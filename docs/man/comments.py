# SPDX-License-Identifier: Apache-2.0
"""The public headers as pages of the manual. What a comment looks like says what it is:

  /* --- acquire a mutex --- */    begins a page, up to the next such line. "acquire a mutex" is the line of its NAME. The
                                   page has the name of its first call. The same title in another header continues it
  a comment                        is about what is declared behind it, up to an empty line; with an empty line behind it
                                   about the page. A call without a comment is on no page
  a line with room for one more    ends a paragraph: the next word would have fit into COLUMNS
  four blanks and code             is an example. The opening of a header has one for pages without their own, and is on all
                                   pages with something of the header up to their first call
  "- "                             begins an item of a list
  ZKL_EBUSY: held; ZKL_EFORK, ZKL_EINVAL (count).
                                   A paragraph that begins with a code, or 0, lists what is returned; some words and a
                                   colon may be in front. error.h explains the codes that nothing is said about"""
import pathlib
import re
import sys

COLUMNS = 100
SECTION = re.compile(r'^/\* --- (.*?) -+ \*/\n', re.M)
PART = re.compile(r'''(?P<comment>^/\*.*?\*/\n) | (?P<call>^ZKL_API\s[^;]*;\n) | (?P<inline>^static\ inline\s[^{]*\{.*?^\}\n)
    | (?P<type>^(?:struct|enum)\s\w+\s\{.*?^\};\n) | (?P<callback>^typedef\s[^;]*;\n) | (?P<blank>^\n)
    | (?P<macro>^\#define\s\w+\((?:[^\n]*\\\n)*[^\n]*\n) | (?P<constant>^\#define\s(?:[^\n]*\\\n)*[^\n]*\n)
    | [^\n]*\n''', re.M | re.S | re.X)
CALL = re.compile(r'(?:(?:ZKL_API|static inline)\s+([^(]*?)|#define )(\w+)\(([^)]*)\)', re.S)
FIELD = re.compile(r'''^(?P<comment>\ {4}/\*.*?\*/)\n(?P<blank>\n)?
    | ^\ {4}(?P<code>[^\s/][^;,\n/]*(?:,\ \*?\w+)*)[;,]?\ *(?P<behind>/\*.*?\*/)?\n''', re.M | re.S | re.X)
CODES = r'(?:0|ZKL_E[A-Z]+)(?:(?:,| and|, and| or|, or) ZKL_E[A-Z]+)*(?=[:;,.]| \()'
RETURNS = re.compile(rf'(?:(?P<label>[A-Z][^.:;]*): )?(?={CODES})')
NEXT_CODE = re.compile(rf'[.;] (?:and )?(?=(?:[A-Z][^.:;]*: )?{CODES})')


def paragraphs(comment):
    """A comment as pairs of "text", "item" or "code", and the words."""
    found, room, kind = [], 0, ''
    for line in comment.rstrip('\n').split('\n'):
        whole = re.sub(r'^\s*(?:/\*|\*(?!/)) ?', '', line)
        text = re.sub(r'\s*\*/$', '', whole)
        if not text.strip():
            room = None
            continue
        first = re.match(r'\s*(\S+(?: \*/$)?)', whole)[1]
        if text.startswith('    ') and (room is None or kind == 'code'):
            if kind == 'code':
                found[-1][1] += '\n' * (room is None) + text[4:] + '\n'
            else:
                found.append(['code', text[4:] + '\n'])
        elif text.startswith('- '):
            found.append(['item', text[2:]])
        elif kind == 'item' and text.startswith('  ') or (
                kind == 'text' and room is not None and len(first) >= room and
                not (found[-1][1][-1] in '.:' and RETURNS.match(text))):
            found[-1][1] += ' ' + text.strip()
        else:
            found.append(['text', text.strip()])
        kind, room = found[-1][0], COLUMNS - len(line)
    return found


class Topic:
    """A comment, and what it is about: calls as (result, name, arguments, header), and other declarations."""

    def __init__(self, header, comment):
        self.header, self.comment, self.calls, self.others = header, paragraphs(comment), [], []


class Page:
    def __init__(self, title):
        self.title, self.topics = title, []

    def calls(self):
        return [call for topic in self.topics for call in topic.calls]

    def names(self):
        return [name for _, name, _, _ in self.calls()]

    def headers(self):
        """The header of the first call, and those before it that have something else of the page."""
        headers = list(dict.fromkeys(topic.header for topic in self.topics))
        return headers[headers.index(self.calls()[0][3])::-1]


def topics(header, text):
    found, topic = [], None
    for part in PART.finditer(text):
        kind, code = part.lastgroup, part[0]
        is_call = kind in ('call', 'inline', 'macro')
        if kind == 'comment' or not topic and kind in ('type', 'callback', 'constant'):
            topic = Topic(header, code if kind == 'comment' else '')
            found.append(topic)
        if kind == 'blank':
            topic = None
        elif topic and is_call:
            result, name, arguments = CALL.match(code).groups()
            topic.calls.append((result, name, [' '.join(each.split()) for each in arguments.split(',')], header))
        elif topic and kind in ('type', 'callback', 'constant') and not re.match(r'#define \w+_INIT\b', code):
            topic.others.append((kind, code))
    return found


def fields(code):
    """The fields or enumerators of a type, and their comments; the name is '' for words between them."""
    before = ''
    for part in FIELD.finditer(code):
        if part['comment'] and part['blank']:
            yield '', paragraphs(part['comment'])
        elif part['comment']:
            before = part['comment']
        else:
            yield part['code'].split(' = ')[0], paragraphs(before or part['behind'] or '')
            before = ''


class Headers:
    def __init__(self, paths):
        texts = {pathlib.Path(path).name: pathlib.Path(path).read_text(encoding='utf-8') for path in paths}
        self.together = re.findall(r'^#include <zklock/(.*)>', texts['zklock.h'], re.M)
        self.names = [*self.together, *sorted(texts.keys() - set(self.together))]
        self.openings, self.codes, pages = {}, {}, {}
        for name in self.names:
            opening = paragraphs(re.match(r'/\*.*?\*/', texts[name], re.S)[0])[1:]
            opening[0][1] = sentence(opening[0][1][len(f'{name} - '):])
            self.openings[name] = opening
            parts = SECTION.split(texts[name].partition('#ifdef __cplusplus\n}')[0])
            for title, body in zip(parts[1::2], parts[2::2]):
                pages.setdefault(title, Page(title)).topics += topics(name, body)
        for enum in re.findall(r'^enum zkl_error \{.*?^\};', texts['error.h'], re.M | re.S):
            self.codes = {name: sentence(' '.join(words for _, words in said)) for name, said in fields(enum)}
        if empty := [title for title, page in pages.items() if not page.calls()]:
            sys.exit(f'manual: no call behind the lines "{", ".join(empty)}"')
        self.pages = list(pages.values())
        self.page_of = {name: page for page in self.pages for name in page.names()}


def returned(text):
    """A paragraph that lists codes: what is in front, pairs of a code and its words, and what is behind."""
    label = RETURNS.match(text)
    at, found = label.end(), []
    while head := re.compile(CODES).match(text, at):
        codes, at, words = re.findall(r'\b0|ZKL_E[A-Z]+', head[0]), head.end(), ''
        if text.startswith(': ', at):
            end = NEXT_CODE.search(text, at)
            found += [(code, text[at + 2:end.start() if end else None]) for code in codes]
            at = end.end() if end else len(text)
            continue
        if text.startswith(' (', at):
            words = re.compile(r' \(((?:[^()]|\([^()]*\))*)\)').match(text, at)[1]
            at += len(words) + 3
        found += [*((code, '') for code in codes[:-1]), (codes[-1], words)]
        at = re.compile(r'[.;,]? ?(?:and )?').match(text, at).end()
    return label['label'], found, text[at:]


def sentence(text):
    text = text.strip()
    if text and not re.match(r'\w+[_.(]|(?:libzookeeper|struct|enum)\b', text):
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in '.:' else text + '.'

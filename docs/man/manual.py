#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Section 3 of the manual, out of the public headers. Needs python3 and nothing else.

manual.py names HEADER...           a page a line: its names
manual.py pages FOLDER HEADER...    writes the pages

Goal: what a caller has to know stands once, in the headers' comments. Method: what a comment looks like says what it is.

  /* --- acquire a mutex --- */    begins a page, up to the next such line. "acquire a mutex" is the line of its NAME. The
                                   page has the name of its first call. The same title in another header continues it
  a comment                        is about what is declared behind it, up to an empty line; with an empty line behind it
                                   about the page. A call without a comment is on no page
  a line with room for one more    ends a paragraph: the next word would have fit into COLUMNS
  four blanks and code             is an example. The opening of a header has one for pages without their own
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
WORD = re.compile(r'''([("]*)([*]?[\w~./]*[\w~])(?:\(\))?('s?)?([).,;:"!?]*)''')


# --- what the headers say --------------------------------------------------------------------------------

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

    def __init__(self, comment):
        self.comment, self.calls, self.others = paragraphs(comment), [], []


class Page:
    def __init__(self, title):
        self.title, self.topics = title, []

    def calls(self):
        return [call for topic in self.topics for call in topic.calls]

    def names(self):
        return [name for _, name, _, _ in self.calls()]


def topics(header, text):
    found, topic = [], None
    for part in PART.finditer(text):
        kind, code = part.lastgroup, part[0]
        is_call = kind in ('call', 'inline', 'macro')
        if kind == 'comment' or not topic and kind in ('type', 'callback', 'constant'):
            topic = Topic(code if kind == 'comment' else '')
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
            opening[0][1] = sentence(opening[0][1].removeprefix(f'{name} - '))
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
    if text and not re.match(r'\w+[_.(]|libzookeeper', text):
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in '.:' else text + '.'


# --- what a page says ------------------------------------------------------------------------------------

class Writer:
    def __init__(self, page, headers):
        self.page, self.headers = page, headers
        self.lines, self.others = [], set()
        self.arguments = {re.search(r'\w+$', argument)[0] for call in page.calls() for argument in call[2]}

    def macro(self, word, following):
        """The macro of a word, or None."""
        name = word.replace('~', ' ')
        if name in self.headers.page_of:
            page = self.headers.page_of[name]
            if page is self.page:
                return f'.Fn {name}'
            self.others.add(page.names()[0])
            return f'.Xr {name} 3'
        for pattern, macro in ((r'(?:struct|enum) \w+|zkl_\w+_fn', f'.Vt "{name}"'),
                               (r'ZKL_[A-Z0-9_]*[A-Z0-9]|NULL|CLOCK_[A-Z]+|INT64_MAX', f'.Dv {name}'),
                               (r'docs/[\w-]+\.md', f'.Pa {name}'),
                               (r'\*[a-z]+|\*?(?!zoo_|zkl_)[a-z]+(?:_[a-z0-9]+)+', f'.Fa {name}')):
            if re.fullmatch(pattern, name):
                return macro
        if name in self.headers.names:
            return f'.In zklock/{name}'
        return f'.Fa {name}' if name in self.arguments and following in (':', 'NULL', 'may', 'has') else None

    def put(self, words):
        line = ' '.join(words).replace('\\', '\\e').replace('~', ' ')
        if line:
            self.lines.append('\\&' + line if line[0] in ".'" else line)
        words.clear()

    def say(self, text):
        """Running text, with a line for each sentence and for each word that has a macro."""
        words = re.sub(r'\b(struct|enum) (zkl_\w+)', r'\1~\2', text).split(' ')
        line = []
        for word, following in zip(words, [*words[1:], '']):
            parts = WORD.fullmatch(word)
            before, name, owner, after = parts.groups() if parts else ('', '', '', '')
            macro = self.macro(name, ':' if after == ':' else following) if name and '"' not in before + after else None
            if macro:
                self.put(line)
                head, rest = macro.split(' ', 1)
                self.lines.append(' '.join([head, *before, rest, *(['Ns', owner] if owner else []), *after]))
                continue
            line.append(word)
            if re.search(r'[.:]["\')]*$', word) and re.match(r'["(]?[A-Z0-9]', following):
                self.put(line)
        self.put(line)

    def display(self, text):
        shown = re.sub(r"^(?=[.'])", r'\\&', text.rstrip('\n').replace('\\', '\\e'), flags=re.M)
        self.lines += ['.Bd -literal -offset indent', shown, '.Ed']

    def tagged(self, pairs):
        """A list of tags and their words; one without a tag stands between two lists."""
        inside = False
        for tag, words in [*pairs, (None, '')]:
            if bool(tag) != inside:
                self.lines.append('.Bl -tag -width Ds' if tag else '.El')
                inside = bool(tag)
            self.lines += [f'.It {tag}'] if tag else []
            self.say(words)

    def prose(self, comment, opening=False):
        """The paragraphs, without lists of codes and examples, nor what is in front of one that the page shows."""
        before = ''
        for (kind, text), (behind, _) in zip(comment, [*comment[1:], ('', '')]):
            if kind == 'text' and behind == 'code':
                text = re.sub(r':$', '.', text) if opening else re.sub(r'(?:^|(?<=[.;]) )[^.;]*:$', '', text)
            if before == 'item' != kind:
                self.lines.append('.El')
            if kind == 'item':
                self.lines += ['.Bl -bullet'] * (before != 'item') + ['.It']
            elif before and not self.lines[-1].startswith(('.S', '.Pp')):
                self.lines.append('.Pp')
            before = kind
            if kind == 'item' or kind == 'text' and not RETURNS.match(text):
                self.say(text)
        self.lines += ['.El'] * (before == 'item')
        while self.lines[-1] == '.Pp':
            self.lines.pop()

    def synopsis(self):
        self.lines.append('.Sh SYNOPSIS')
        before = None
        for result, name, arguments, header in self.page.calls():
            include = 'zklock.h' if header in self.headers.together else header
            self.lines += [f'.In zklock/{include}'] * (include != before)
            self.lines += [f'.Ft "{result.strip()}"'] if result else []
            self.lines += [f'.Fo {name}', *(f'.Fa "{argument}"' for argument in arguments), '.Fc']
            before = include

    def description(self):
        self.lines.append('.Sh DESCRIPTION')
        about = [topic for topic in self.page.topics if topic.calls]
        for topic in sorted(self.page.topics, key=lambda topic: 2 if topic.others else bool(topic.calls)):
            if topic.calls and about != [topic]:
                self.lines.append('.Ss ' + ', '.join(name for _, name, _, _ in topic.calls))
            for kind, code in topic.others:
                if kind != 'constant':
                    self.lines.append('.Ss ' + (re.search(r'\(\*(\w+)\)', code)[1] if kind == 'callback' else code.split(' {')[0]))
            if not any(kind == 'constant' for kind, _ in topic.others):
                self.lines += ['.Pp'] * (not self.lines[-1].startswith('.S'))
                self.prose(topic.comment)
            for kind, code in topic.others:
                if kind == 'callback':
                    self.display(code)
                elif kind == 'type':
                    self.tagged((name and (f'Dv {name}' if name.startswith('ZKL_') else f'Vt "{name}"'),
                                 sentence(' '.join(words for _, words in said)))
                                for name, said in fields(code) if name != 'size_t size')
        constants = [(topic, code) for topic in self.page.topics for kind, code in topic.others if kind == 'constant']
        if constants:
            self.lines.append('.Ss Constants')
            self.tagged(self.constant(topic, code) for topic, code in constants)
        header = self.page.calls()[0][3]
        self.lines.append(f'.Ss All of {header}')
        self.prose(self.headers.openings[header], opening=True)

    @staticmethod
    def constant(topic, code):
        name, value, behind = re.match(r'#define (\w+) (.*?)\s*(?:/\* (.*) \*/)?\n', code).groups()
        said = behind or ' '.join(words for _, words in topic.comment)
        return f'Dv {name}', sentence(said) or f'Is {value}.'

    def results(self):
        lists = []
        for topic, text in ((topic, text) for topic in self.page.topics for kind, text in topic.comment
                            if topic.calls and kind == 'text'):
            while RETURNS.match(text):
                label, found, text = returned(text)
                if lists and lists[-1][0] is topic and not label and not lists[-1][3]:
                    lists[-1][2:] = [lists[-1][2] + found, text]
                else:
                    lists.append([topic, label, found, '' if RETURNS.match(text) else text])
        self.lines += ['.Sh RETURN VALUES'] * bool(lists)
        last = None
        for topic, label, found, rest in lists:
            self.lines += ['.Pp'] * ((topic is not last or bool(label)) and not self.lines[-1].startswith('.Sh'))
            if topic is not last:
                names = [name for _, name, _, _ in topic.calls]
                self.lines += [f'.Fn {name} ,' for name in names[:-1]] + [f'.Fn {names[-1]} :']
                self.lines += ['.Pp'] * bool(label)
            last = topic
            self.say(f'{label}:' if label else '')
            self.tagged((f'Dv {code}', sentence(words) or self.headers.codes.get(code, 'Done.')) for code, words in found)
            self.say(rest)

    def examples(self):
        own = [topic.comment for topic in self.page.topics if any(kind == 'code' for kind, _ in topic.comment)]
        self.lines.append('.Sh EXAMPLES')
        for comment in own or [self.headers.openings[self.page.calls()[0][3]]]:
            for (before, words), (kind, text) in zip([('', ''), *comment], comment):
                if kind == 'code':
                    self.lines += ['.Pp'] * (not self.lines[-1].startswith('.Sh'))
                    intro = re.split('(?<=[.;]) ', words)[-1]
                    self.say(sentence(intro) if before == 'text' and intro.endswith(':') else '')
                    self.display(text)

    def written(self, date):
        first, *others = self.page.names()
        self.lines += ['.\\" Made of the headers\' comments by docs/man/manual.py', f'.Dd {date}', f'.Dt {first.upper()} 3',
                       '.Os zklock', '.Sh NAME', f'.Nm {first}' + ' ,' * bool(others)]
        self.lines += [f'.Nm {name}' + ' ,' * (name != others[-1]) for name in others] + [f'.Nd {self.page.title}']
        self.synopsis()
        self.description()
        self.results()
        self.examples()
        self.lines += ['.Sh SEE ALSO', *(f'.Xr {name} 3 ,' for name in sorted(self.others)), '.Xr zklock 7']
        return '\n'.join(self.lines) + '\n'


def main(what, *rest):
    headers = Headers(rest if what == 'names' else rest[1:])
    if what == 'names':
        print('\n'.join(' '.join(page.names()) for page in headers.pages))
        return
    overview = pathlib.Path(__file__).with_name('zklock.7').read_text(encoding='utf-8')
    date = re.search(r'^\.Dd (.*)$', overview, re.M)[1]
    for page in headers.pages:
        pathlib.Path(rest[0], page.names()[0] + '.3').write_text(Writer(page, headers).written(date), encoding='utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])

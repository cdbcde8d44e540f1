#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Section 3 of the manual, out of the public headers. Needs python3 and nothing else.

manual.py names HEADER...           a page a line: its names
manual.py pages FOLDER HEADER...    writes the pages

Goal: what a caller has to know stands once, in the headers' comments. Method: comments.py has what their parts are; here
they become mdoc. A page says first what is about the page, then what is about its calls, its types and its constants, and
last what the header opens with. zklock.7 has the date."""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # in a folder of sources
from comments import RETURNS, Headers, fields, returned, sentence

WORD = re.compile(r'''([("]*)([*]?[\w~./]*[\w~])(?:\(\))?('s?)?([).,;:"!?]*)''')


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
            if tag or words and not self.lines[-1].startswith('.S'):
                self.lines.append(f'.It {tag}' if tag else '.Pp')
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
        order = self.page.headers()
        for topic in sorted(self.page.topics, key=lambda topic: 2 + (topic.header not in order[:1]) if topic.others
                            else bool(topic.calls)):
            if topic.calls and about != [topic]:
                self.lines.append('.Ss ' + ', '.join(name for _, name, _, _ in topic.calls))
            for kind, code in topic.others:
                if kind != 'constant':
                    name = re.search(r'\(\*(\w+)\)', code)[1] if kind == 'callback' else code.split(' {')[0]
                    self.lines.append(f'.Ss {name}')
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
        for header in self.page.headers():
            self.lines.append(f'.Ss All of {header}')
            self.prose(self.headers.openings[header], opening=True)

    @staticmethod
    def constant(topic, code):
        name, value, behind = re.match(r'#define (\w+) (.*?)\s*(?:/\* (.*) \*/)?\n', code).groups()
        said = sentence(behind or ' '.join(words for _, words in topic.comment))
        number = re.fullmatch(r'(?:INT64_C\()?(\d+)\)?', value)
        return f'Dv {name}', f'{number[1]}. {said}'.strip() if number else said or f'Is {value}.'

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
            self.lines += ['.Pp'] * bool(rest)
            self.say(rest)

    def examples(self):
        own = [topic.comment for topic in self.page.topics if any(kind == 'code' for kind, _ in topic.comment)]
        self.lines.append('.Sh EXAMPLES')
        for comment in own or [self.headers.openings[header] for header in self.page.headers()]:
            for (before, words), (kind, text) in zip([('', ''), *comment], comment):
                intro = re.split('(?<=[.;]) ', words)[-1]
                if kind == 'code' and before == 'text' and intro.endswith(':'):
                    self.lines += ['.Pp'] * (not self.lines[-1].startswith('.Sh'))
                    self.say(sentence(intro))
                if kind == 'code':
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

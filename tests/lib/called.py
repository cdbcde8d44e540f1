#!/usr/bin/env python3
"""called.py MAP HEADER HEADERS...: a header that has all public calls in a table, and counts which of them a test makes.

The names come from the version map, and what a call takes and returns from its prototype and its comment in HEADERS (the
list of codes, as docs/man/comments.py finds it; where a comment names another call instead of codes, that call's). So a
new function is in the tests of all calls as soon as it is exported, and what its header says of it is what they compare.
Behind the library's headers the counting is a macro of each call's name: called_missing() names those not made."""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # in a folder of sources
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'docs/man'))
from comments import RETURNS, Headers, returned

TEXT = '''/* Made by tests/lib/called.py of {source} and the headers. One file of a program defines CALLED_DEFINE first. */
#ifndef ZKTEST_CALLED_H
#define ZKTEST_CALLED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <zklock/async.h>
#include <zklock/guard.h>
#include <zklock/inspect.h>
#include <zklock/metrics.h>

#define CALLED_COUNT {count}

/* The kinds of arguments: a struct's name, or the argument's own; OUT_ where the call stores one. */
enum arg {{ {kinds}, ARGS }};

/* What its header says that a call returns: a code; yes or no, a count, a time or a token, never below 0, and the detail
 * says why if the call is wrong; a pointer; nothing. */
enum answer {{ ANSWERS_CODE, ANSWERS_QUESTION, ANSWERS_POINTER, ANSWERS_NOTHING }};

#define CALL_CODE(code) (UINT64_C(1) << -(code))

struct call {{
    const char *name;
    enum answer answer;
    int count;
        enum arg args[7];
    const char *names[7]; /* of the arguments */

    unsigned pointers, optional; /* a bit for each argument; the header says of these that they may be NULL */
    bool ignores_null;           /* of the first one */
    uint64_t codes;              /* CALL_CODE of each that its comment lists */
    bool waits;                  /* ZKL_EINCALLBACK is listed, without words about when */
    int64_t (*make)(const int64_t *args);
}};

extern atomic_bool called_on; /* count now */
extern atomic_int called_times[CALLED_COUNT];
extern const struct call called_calls[CALLED_COUNT];

static inline bool call_says(const struct call *call, int code)
{{
    return (call->codes & CALL_CODE(code)) != 0;
}}

static inline int called_note(int which)
{{
    return called_on ? atomic_fetch_add(&called_times[which], 1) : 0;
}}

/* How many of them were not called; those are named. */
static inline int called_missing(void)
{{
    int missing = 0;
    for (int i = 0; i < CALLED_COUNT; i++) {{
        if (called_times[i] == 0)
            fprintf(stderr, "        %s was not called\\n", called_calls[i].name);
        missing += called_times[i] == 0;
    }}
    return missing;
}}

{macros}

#ifdef CALLED_DEFINE
atomic_bool called_on;
atomic_int called_times[CALLED_COUNT];

{makers}

const struct call called_calls[CALLED_COUNT] = {{
{table}
}};
#endif

#endif
'''

CODE = r'ZKL_E[A-Z]+'


class Call:
    """A call by its header. topic.words is its comment as one text, without examples."""

    def __init__(self, result, name, arguments, topic):
        self.result, self.name, self.topic = (result or '').strip(), name, topic
        self.words = ' '.join(text for kind, text in topic.comment if kind != 'code')
        self.arguments = [] if arguments == ['void'] else arguments
        self.like = []  # the calls that the comment refers to

    def refer(self, calls, before):
        """What it does is what another call does, in words or as the inline call behind it that makes it."""
        names = re.findall(r'^(?:As )?(zkl_\w+)\b|(?:codes|those|frees? a mutex|had called)[ a-z,]*? (zkl_\w+)'
                           r'|and (zkl_\w+)[,.] (?:and|except)|, as (zkl_\w+) frees', self.words)
        same = re.search(r'the (zkl_\w+) calls of these names', self.words)
        names = [same[1] + '_' + self.name.split('_', 2)[2]] if same else [each for found in names for each in found if each]
        if self.words.startswith('The same '):
            names.append(next(each for each in reversed(before) if not calls[each].words.startswith('The same ')))
        if self.words.startswith('The calls below'):
            names.append(re.sub('_paths?$', '', self.name))
        self.like = [calls[name] for name in names if name in calls and name != self.name]

    def listed(self):
        """Pairs of a code and its words."""
        found = []
        for kind, text in self.topic.comment:
            while kind == 'text' and RETURNS.match(text):
                _, pairs, text = returned(text)
                found += [(code, words) for code, words in pairs if code != '0']
        if not found or 'The other codes are' in self.words:
            found += [pair for other in self.like for pair in other.listed()]
        never = re.findall(CODE, ' '.join(re.findall(rf'(?:except|never) ((?:(?:, | and )?{CODE})+)', self.words)))
        return [(code, words) for code, words in found if code not in never]

    def may_be_null(self, name):
        said = rf'''\b{name}\b[^.;:]{{0,40}}\bmay\ be\ NULL(?!\ if) | unless\ {name}\ is\ NULL | \b{name}\ NULL\b(?!,)
            | \b{name}\ says\ \(NULL: | \b{name}:\ [^.]*,\ or\ NULL | \b{name}\ is\ [^.;]*:\ NULL\ or'''
        return bool(re.search(said, self.words, re.X)) or any(
            other.may_be_null(name) for other in self.like if any(re.search(rf'\b{name}$', each) for each in other.arguments))

    def kind(self, argument):
        of, name = re.fullmatch(r'(?:const )?(.*?)(\w+)', argument).groups()
        struct = re.match(r'struct zkl_(\w+) ', of)
        words = struct[1] if struct else name + '_room' * (of == 'size_t ' and name == 'count')
        return 'ARG_' + ('OUT_' * (of.endswith('**') or of == 'uint64_t *') + words).upper()

    def pointer(self, argument):
        return '*' in argument or '_fn ' in argument

    def row(self, index):
        names = [re.search(r'\w+$', argument)[0] for argument in self.arguments]
        bits = [0, 0]
        for i, argument in enumerate(self.arguments):
            options = re.match(r'const struct zkl_(?:lock|mutex)_options ', argument)  # lock.h says so of all
            optional = options or argument == 'void *arg' or self.may_be_null(names[i]) or (
                'NULL: as the thread itself' in self.words)
            bits[0] |= self.pointer(argument) << i
            bits[1] |= bool(optional and self.pointer(argument)) << i
        codes = self.listed()
        answer = ('NOTHING' if self.result == 'void' else 'POINTER' if '*' in self.result else
                  'CODE' if codes or self.ignores() else 'QUESTION')
        mask = ' | '.join(f'CALL_CODE({code})' for code in dict.fromkeys(code for code, _ in codes)) or '0'
        kinds = ', '.join(map(self.kind, self.arguments)) or '0'
        quoted = ', '.join(f'"{name}"' for name in names) or 'NULL'
        return (f'    {{"{self.name}", ANSWERS_{answer}, {len(names)}, {{{kinds}}}, {{{quoted}}}, {bits[0]:#x}, {bits[1]:#x}, '
                f'{int(self.ignores())}, {mask}, {int(self.waits())}, make_{index}}},')

    def waits(self):
        return ('ZKL_EINCALLBACK', '') in self.listed()

    def ignores(self):
        return bool(re.search('ignores NULL|NULL if rwlock is NULL', self.words)) or (
            self.name.endswith('_free') and any(other.ignores() for other in self.like))

    def maker(self, index):
        passed = ', '.join(
            f'({re.sub(r"[^*]*$", "", argument) if "*" in argument else argument.rpartition(" ")[0]})'
            f'{"(intptr_t)" * self.pointer(argument)}v[{i}]' for i, argument in enumerate(self.arguments))
        call = f'{self.name}({passed})'
        body = (f'{call}; return 0;' if self.result == 'void' else f'return (int64_t)(intptr_t){call};'
                if '*' in self.result else f'return (int64_t){call};')
        return f'static int64_t make_{index}(const int64_t *v)\n{{\n    (void)v;\n    {body}\n}}'


def read(headers):
    """All calls by their names, inline ones too."""
    calls, order = {}, []
    for page in Headers(headers).pages:
        for topic in page.topics:
            for result, name, arguments, _ in topic.calls:
                calls[name] = Call(result, name, arguments, topic)
                order.append(name)
    for index, name in enumerate(order):
        calls[name].refer(calls, order[:index])
    return calls


def main():
    source, target, *headers = map(pathlib.Path, sys.argv[1:])
    text = re.sub(r'/\*.*?\*/', '', source.read_text(encoding='utf-8'), flags=re.DOTALL)
    names = re.findall(r'\b(zkl_\w+)\s*;', text)
    calls = read(headers)
    if not names or not set(names) <= calls.keys():
        sys.exit(f'{source} exports nothing, or what is in no header: {set(names) - calls.keys()}')
    exported = [calls[name] for name in names]
    target.write_text(TEXT.format(
        source=source.name,
        count=len(names),
        kinds=', '.join(dict.fromkeys(call.kind(each) for call in exported for each in call.arguments)),
        macros='\n'.join(f'#define {name}(...) ((void)called_note({i}), {name}(__VA_ARGS__))'
                         for i, name in enumerate(names)),
        makers='\n'.join(call.maker(i) for i, call in enumerate(exported)),
        table='\n'.join(call.row(i) for i, call in enumerate(exported))), encoding='utf-8')


if __name__ == '__main__':
    main()

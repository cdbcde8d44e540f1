#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prometheus.py PROGRAM: its output is text that Prometheus reads without a complaint, with the right figures.

Goal: a scraper takes zkl_metrics_prometheus's text as it is. Method: a parser of our own, written after the description of
the text format 0.0.4 and the rules of `promtool check metrics`; where python3-prometheus-client is installed its parser
reads the same. PROGRAM (figures.c) has locked each of two paths seven times and timed out once."""
import re
import subprocess
import sys

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
SAMPLE = re.compile(rf'({NAME})(?:\{{(.*)\}})? ([0-9.e+-]+|\+Inf|NaN)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(,|$)')
CLIENT = re.compile(r'[1-9][0-9]*\.1')
PATHS = ('/figures/plain', '/figures/"quoted" \\ {bär},')
LOCKS = 7
UNITS = re.compile(r'milli|micro|nano|_(ms|us|ns|minutes|hours|kb|kilobytes)\b')


def complain(text):
    sys.exit(f'prometheus: {text}')


def check(condition, text):
    if not condition:
        complain(text)


def labels_of(text):
    labels, at = {}, 0
    while at < len(text or ''):
        match = LABEL.match(text, at)
        check(match, f'labels {text!r}')
        check(match[1] not in labels, f'{match[1]} twice in {text!r}')
        labels[match[1]] = re.sub(r'\\(.)', lambda m: {'n': '\n'}.get(m[1], m[1]), match[2])
        at = match.end()
    check(CLIENT.fullmatch(labels.pop('client', '')), f'the client in {text!r}')
    return labels


def parse(text):
    """{family: (type, [(name, labels, value)])}; families stand together, each behind its HELP and TYPE."""
    families, current, help_name = {}, None, None
    check(text.endswith('\n'), 'the last line has no end')
    for line in text.splitlines():
        if line.startswith('# HELP '):
            help_name, sentence = line[7:].split(' ', 1)
            check(sentence.strip(), f'no help: {line}')
        elif line.startswith('# TYPE '):
            current, kind = line[7:].split(' ')
            check(current == help_name, f'no HELP before {line}')
            check(current not in families, f'{current} comes twice')
            check(kind in ('counter', 'gauge', 'histogram'), line)
            families[current] = (kind, [])
        else:
            match = SAMPLE.fullmatch(line)
            check(match, f'no sample: {line!r}')
            name, value = match[1], float(match[3])
            base = re.sub('_(bucket|sum|count)$', '', name) if families[current][0] == 'histogram' else name
            check(base == current, f'{name} stands in {current}')
            families[current][1].append((name, labels_of(match[2]), value))
    return families


def lint(families):
    for family, (kind, samples) in families.items():
        check(re.fullmatch('zklock_[a-z_]+', family), f'{family}: name')
        check(samples, f'{family}: no sample')
        check((kind == 'counter') == family.endswith('_total'), f'{family}: a {kind}')
        check(not UNITS.search(family), f'{family}: no base unit')
        check(kind != 'histogram' or family.endswith('_seconds'), f'{family}: unit')
        seen = [(name, tuple(sorted(labels.items()))) for name, labels, _ in samples]
        check(len(seen) == len(set(seen)), f'{family}: a sample comes twice')
        check(all(value >= 0 for *_, value in samples), f'{family}: below zero')
        if kind == 'histogram':
            lint_histogram(family, samples)


def lint_histogram(family, samples):
    of_lock = {}
    for name, labels, value in samples:
        parts = of_lock.setdefault(labels.pop('lock', None), {'buckets': []})
        if name.endswith('_bucket'):
            parts['buckets'].append((float(labels.pop('le')), value))
        else:
            parts[name.rsplit('_', 1)[1]] = value
        check(not labels, f'{family}: labels {labels}')
    for lock, parts in of_lock.items():
        bounds = [le for le, _ in parts['buckets']]
        counts = [count for _, count in parts['buckets']]
        check(bounds == sorted(set(bounds)) and bounds[-1] == float('inf'), f'{family}, {lock}: bounds {bounds}')
        check(counts == sorted(counts), f'{family}, {lock}: not cumulative')
        check(counts[-1] == parts['count'], f'{family}, {lock}: +Inf is not the count')
        check((parts['sum'] > 0) == (parts['count'] > 0), f'{family}, {lock}: sum')
        # No time is longer than its bucket, nor shorter than the one before.
        low = sum((counts[i] - counts[i - 1]) * bounds[i - 1] for i in range(1, len(counts)))
        high = sum((counts[i] - (counts[i - 1] if i else 0)) * bounds[i] for i in range(len(counts) - 1))
        check(low <= parts['sum'], f'{family}, {lock}: sum {parts["sum"]} below {low}')
        check(counts[-1] > counts[-2] or parts['sum'] <= high, f'{family}, {lock}: sum above {high}')


def value(families, name, **labels):
    found = [v for n, has, v in families[re.sub('_count$', '', name)][1] if n == name and has == labels]
    check(len(found) == 1, f'{name} {labels}: {found}')
    return found[0]


def check_figures(families):
    for path in PATHS:
        check(value(families, 'zklock_lock_acquisitions_total', lock=path) == LOCKS, f'{path}: acquisitions')
        check(value(families, 'zklock_lock_failures_total', lock=path, code='timedout') == 1, f'{path}: timeouts')
        check(value(families, 'zklock_lock_hold_seconds_count', lock=path) == LOCKS, f'{path}: holds')
        check(value(families, 'zklock_lock_held', lock=path) == 0, f'{path}: held')
    check(value(families, 'zklock_acquisitions_total') == 2 * LOCKS, 'acquisitions')
    check(value(families, 'zklock_connected') == 1, 'connected')
    check(value(families, 'zklock_requests_total', kind='delete') == 2 * LOCKS, 'deletes')
    check(value(families, 'zklock_session_timeout_seconds') == 10, 'session timeout')


def read_by_others(text, families):
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        return 'python3-prometheus-client is not installed'
    theirs = {(s.name, tuple(sorted((k, v) for k, v in s.labels.items() if k != 'client'))): s.value
              for family in text_string_to_metric_families(text) for s in family.samples}
    check(theirs[('zklock_lock_acquisitions_total', (('lock', PATHS[1]),))] == LOCKS, 'read by python3-prometheus-client')
    check(len(theirs) == text.count('\n') - 2 * len(families), 'samples read by python3-prometheus-client')
    return 'python3-prometheus-client reads the same'


def main():
    run = subprocess.run([sys.argv[1]], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    check(run.returncode == 0, f'{sys.argv[1]} ended with {run.returncode}: {run.stderr}')
    families = parse(run.stdout)
    lint(parse(run.stdout))
    check_figures(families)
    others = read_by_others(run.stdout, families)
    print(f'prometheus: {len(families)} families, {run.stdout.count(chr(10))} lines; {others}')


main()

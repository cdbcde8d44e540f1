# SPDX-License-Identifier: Apache-2.0
"""The tables, in Markdown that also reads well in a terminal."""
import textwrap

import peers
import targets
import workloads
from stats import number, ratio_of, spread_of

BEGIN, END = '<!-- results: made by tests/bench/run.sh --{} -->', '<!-- results: end -->'

ROW_MAX = 160  # a table of wider rows is not padded
MEDIANS = ('Medians over the rounds, with the smallest and the largest in parentheses. A ratio is taken within each '
           'round.')

# The pages of --table: name, title, and how the names of their workloads begin.
PAGES = [
    ('one-lock', 'one lock', ('W1', 'W2-')),
    ('threads', 'threads of a process on one lock', ('W3-', 'entry')),
    ('many-locks', 'many locks, many clients', ('W4', 'W8-', 'W9-')),
    ('queues', 'queues', ('W5', 'W10-', 'W11')),
    ('others', 'readers and writers, multi-locks, outages', ('W6', 'W7', 'readers-', 'outage-')),
]

CAPACITY_PEERS = ['zklock', 'zklock-posted', 'zklock-retained', 'curator', 'gozk']


def table(head, rows):
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

    if sum(widths) + 3 * len(widths) + 1 > ROW_MAX:
        widths = [3] * len(widths)

    def line(cells):
        return '| ' + ' | '.join(cell.ljust(width) for cell, width in zip(cells, widths)) + ' |'

    return '\n'.join([line(head), '|' + '|'.join('-' * (width + 2) for width in widths) + '|'] +
                     [line(row) for row in rows])


def of(records, workload, fsync, servers=1):
    return [r for r in records
            if r['workload'] == workload.name and r['fsync'] == fsync and r.get('servers', 1) == servers]


def peers_in(records):
    """In one order everywhere, whatever that of their turns was."""
    there = {r['peer'] for r in records}
    return [name for name in peers.BY_NAME if name in there]


def figures_table(workload, records):
    rows = []
    for peer in peers_in(records):
        cells = [spread_of(records, peer, f.name) for f in workload.figures]
        rows.append([peer] + [cell.text(f.digits) if cell else '' for cell, f in zip(cells, workload.figures)])
    return table(['peer'] + [f.title for f in workload.figures], rows)


def ratios_table(workload, records):
    """How many times better the library is in the first figure; None if there is nobody to compare with. Which outages are
    survived comes in steps, and in part by chance."""
    if workload.mode == 'outage':
        return None
    first, there = workload.figures[0], peers_in(records)
    ours = [p for p in there if p in workloads.OURS]
    rows = []
    for other in there:
        ratios = [ratio_of(records, one, other, first.name, first.lower_is_better) if one != other else None
                  for one in ours]
        if any(ratios) and other not in ('zklock', 'zklock-cached'):
            rows.append([other] + [ratio.text(2) if ratio else '' for ratio in ratios])
    return table([f'{first.title}: times better than'] + ours, rows) if rows else None


def workload_text(workload, records, fsync, servers=1):
    records = of(records, workload, fsync, servers)
    rounds = len({r['round'] for r in records})
    text = (f"**{workload.name}**: {workload.title}; {'fsync' if fsync else 'no fsync'}, "
            f"{'' if servers == 1 else f'{servers} servers, '}{rounds} round{'s' * (rounds != 1)}")
    parts = [textwrap.fill(text, 80, break_on_hyphens=False), figures_table(workload, records),
             ratios_table(workload, records)]
    return '\n\n'.join(part for part in parts if part) + '\n'


def references_table(records):
    rows = [targets.reference_row(r, of(records, workloads.BY_NAME[r.workload], False)) for r in targets.REFERENCES]
    rows = [row for row in rows if row]
    return table(['row', 'ratio', 'when defined', 'measured', ''], rows) if rows else None


def targets_table(records):
    rows = [targets.row(t, of(records, workloads.BY_NAME[t.workload], False)) for t in targets.ALL]
    rows = [row for row in rows if row]
    return table(['row', 'peer', 'target', 'measured', ''], rows) if rows else None


def fsync_table(records):
    """The first figure of each workload with fsync, as all other tables are without."""
    rows = []
    for workload in workloads.ALL:
        some = of(records, workload, True)
        for peer in peers_in(some):
            cell = spread_of(some, peer, workload.figures[0].name)
            theirs = ratio_of(some, 'zklock', peer, workload.figures[0].name, workload.figures[0].lower_is_better)
            rows.append([workload.name, peer, f'{cell.text(workload.figures[0].digits)} {workload.figures[0].title}',
                         theirs.text(2) if theirs and peer != 'zklock' else ''])
    return table(['row', 'peer', 'with fsync', 'zklock is times better'], rows) if rows else None


def is_on(name, begins):
    """W1 is not W10, and W5 has W5-apart."""
    return any(name.startswith(begin) if begin.endswith('-') else name == begin or name.startswith(begin + '-')
               for begin in begins)


def page_of(records, begins, servers):
    """The workloads of one page; with one server those without fsync, as the others have a table of their own."""
    parts = []
    for fsync in (False, True) if servers > 1 else (False,):
        texts = [workload_text(w, records, fsync, servers) for w in workloads.ALL
                 if is_on(w.name, begins) and of(records, w, fsync, servers)]
        parts += ([f'## {"With" if fsync else "Without"} fsync'] if texts and servers > 1 else []) + texts
    return parts


def pages(records):
    """Of everything that was measured: the name of a page, its title, its parts."""
    met, floors, synced = targets_table(records), references_table(records), fsync_table(records)
    found = [('targets', 'targets and floors',
              (['## Targets', met] if met else []) + (['## Floors', floors] if floors else [])),
             ('fsync', 'with fsync', [synced] if synced else [])]
    for servers in sorted({r.get('servers', 1) for r in records}):
        behind, words = ('', '') if servers == 1 else (f'-{servers}-servers', f', {servers} servers')
        found += [(name + behind, title + words, page_of(records, begins, servers)) for name, title, begins in PAGES]
    return [page for page in found if page[2]]


def write_pages(folder, records, facts):
    """A page that is there keeps what stands outside of its marks; one that nothing was measured for stays as it is."""
    for name, title, parts in pages(records):
        path = folder / f'benchmarks-{name}.md'
        if not path.exists():
            opening = (f'This page is for readers of a figure: {title}. [benchmarks.md](../benchmarks.md) says how it was '
                       'measured, and what the rows and the peers are.')
            head = f'# Benchmarks: {title}\n\n{textwrap.fill(opening, 80)}\n\n'
            path.write_text(f'{head}{BEGIN.format("table FOLDER")}\n{END}\n', encoding='utf-8')
        above = [textwrap.fill(line, 80, break_on_hyphens=False) for line in (facts, MEDIANS)]
        write(path, '\n\n'.join(part.strip() for part in above + parts) + '\n')


def capacity_table(records, chosen, setups, text_of):
    """A row for each ensemble and peer, a column for each workload."""
    rows = []
    for servers, fsync in setups:
        some = {w.name: of(records, w, fsync, servers) for w in chosen}
        there = peers_in(r for each in some.values() for r in each)
        rows += [[str(servers), 'yes' if fsync else 'no', peer] + [text_of(some[w.name], peer) for w in chosen]
                 for peer in there if peer in CAPACITY_PEERS]
    return table(['servers', 'fsync', 'peer'] + [w.name for w in chosen], rows)


def medians(records, peer, *figures):
    cells = [spread_of(records, peer, f.name) for f in figures]
    return ' / '.join(number(cell.median, f.digits) for cell, f in zip(cells, figures) if cell)


def capacity(records, facts):
    """docs/capacity.md's tables: medians, as what is planned with them is rounder still."""
    records = [r for r in records if r['workload'].startswith(('W9-', 'W4'))]
    chosen = [w for w in workloads.ALL if any(r['workload'] == w.name for r in records)]
    setups = sorted({(r.get('servers', 1), r['fsync']) for r in records})
    costs = capacity_table(records, chosen, setups,
                           lambda some, peer: medians(some, peer, workloads.CYCLES, workloads.SERVER_CPU))
    sent = capacity_table(records, chosen, setups[:1],
                          lambda some, peer: medians(some, peer, workloads.REQUESTS, workloads.BYTES))
    return '\n\n'.join([textwrap.fill(facts, 80, break_on_hyphens=False),
                        'Locks a second, and the processor time of all servers for each lock and its\nunlock in us (medians):',
                        costs, 'Requests, and bytes that the client receives, for each lock and its unlock:', sent]) + '\n'


def write(path, text, option='table FOLDER'):
    """Between the two marks of a file that has them, else the file itself."""
    before, after = '', ''
    begin = BEGIN.format(option)
    if path.exists():
        old = path.read_text(encoding='utf-8')
        if begin in old and END in old:
            before, after = old[:old.index(begin)] + begin + '\n\n', '\n' + old[old.index(END):]
    path.write_text(before + text + after, encoding='utf-8')

# SPDX-License-Identifier: Apache-2.0
"""The tables, in Markdown that also reads well in a terminal."""
import textwrap

import peers
import targets
import workloads
from stats import number, ratio_of, spread_of

BEGIN, END = '<!-- results: made by tests/bench/run.sh --{} -->', '<!-- results: end -->'

ROW_MAX = 160  # a table of wider rows is not padded

TABLE_PEERS = ['zklock', 'zklock-posted', 'zklock-retained', 'curator', 'kazoo', 'gozk', 'floor-1rt', 'floor-group']
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


def peers_table(records):
    """The first figure of each workload: a row for each workload, a column for each peer."""
    there = [peer for peer in TABLE_PEERS if any(r['peer'] == peer for r in records)]
    rows = []
    for fsync in (False, True):
        for workload in workloads.ALL:
            some, first = of(records, workload, fsync), workload.figures[0]
            if 'zklock' in peers_in(some):
                name = f"{workload.name}, {first.title}{', fsync' if fsync else ''}"
                rows.append([name] + [cell_of(some, peer, first) for peer in there])
    return table(['row'] + there, rows)


def cell_of(records, peer, figure):
    """The median, and how many times better the library is in its default."""
    cell = spread_of(records, peer, figure.name)
    ratio = ratio_of(records, 'zklock', peer, figure.name, figure.lower_is_better)
    if not cell:
        return ''
    return number(cell.median, figure.digits) + (f' ({ratio.median:.2f})' if ratio and peer != 'zklock' else '')


def page(records, facts):
    """What docs/benchmarks.md has of a run."""
    rounds = len({r['round'] for r in records})
    says = (f'{facts} Medians of {rounds} round{"s" * (rounds != 1)}; in parentheses how many times better zklock '
            'was, a median of ratios that are taken within each round.')
    return f'{textwrap.fill(says, 80, break_on_hyphens=False)}\n\n{peers_table(records)}\n'


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


def write(path, text, option):
    """Between the two marks of a file that has them, else the file itself."""
    before, after = '', ''
    begin = BEGIN.format(option)
    if path.exists():
        old = path.read_text(encoding='utf-8')
        if begin in old and END in old:
            before, after = old[:old.index(begin)] + begin + '\n\n', '\n' + old[old.index(END):]
    path.write_text(before + text + after, encoding='utf-8')

# SPDX-License-Identifier: Apache-2.0
"""The tables, in Markdown that also reads well in a terminal."""
import peers
import targets
import workloads
from stats import number, ratio_of, spread_of

BEGIN, END = '<!-- results: made by tests/bench/run.sh --{} FILE -->', '<!-- results: end -->'

CAPACITY_PEERS = ['zklock', 'zklock-posted', 'zklock-retained', 'curator', 'gozk']


def table(head, rows):
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

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
    parts = [text, figures_table(workload, records), ratios_table(workload, records)]
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


def document(records, facts):
    """Everything that was measured."""
    parts = [facts, 'Medians over the rounds, with the smallest and the largest in parentheses. A ratio is taken within '
             'each round.']
    met = targets_table(records)
    if met:
        parts += ['### Targets', met]
    floors = references_table(records)
    if floors:
        parts += ['### Floors', floors]
    texts = [workload_text(w, records, False) for w in workloads.ALL if of(records, w, False)]
    if texts:
        parts += ['### Without fsync'] + texts
    synced = fsync_table(records)
    if synced:
        parts += ['### With fsync', synced]
    for servers in sorted({r.get('servers', 1) for r in records} - {1}):
        parts.append(f'### {servers} servers')
        parts += [workload_text(w, records, fsync, servers) for fsync in (False, True) for w in workloads.ALL
                  if of(records, w, fsync, servers)]
    return '\n\n'.join(part.strip() for part in parts) + '\n'


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
    return '\n\n'.join([facts, 'Locks a second, and the processor time of all servers for each lock and its unlock in us (medians):', costs,
                        'Requests, and bytes that the client receives, for each lock and its unlock:', sent]) + '\n'


def write(path, text, option='table'):
    """Between the two marks of a file that has them, else the file itself."""
    before, after = '', ''
    begin = BEGIN.format(option)
    if path.exists():
        old = path.read_text(encoding='utf-8')
        if begin in old and END in old:
            before, after = old[:old.index(begin)] + begin + '\n\n', '\n' + old[old.index(END):]
    path.write_text(before + text + after, encoding='utf-8')

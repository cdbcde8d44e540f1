# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG, drawn by gnuplot."""
import subprocess
import textwrap

import report
import workloads
from stats import spread_of

COLOURS = {'zklock': '#1b6ca8', 'zklock-posted': '#5fa8d3', 'zklock-retained': '#0b3c5d', 'floor': '#9aa0a6',
           'curator': '#d1495b', 'kazoo': '#edae49', 'gozk': '#66a182'}
WITHOUT_SERVER = ['zklock-retained', 'zklock-local', 'floor-local']  # beside them the others would not be seen
BARS = ['W1', 'W2-2', 'W2-8', 'W3-8', 'W3-32', 'W4', 'W6', 'W7']
DASHED = ['floor-2w', 'zklock-posted']


def colour(peer):
    return COLOURS.get(peer) or COLOURS[peer.partition('-')[0]]


def gnuplot(script, path):
    """The picture, in few lines: gnuplot writes one for each corner of a box."""
    drawn = subprocess.run(['gnuplot'], input='\n'.join(script) + '\n', text=True, check=True, stdout=subprocess.PIPE).stdout
    path.write_text(textwrap.fill(drawn, 400, break_long_words=False, break_on_hyphens=False) + '\n', encoding='utf-8')


def block(name, lines):
    return f'${name} << EOD\n' + '\n'.join(lines) + '\nEOD'


def bars(records, path):
    """The first figure of each peer in each workload, with the spread."""
    panels = [w for w in (workloads.BY_NAME[name] for name in BARS) if report.of(records, w, False)]
    if not panels:
        return
    rows = (len(panels) + 1) // 2
    script = [f"set terminal svg size 1000,{260 * rows} font 'sans,12' background '#ffffff'",
              f'set multiplot layout {rows},2', 'set boxwidth 0.7', 'set style fill solid', 'set yrange [0:*]',
              'set grid ytics', 'unset key', "set xtics rotate by -20 font ',10'"]
    for workload in panels:
        figure = workload.figures[0]
        some = [r for r in report.of(records, workload, False) if r['peer'] not in WITHOUT_SERVER]
        lines = []
        for i, peer in enumerate(report.peers_in(some)):
            s = spread_of(some, peer, figure.name)
            lines.append(f'{i} {s.median} {s.low} {s.high} {int(colour(peer)[1:], 16)} "{peer}"')
        script += [block('data', lines), f"set title '{workload.name}: {workload.title}'",
                   f"set ylabel '{figure.title}'", f'set xrange [-0.6:{len(lines) - 0.4}]',
                   'plot $data using 1:2:5:xticlabels(6) with boxes lc rgb variable, '
                   "$data using 1:3:(0):($4 - $3) with vectors nohead lc rgb '#333333'"]
    gnuplot(script, path)


def sizes_of(records, prefix):
    return [w for w in workloads.ALL if w.name.startswith(prefix) and report.of(records, w, False)]


def lines_by_size(records, sizes, figure):
    """The data, and the plot command: a line for each peer, by the number of threads."""
    peers = [p for p in report.peers_in(r for w in sizes for r in report.of(records, w, False)) if p not in WITHOUT_SERVER]
    data, plots = [], []
    for i, peer in enumerate(peers):
        points = [(w.threads, spread_of(report.of(records, w, False), peer, figure.name)) for w in sizes]
        data.append(block(f'data{i}', [f'{n} {s.median}' for n, s in points if s]))
        plots.append(f"$data{i} using 1:2 with linespoints lw 2 dt {2 if peer in DASHED else 1} lc rgb '{colour(peer)}' "
                     f"title '{peer}'")
    return data + ['plot ' + ', '.join(plots)]


def queue(records, path):
    """What an acquisition costs by the number of waiters."""
    sizes = sizes_of(records, 'W10-')
    if len(sizes) < 2:
        return
    gnuplot(["set terminal svg size 700,420 font 'sans,12' background '#ffffff'",
             'set logscale xy', "set title 'One acquisition, by the number of waiters'", "set xlabel 'waiters'",
             "set ylabel 'us'", 'set grid', 'set key top left'] + lines_by_size(records, sizes, sizes[0].figures[0]), path)


def clients(records, path):
    """What an ensemble carries by the number of clients, and what a lock costs it."""
    sizes = sizes_of(records, 'W9-')
    if len(sizes) < 2:
        return
    script = ["set terminal svg size 1000,420 font 'sans,12' background '#ffffff'",
              'set multiplot layout 1,2', 'set logscale x 2', "set xlabel 'clients'", 'set yrange [0:*]', 'set grid',
              'set key top left']
    for figure, title in ((workloads.GRANTS, 'Locks a second'), (workloads.SERVER_CPU, "The server's processor for each lock")):
        script += [f'set title "{title}"', f"set ylabel '{figure.title}'"] + lines_by_size(records, sizes, figure)
    gnuplot(script, path)


def draw(records, folder):
    folder.mkdir(parents=True, exist_ok=True)
    bars(records, folder / 'rates.svg')
    queue(records, folder / 'queue.svg')
    clients(records, folder / 'clients.svg')

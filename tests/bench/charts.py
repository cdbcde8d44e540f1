# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG, drawn by gnuplot."""
import subprocess

import report
import workloads
from stats import spread_of

COLOURS = {'zklock': '#1b6ca8', 'zklock-posted': '#5fa8d3', 'floor': '#9aa0a6', 'curator': '#d1495b',
           'kazoo': '#edae49'}
WITHOUT_SERVER = ['zklock-retained', 'zklock-local', 'floor-local']  # beside them the others would not be seen
BARS = ['W1', 'W2-2', 'W2-8', 'W3-8', 'W3-32', 'W4', 'W6', 'W7']


def colour(peer):
    return COLOURS.get(peer) or COLOURS[peer.partition('-')[0]]


def gnuplot(script):
    subprocess.run(['gnuplot'], input=script, text=True, check=True)


def bars(records, path):
    """The rate of each peer in each workload, with the spread; but of those that send nothing."""
    panels = [w for w in (workloads.BY_NAME[name] for name in BARS) if report.of(records, w, False)]
    if not panels:
        return
    rows = (len(panels) + 1) // 2
    script = [f"set terminal svg size 1000,{260 * rows} font 'sans,12' background '#ffffff'", f"set output '{path}'",
              f'set multiplot layout {rows},2', 'set boxwidth 0.7', 'set style fill solid', 'set yrange [0:*]',
              'set grid ytics', 'unset key', "set xtics rotate by -20 font ',10'"]
    for panel in panels:
        some = [r for r in report.of(records, panel, False) if r['peer'] not in WITHOUT_SERVER]
        first = panel.figures[0]
        lines = []
        for i, peer in enumerate(report.peers_in(some)):
            s = spread_of(some, peer, first.name)
            lines.append(f'{i} {s.median} {s.low} {s.high} {int(colour(peer)[1:], 16)} "{peer}"')
        script += ['$data << EOD\n' + '\n'.join(lines) + '\nEOD', f"set title '{panel.name}: {panel.title}'",
                   f"set ylabel '{first.title}'", f'set xrange [-0.6:{len(lines) - 0.4}]',
                   'plot $data using 1:2:5:xticlabels(6) with boxes lc rgb variable, '
                   "$data using 1:3:(0):($4 - $3) with vectors nohead lc rgb '#333333'"]
    gnuplot('\n'.join(script) + '\n')


def queue(records, path):
    """What an acquisition costs by the number of waiters."""
    sizes = [w for w in workloads.ALL if w.name.startswith('W10-') and report.of(records, w, False)]
    if len(sizes) < 2:
        return
    peers = report.peers_in(r for w in sizes for r in report.of(records, w, False))
    script = ["set terminal svg size 700,420 font 'sans,12' background '#ffffff'", f"set output '{path}'",
              'set logscale xy', "set title 'One acquisition, by the number of waiters'", "set xlabel 'waiters'",
              "set ylabel 'us'", 'set grid', 'set key top left']
    plots = []
    for i, peer in enumerate(peers):
        points = [(w.threads, spread_of(report.of(records, w, False), peer, w.figures[0].name)) for w in sizes]
        script.append(f'$data{i} << EOD\n' + '\n'.join(f'{n} {s.median}' for n, s in points if s) + '\nEOD')
        dashes = {'floor-2w': 2, 'zklock-posted': 2}.get(peer, 1)
        plots.append(f"$data{i} using 1:2 with linespoints lw 2 dt {dashes} lc rgb '{colour(peer)}' title '{peer}'")
    gnuplot('\n'.join(script) + '\nplot ' + ', '.join(plots) + '\n')


def draw(records, folder):
    folder.mkdir(parents=True, exist_ok=True)
    bars(records, folder / 'rates.svg')
    queue(records, folder / 'queue.svg')

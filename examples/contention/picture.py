# SPDX-License-Identifier: Apache-2.0
"""The journal of a run as a picture (SVG): a row for each thread, all lives of its process together. Waiting is light,
holding dark, what went wrong is marked. A reader can read it without colors, because shapes say everything.

Times are microseconds since the threads were started."""
import html

import witness

LEFT, WIDTH, MARGIN = 150, 820, 20  # of the rows; before them stand their names
TITLE_Y, LEGEND_Y, TOP = 24, 48, 70
ROW, GAP, AXIS = 20, 8, 40  # gap: between processes
HEIGHT = {'waiting': 6, 'holding': 14, 'stopped': 14}

# A mark stands on a white ground of its own, to the right of its moment, so that what ended there is seen.
DEFINITIONS = '''<style>text{font:12px sans-serif;fill:#111}.title{font-weight:bold}.axis{stroke:#999}\
.waiting{fill:#bbb}.holding{fill:#111}.stopped{fill:url(#stripes)}\
.ground{fill:#fff}.mark{fill:none;stroke:#b00000;stroke-width:2}</style>
<defs>
<pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="ground"/>\
<path d="M0 6L6 0M-1 1L1 -1M5 7L7 5" stroke="#111"/></pattern>
<g id="crash"><rect y="-7" width="14" height="14" class="ground"/><path d="M2 -5L12 5M2 5L12 -5" class="mark"/></g>
<g id="pause"><rect y="-8" width="10" height="16" class="ground"/><path d="M3 -6V6M7 -6V6" class="mark"/></g>
<g id="refused"><circle cx="8" r="8" class="ground"/>\
<circle cx="8" r="6" class="mark"/><path d="M4 4L12 -4" class="mark"/></g>
</defs>'''


# --- the timeline

class Row:
    """What a thread did, as far as the journal says."""

    def __init__(self, name):
        self.name = name
        self.bars = {'waiting': [], 'holding': [], 'stopped': []}  # (from, to) of each
        self.marks = []  # (kind, at)
        self.doing = ''  # waiting, holding, or neither: connecting, unlocking or done
        self.since = self.stopped_at = 0

    def bar(self, kind, begin, end):
        if begin < end:
            self.bars[kind].append((begin, end))

    def turn_to(self, doing, now):
        self.doing, self.since = doing, now

    def end(self, now, kind='holding'):
        if self.doing == kind:
            self.bar(kind, self.since, now)
        if kind == 'holding':
            self.turn_to('', now)

    def step(self, line, now, lock):
        if line.kind == 'enter':
            if lock:
                self.bar('waiting', max(now - line.us, 0), now)
            self.turn_to('holding', now)
        elif line.kind == 'stale':
            self.marks.append(('refused', now))
            self.end(now)
        elif line.kind in ('leave', 'done'):
            self.end(now)
        elif line.kind == 'freed':  # and the thread asks again immediately
            self.turn_to('waiting', now)

    def kill(self, now):
        self.end(now, 'waiting')
        self.end(now)
        self.marks.append(('crash', now))

    def paused(self, now):
        """A holder that is stopped holds until its session is over, which only the server knows: its bar ends here."""
        if self.doing == 'holding':
            self.end(now)
        self.marks.append(('pause', now))
        self.stopped_at = now

    def woken(self, now):
        self.bar('stopped', self.stopped_at, now)


class Timeline:
    def __init__(self, journal, lock):
        lines = witness.read(journal)
        first = next(lines)
        self.processes, self.threads = first.value, first.found
        self.rows = [Row(f'process {p} thread {t}') for p in range(self.processes) for t in range(self.threads)]
        start = stop = now = 0
        for line in lines:
            now = line.at - start
            if line.kind == 'start':
                start, now = line.at, 0
                for row in self.rows if lock else []:
                    row.turn_to('waiting', 0)
            elif line.kind == 'stop':
                stop = now
            elif line.kind in ('kill', 'paused', 'woken'):
                for row in self.rows[line.process * self.threads:][:self.threads]:
                    getattr(row, line.kind)(now)
            else:
                self.rows[line.process * self.threads + line.thread].step(line, now, lock)
        self.end = now or 1
        for row in self.rows:  # the journal has no line about who was waiting when the time was over
            row.end(stop, 'waiting')

    def x(self, us):
        return LEFT + us * WIDTH / self.end

    def y(self, row):
        return TOP + row * ROW + row // self.threads * GAP


# --- the picture

def legend(o):
    """What a run cannot have is not explained."""
    x = LEFT
    yield '<g id="legend">'
    for there, kind, text, width in (
            (o.lock, 'waiting', 'waits', 48), (True, 'holding', 'holds the lock' if o.lock else 'reads, works, writes', 104),
            (o.pause, 'stopped', 'process stopped', 112), (o.crash, 'crash', 'process killed', 98),
            (o.pause, 'pause', 'stop begins', 82), (o.lock, 'refused', 'stale write refused', 0)):
        if not there:
            continue
        if kind in HEIGHT:
            yield f'<rect x="{x}" y="{LEGEND_Y - HEIGHT[kind] // 2}" width="28" height="{HEIGHT[kind]}" class="{kind}"/>'
            x += 34
        else:
            yield f'<use href="#{kind}" x="{x}" y="{LEGEND_Y}"/>'
            x += 20
        yield f'<text x="{x}" y="{LEGEND_Y + 4}">{text}</text>'
        x += width
    yield '</g>'


def draw_row(t, number):
    """One path for all bars of a kind. Within it a unit to the right is a microsecond, so that the picture has the
    journal's times as they are. A pattern would be stretched with them, so stops are drawn in the picture's units."""
    row, y = t.rows[number], t.y(number)
    yield (f'<g class="row">\n<text x="{LEFT - 8}" y="{y + ROW // 2 + 4}" text-anchor="end">{row.name}</text>\n'
           f'<g transform="translate({LEFT},{y}) scale({WIDTH / t.end:.9g},1)">')
    for kind in ('waiting', 'holding'):
        high = HEIGHT[kind]
        bars = ''.join(f'M{begin} {(ROW - high) // 2}H{end}v{high}H{begin}z' for begin, end in row.bars[kind])
        yield f'<path class="{kind}" d="{bars}"/>'
    yield '</g>'
    for begin, end in row.bars['stopped']:
        yield (f'<rect class="stopped" x="{t.x(begin):.2f}" y="{y + (ROW - HEIGHT["stopped"]) // 2}" '
               f'width="{t.x(end) - t.x(begin):.2f}" height="{HEIGHT["stopped"]}"/>')
    for kind, at in row.marks:
        yield f'<use href="#{kind}" x="{t.x(at):.2f}" y="{y + ROW // 2}"/>'
    yield '</g>'


def axis(t):
    """A step is 1, 2 or 5 times a power of ten, and about ten of them are in the picture."""
    y = t.y(len(t.rows)) - GAP + 6
    step = next(n * 10 ** power for power in range(20) for n in (1, 2, 5) if n * 10 ** power * 10 >= t.end)
    yield f'<path class="axis" d="M{LEFT} {y}h{WIDTH}"/>'
    for us in range(0, t.end + 1, step):
        yield (f'<path class="axis" d="M{t.x(us):.2f} {y}v5"/><text x="{t.x(us):.2f}" y="{y + 18}" '
               f'text-anchor="middle">{us / 1e6:.6g} s</text>')


def lines(o, t):
    width, height = LEFT + WIDTH + MARGIN, t.y(len(t.rows)) - GAP + AXIS
    lock = f'one lock: {html.escape(o.path, quote=False)}' if o.lock else 'without a lock'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    yield DEFINITIONS
    yield f'<rect width="{width}" height="{height}" class="ground"/>'
    yield (f'<text x="{MARGIN}" y="{TITLE_Y}" class="title">{t.processes} processes x {t.threads} threads, {lock}</text>')
    yield from legend(o)
    for number in range(len(t.rows)):
        yield from draw_row(t, number)
    yield from axis(t)
    yield '</svg>'


def draw(o, journal):
    with open(o.svg, 'w', encoding='utf-8') as out:
        out.writelines(line + '\n' for line in lines(o, Timeline(journal, o.lock)))

# SPDX-License-Identifier: Apache-2.0
"""What the library is to reach, row by row, and what the floors are to be. Nearly all are ratios within one run, as
absolute figures don't carry to other machines."""
import dataclasses

from stats import number, ratio_of, spread_of
from workloads import BY_NAME


@dataclasses.dataclass(frozen=True)
class Target:
    workload: str
    peer: str
    bound: float
    other: str = ''    # a ratio to this peer; else the figure itself
    figure: str = ''   # the workload's first one
    at_most: bool = False
    or_else: 'Target' = None  # of the same workload and peer: one of the two is enough

    def title(self):
        return next((f.title for f in BY_NAME[self.workload].figures if f.name == self.figure_name()), self.figure)

    def figure_name(self):
        return self.figure or BY_NAME[self.workload].figures[0].name

    def text(self):
        sign = '<=' if self.at_most else '>='
        of = f' x {self.other}' if self.other else ''
        return f'{self.title()} {sign} {self.bound:g}{of}' + (f', or {self.or_else.text()}' if self.or_else else '')

    def result(self, records):
        """The spread that is compared with the bound, or None. A ratio of what is better when it is lower is turned round if
        the target asks for more, as in "1.9 x in time"."""
        if not self.other:
            return spread_of(records, self.peer, self.figure_name())
        lower = next((f.lower_is_better for f in BY_NAME[self.workload].figures if f.name == self.figure_name()), True)
        return ratio_of(records, self.peer, self.other, self.figure_name(), lower and not self.at_most)

    def met(self, result):
        median = round(result.median, self.digits(result))
        return median <= self.bound if self.at_most else median >= self.bound

    def digits(self, result):
        """As many as are shown."""
        return 2 if self.other or result.median < 100 else 0


ALL = [
    Target('W1', 'zklock', 1.5, 'curator'),
    Target('W1', 'zklock', 0.95, 'floor-pipe'),
    Target('W1', 'zklock-posted', 2.3, 'curator'),
    Target('W1', 'zklock-posted', 0.95, 'floor-1rt'),
    Target('W1', 'zklock-posted', 1.2, 'floor-1rt', 'cpu_us_per_cycle', True),
    Target('W1', 'zklock-retained', 1000000),
    Target('W1', 'zklock-retained', 0.01, figure='requests_per_cycle', at_most=True),
    Target('W2-2', 'zklock', 2.2, 'curator'),
    Target('W2-2', 'zklock', 0.95, 'floor-1rt'),
    Target('W2-2', 'zklock', 1.15, 'floor-1rt', 'p99_us', True),
    Target('W2-2', 'zklock-posted', 0.95, 'floor-1rt'),
    Target('W2-2', 'zklock-posted', 1.15, 'floor-1rt', 'p99_us', True),
    Target('W2-2', 'zklock-retained', 1.5, 'zklock', 'p50_us', True),
    Target('W2-8', 'zklock', 3.4, 'curator'),
    Target('W2-8', 'zklock', 0.95, 'floor-1rt'),
    Target('W2-8', 'zklock', 1.15, 'floor-1rt', 'p99_us', True),
    Target('W2-8', 'zklock-posted', 0.95, 'floor-1rt'),
    Target('W2-8', 'zklock-posted', 1.15, 'floor-1rt', 'p99_us', True),
    Target('W3-32', 'zklock', 7, 'curator'),
    Target('W3-32', 'zklock', 1.2, 'curator-own'),
    Target('W3-32', 'zklock-local', 0.8, 'floor-local'),
    Target('W3-4x8', 'zklock-local', 0.9, figure='jain'),
    Target('W4', 'zklock', 1.3, 'curator'),
    Target('W4', 'zklock', 0.95, 'floor-pipe'),
    Target('W4', 'zklock-posted', 1.4, 'curator'),
    Target('W4', 'zklock-posted', 0.95, 'floor-1rt'),
]
for _row in ('W4', 'W4-256'):  # many locks in one transaction
    for _peer, _floor in (('zklock', 'floor-group'), ('zklock-posted', 'floor-group-posted')):
        ALL += [
            Target(_row, _peer, 2.5, 'floor-1rt', or_else=Target(_row, _peer, 0.9, _floor)),
            Target(_row, _peer, 0.5, 'floor-1rt', 'server_cpu_us_per_cycle', True),
            Target(_row, _peer, 1.2, 'floor-1rt', 'p99_us', True),
        ]
ALL += [
    Target('W5', 'zklock', 1.9, 'curator-own'),
    Target('W5', 'zklock', 2.0, figure='requests_per_acquisition', at_most=True),
    Target('W5', 'zklock', 34000, figure='bytes_per_acquisition', at_most=True),
    Target('W5', 'zklock', 20, figure='peak_mb', at_most=True),
    Target('W5-apart', 'zklock', 1.01, figure='requests_per_acquisition', at_most=True),  # with the heartbeats
    Target('W5-apart', 'zklock', 2000, figure='bytes_per_acquisition', at_most=True),
    Target('W6', 'zklock', 2, 'curator'),
    Target('W6', 'zklock', 1, 'curator', 'writes_per_s'),
    Target('W7', 'zklock', 5, 'curator'),
    Target('W7', 'zklock', 0.8, 'floor-sync'),
    Target('W7', 'zklock-posted', 5, 'curator'),
    Target('W7', 'zklock-posted', 0.8, 'floor-sync'),
    Target('W7', 'zklock', 7, figure='requests_per_cycle', at_most=True),
    Target('W8-handles', 'zklock', 1024, figure='handle_bytes', at_most=True),
    Target('W8-handles', 'zklock', 1024, figure='used_handle_bytes', at_most=True),
    Target('W8-handles', 'zklock', 4, figure='threads', at_most=True),
    Target('W8-handles', 'zklock', 0.2, figure='idle_requests_per_s', at_most=True),
    Target('readers-8', 'zklock-cached', 5000000),
    Target('readers-writer', 'zklock-cached', 1.5, figure='behind_1_hand_offs', at_most=True),
    Target('entry', 'zklock', 50, figure='lock_ns', at_most=True),
]


@dataclasses.dataclass(frozen=True)
class Reference:
    """How a floor stood to another peer when it was defined, on another machine: one that falls far behind flatters us."""
    workload: str
    floor: str
    other: str
    ratio: float


REFERENCES = [
    Reference('W1', 'floor-1rt', 'curator', 2.45),
    Reference('W1', 'floor-1rt', 'floor-pipe', 1.53),
    Reference('W1', 'floor-sync', 'floor-pipe', 1.15),
    Reference('W2-8', 'floor-2w', 'floor-1rt', 1.51),
    Reference('W5', 'floor-2w', 'floor-pipe', 1.31),
]
NEAR = 0.75


def reference_row(reference, records):
    first = BY_NAME[reference.workload].figures[0]
    ratio = ratio_of(records, reference.floor, reference.other, first.name, first.lower_is_better)
    if ratio is None:
        return None
    return [reference.workload, f'{reference.floor} / {reference.other}', number(reference.ratio, 2), ratio.text(2),
            'near' if ratio.median >= NEAR * reference.ratio else 'slower than it was']


def row(target, records):
    """The cells of the table of targets, or None if it was not measured."""
    ways = [(way, result) for way in (target, target.or_else) if way for result in [way.result(records)] if result]
    if not ways:
        return None
    missed = min(abs(result.median / way.bound - 1) for way, result in ways)
    return [target.workload, target.peer, target.text(),
            '; '.join(result.text(way.digits(result)) for way, result in ways),
            'met' if any(way.met(result) for way, result in ways) else f'missed by {number(missed * 100, 0)} %']

# SPDX-License-Identifier: Apache-2.0
"""Medians, spreads and ratios of what was measured."""
import statistics


class Spread:
    """The median of some values, with the smallest and the largest."""

    def __init__(self, values):
        self.values = list(values)
        self.median = statistics.median(self.values)
        self.low, self.high = min(self.values), max(self.values)

    def text(self, digits):
        if len(self.values) == 1 or self.low == self.high:
            return number(self.median, digits)
        return f'{number(self.median, digits)} ({number(self.low, digits)} - {number(self.high, digits)})'


class Processors:
    """What their time went to, all together, since this was made or asked last."""
    NAMES = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal']  # of /proc/stat

    def __init__(self):
        self.last = self.ticks()

    def ticks(self):
        with open('/proc/stat', encoding='ascii') as stat:
            return [int(word) for word in stat.readline().split()[1:1 + len(self.NAMES)]]

    def percent(self):
        """By name; steal: other machines on the same host had it."""
        before, self.last = self.last, self.ticks()
        spent = [now - then for now, then in zip(self.last, before)]
        return {name: 100 * ticks / max(1, sum(spent)) for name, ticks in zip(self.NAMES, spent)}


def number(value, digits):
    return f'{value:,.{digits}f}'.replace(',', ' ')


def percentile(ordered, share):
    """Of values in order; the share is from 0 to 1."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread_of(records, peer, figure):
    """Over the rounds of one peer in one workload, or None."""
    values = [r['figures'][figure] for r in records if r['peer'] == peer and figure in r['figures']]
    return Spread(values) if values else None


def ratio_of(records, one, other, figure, lower_is_better=False):
    """How many times better one peer is than the other: a ratio for each round that has both."""
    values = {(r['peer'], r['round']): r['figures'][figure] for r in records if figure in r['figures']}
    ratios = []
    for (peer, round_), mine in values.items():
        theirs = values.get((other, round_))
        if peer == one and mine and theirs:
            ratios.append(theirs / mine if lower_is_better else mine / theirs)
    return Spread(ratios) if ratios else None

# SPDX-License-Identifier: Apache-2.0
"""What the verdict looks like on paper, and each reason for a bad end."""
import json
import sys

from checker import percentile


def head(o):
    lock = f'under the lock {o.path} on {o.servers}' if o.lock else 'WITHOUT a lock'
    length = f'{o.count} times each' if o.count else f'for {o.seconds} s'
    print(f'{o.processes} processes x {o.threads} threads update one record, {lock}, {length} (seed {o.seed})')
    if o.crash:
        print('now and then a process that holds the lock is killed, and a new one takes its place')
    sys.stdout.flush()


def faults(o, v, odd):
    """Each as "NUMBER TEXT"; none: all is well."""
    each = [
        (o.lock and v.lost_updates != 0, v.lost_updates, 'updates are missing in the record'),
        (o.lock and v.overlaps > 0, v.overlaps, 'times two held the lock at once'),
        (o.lock and v.unexplained > 0, v.unexplained, "writes were refused as stale, but the lock's holds were whole"),
        # One now and then is the lot of a loaded machine; a lock that is always lost is none.
        (v.holds_lost > 10 + v.acquisitions // 10, v.holds_lost, 'holds were lost, more than one in ten'),
        (v.corrupt > 0, v.corrupt, 'entries of journal and record contradict each other'),
        (odd > 0, odd, 'calls returned what they should not'),
        (v.acquisitions == 0, 0, 'acquisitions'),
        (o.crash and not v.kills, 0, 'processes were killed; --crash should have killed some'),
        (o.pause and not v.refused_stale, 0, 'stale writes were refused; a pause should have caused some'),
    ]
    return [f'{number} {text}' for present, number, text in each if present]


def each_process(v):
    return [{'acquisitions': len(v.waits[i]), 'wait_p50_us': percentile(v.waits[i], 50),
             'wait_p99_us': percentile(v.waits[i], 99), 'hold_p50_us': percentile(v.holds[i], 50)} for i in range(v.processes)]


def as_json(o, v, why):
    run = {'path': o.path, 'servers': o.servers} if o.lock else {}
    names = ('processes threads acquisitions updates counter torn lost_updates overlaps refused_stale holds_lost kills pauses')
    return json.dumps({'lock': o.lock, **run, 'seed': o.seed, **{name: getattr(v, name) for name in names.split()},
                       'fairness': round(v.fairness, 2), 'each_process': each_process(v), 'faults': why}, indent=2)


def final_line(v):
    return (f'contention: processes={v.processes} threads={v.threads} acquisitions={v.acquisitions} '
            f'lost_updates={v.lost_updates} overlaps={v.overlaps} refused_stale={v.refused_stale} fairness={v.fairness:.2f}')


def in_words(o, v, why):
    yield f"{'process':>7} {'acquisitions':>13} {'wait p50 us':>12} {'wait p99 us':>12} {'hold p50 us':>12}"
    for i, p in enumerate(each_process(v)):
        yield '{:7} {:13} {:12} {:12} {:12}'.format(i, *p.values())
    torn = f', of which {v.torn} never reached the record: their writers were killed on the way' if v.torn else ''
    yield f'the record says {v.counter}; updates accepted {v.updates}{torn}'
    if o.crash:
        yield f'kills={v.kills}'
    if o.pause:
        yield f'pauses={v.pauses}'
    if v.holds_lost:
        yield f'holds that were lost, as their unlock said: {v.holds_lost}'
    if not o.lock:
        yield f'without the lock {v.lost_updates} of {v.updates} updates were lost'
    yield from (f'FAULT: {each}' for each in why)
    yield final_line(v)


def verdict(o, v, odd):
    """True if all is well."""
    why = faults(o, v, odd)
    print(as_json(o, v, why) if o.json else '\n'.join(in_words(o, v, why)), flush=True)
    if o.summary:
        with open(o.summary, 'a', encoding='utf-8') as out:
            out.write(final_line(v) + '\n')
    return not why

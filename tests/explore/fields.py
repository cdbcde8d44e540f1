#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fields.py ROOT: what a client's state is made of, digest.c knows.

Goal: two states that go on in different ways are never taken for one because a field came and nobody told
tests/explore/digest.c. Method: each field of the structs of src/core and tests/sim/fake.h that make up a state
is read there by a variable of that struct, or stands below with the reason why it need not be."""
import pathlib
import re
import sys

CONSTANT = 'the same all the time, or as the scenario says'
DERIVED = 'counts or links what is written down elsewhere; check.c counts some of it'
COUNTER = 'only grows; what was numbered by it is ranked'
PASSING = 'empty, or says nothing, between two events'
FIGURES = 'for figures and messages only'
PLACES = 'the order in which things are written down'
UNUSED = 'no schedule of this suite sets it'

# Struct: how its variables are called in digest.c, and what is left out there.
STRUCTS = {
    'zkl_core': ('k core k->opcodes[i]', {
        'port': CONSTANT, 'tracer': CONSTANT, 'tell_composites': CONSTANT, 'now': PASSING, 'changed': PASSING,
        'last_id': COUNTER, 'last_watch': COUNTER, 'last_number': COUNTER, 'forgets': PASSING, 'last': PLACES, 'parked': DERIVED, 'pending': DERIVED,
        'pending_count': DERIVED, 'refused': PASSING, 'watch_bytes': DERIVED, 'watch_bytes_max': CONSTANT,
        'ephemeral_bytes': DERIVED, 'ephemeral_bytes_left': DERIVED, 'ephemeral_bytes_max': CONSTANT,
        'sharing': PASSING, 'collecting': PASSING, 'share_round': PASSING, 'share_from': CONSTANT,
        'unlisted_from': CONSTANT, 'chroot_length': CONSTANT, 'due': PASSING, 'timed_local_queues': DERIVED, 'caches': DERIVED,
        'first_read': UNUSED, 'first_read_wanted': UNUSED, 'first_read_answer': UNUSED, 'heartbeats_sent': COUNTER,
        'sent': FIGURES, 'writes': FIGURES}),
    'zkl_session': ('s', {'unprovable': CONSTANT, 'is_exact': CONSTANT, 'asked_ms': CONSTANT}),
    'zkl_session_event': ('s->probe', {'unprovable': CONSTANT, 'type': CONSTANT, 'now': FIGURES}),
    'zkl_proof': ('p', {'tick_ns': CONSTANT}),
    'zkl_answered': ('a', {}),
    'zkl_stamp': ('s', {}),
    'zkl_pending': ('slot', {'next': PLACES, 'awaiter': CONSTANT, 'owner': CONSTANT,
                             'refusal': PASSING, 'sent_boot_ns': FIGURES}),
    'zkl_subscription': ('sub', {'watch': PLACES, 'prev': PLACES}),
    'zkl_watch': ('watch w', {'armed_version': 'what the server has, as it would have fired', 'owner': FIGURES}),
    'zkl_shared_list': ('o->machine.lock_request.path->lists', {'leader': PASSING, 'round': PASSING, 'out': DERIVED}),
    'zkl_heartbeat': ('b', {}),
    'zkl_contender': ('o s', {'prev': PLACES, 'counted': DERIVED, 'node_bytes': CONSTANT}),
    'zkl_contender_machine': ('m', {'unprovable': CONSTANT, 'sequence': DERIVED}),
    'zkl_lock_request': ('asked', {'data': CONSTANT, 'lease_ns': CONSTANT, 'downgrade_from': CONSTANT}),
    'zkl_naming': ('asked->naming', {'names': CONSTANT, 'name': CONSTANT}),
    'zkl_quota': ('asked->quota', {}),
    'zkl_limit': ('m->limit', {}),
    'zkl_semaphore_view': ('c->view', {'changes': UNUSED}),
    'zkl_path': ('c->paths[i] asked->path o->machine.lock_request.path', {}),
    'zkl_children_view': ('c->paths[i].view', {}),
    'zkl_unlisted_grant': ('a', {}),
    'zkl_group_commit': ('waiting c->core.group_commit', {'under_way': DERIVED, 'answered': PASSING, 'held': DERIVED,
                                                          'last': PLACES}),
    'zkl_leftovers': ('k->leftovers', {'last': PLACES, 'count': DERIVED, 'due_mono_ns': DERIVED}),
    'zkl_leftover': ('l', {'path_hash': DERIVED, 'bytes': DERIVED}),
    'zkl_query': ('q', {'kind': CONSTANT, 'path': CONSTANT, 'data': CONSTANT, 'flag': CONSTANT, 'version': CONSTANT,
                        'czxid': CONSTANT, 'once': CONSTANT, 'answered': CONSTANT, 'parts': UNUSED, 'part_count': UNUSED, 'prev': PLACES}),
    'zkl_transaction': ('x', {'size': CONSTANT}),
    'zkl_bundle': ('g o->permits->bundle', {'number': FIGURES, 'detail': FIGURES, 'lease_ns': CONSTANT,
                                            'members': CONSTANT, 'gated': CONSTANT, 'told': CONSTANT}),
    'zkl_bundle_member': ('c->members[i]', {'lock_request': CONSTANT}),
    'zkl_local_queue': ('t', {'handoffs_max': CONSTANT, 'retain_ns': CONSTANT, 'queues': CONSTANT, 'dropped': CONSTANT,
                              'last': PLACES, 'next_timed': PLACES}),
    'zkl_read_cache': ('r', {'age_ns': CONSTANT, 'next': PLACES}),
    'zkl_read_gate': ('gate', {}),
    'zkl_local_waiter': ('turn o->turn', {'contender': CONSTANT, 'lock_request': CONSTANT, 'given': PASSING,
                                          'prev': PLACES}),
    'zkl_request': ('r', {'parts': UNUSED, 'part_count': UNUSED}),
    'zkl_reply': ('r', {'number': FIGURES, 'otherwise': PASSING, 'refused': PASSING, 'ctime_ms': UNUSED, 'mtime_ms': UNUSED, 'aversion': UNUSED}),
    'fake_node': ('n', {'old_changes': UNUSED, 'old_pzxid': UNUSED, 'shown_czxid': UNUSED}),
    'fake_message': ('m', {}),
    'fake_handle': ('h', {
        'fake': CONSTANT, 'serves_no_more': PASSING, 'too_busy': PASSING, 'stuck': PASSING, 'stuck_ms': UNUSED,
        'stalled': UNUSED, 'may_lower': UNUSED, 'comes_behind': PASSING, 'attempted': UNUSED, 'down_ms': UNUSED,
        'learner': UNUSED, 'held': UNUSED, 'late': UNUSED, 'late_ms': UNUSED, 'claimed': UNUSED, 'outdated': UNUSED}),
    'fake_watch': ('h->known.list[i] h->armed.list[i]', {}),
    'fake_change': ('c', {}),
    'client': ('c', {'port': CONSTANT, 'gate': 'a path of which only the text and the lists count', 'world': CONSTANT, 'tickets': COUNTER, 'guids': COUNTER, 'open_current': PASSING,
                     'open_probe': PASSING, 'fresh_until_boot': PASSING}),
    'place': ('p', {'client': CONSTANT, 'kind': CONSTANT, 'root': CONSTANT, 'kept': UNUSED, 'grouped_guid': UNUSED, 'told_until_boot': UNUSED}),
    'owner': ('o', {'query': PLACES, 'members': PASSING, 'writer': CONSTANT, 'kind': CONSTANT, 'count': CONSTANT, 'stop_code': PASSING,
                    'try_only': CONSTANT, 'ahead': UNUSED, 'without': UNUSED, 'holds': UNUSED, 'until_ms': UNUSED, 'listed_zxid': UNUSED}),
    'touches': ('t', {}),
    'world': ('w d.w', {'prng': UNUSED}),
}
HEADERS = ('src/core', 'tests/sim', 'tests/owners', 'tests/explore')
COMMENT = re.compile(r'/\*.*?\*/', re.S)
NAME = re.compile(r'\(\s*\*\s*(\w+)\s*\)\s*\(|(\w+)\s*(?:\[[^\]]*\]\s*)*$')


def body(text, start):
    """From behind the brace at start to its end."""
    depth = 1
    at = start
    while depth:
        depth += {'{': 1, '}': -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def fields(text):
    """Names of the members; of a nameless struct inside its own and that of the member."""
    found = []
    inner = re.search(r'(?:struct|enum)\s*\{', text)
    while inner:
        inside = body(text, inner.end())
        if inner.group().startswith('struct'):
            found += fields(inside)
        text = text[:inner.start()] + 'int ' + text[inner.end() + len(inside) + 1:]
        inner = re.search(r'(?:struct|enum)\s*\{', text)
    for member in filter(None, (part.strip() for part in text.split(';'))):
        if re.search(r'\(\s*\*', member):
            found.append(re.search(r'\(\s*\*\s*(?:const\s*)?(\w+)', member).group(1))
            continue
        for one in member.split(','):
            found.append(NAME.search(one).group(2))
    return found


def structs(root):
    found = {}
    for folder in HEADERS:
        for path in sorted((root / folder).glob('*.h')):
            text = re.sub(r'^\s*#.*$', '', COMMENT.sub(' ', path.read_text(encoding='utf-8')), flags=re.M)
            for match in re.finditer(r'\bstruct (\w+) \{', text):
                found[match.group(1)] = fields(body(text, match.end()))
    return found


def is_read(digest, variables, field):
    return any(re.search(rf'(?<![\w>.]){re.escape(variable)}(?:->|\.){field}\b', digest)
               for variable in variables.split())


def main():
    root = pathlib.Path(sys.argv[1])
    digest = COMMENT.sub(' ', (root / 'tests/explore/digest.c').read_text(encoding='utf-8'))
    there = structs(root)
    faults, count = [], 0
    for name, (variables, left_out) in STRUCTS.items():
        if name not in there:
            faults.append(f'struct {name} is not there any more')
            continue
        for field in there[name]:
            count += 1
            read = is_read(digest, variables, field)
            if read == (field in left_out):
                faults.append(f'{field} of struct {name} is ' + ('read by digest.c after all' if read else
                              'neither read by digest.c nor left out here with a reason'))
        faults += [f'struct {name} has no {field}' for field in left_out if field not in there[name]]
    for fault in faults:
        print(f'fields.py: {fault}')
    print(f'{len(STRUCTS)} structs, {count} fields')
    return 1 if faults or count == 0 else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manners.py BUILD [NAME]: beside exclusion, asking a holder of another language to release, and listing the contenders."""
import socket
import sys

sys.dont_write_bytecode = True

from interop import check, run


# --- asking a holder to release ---------------------------------------------------------------------------------------------

# Curator's Revoker asks our holder, which hears of it by its callback and when it asks, or only when it asks.
def test_curator_asks_ours(crowd):
    for path, how, kind, half in (
            ('/revoke-callback', 'callback', 'mutex', ''),
            ('/revoke-poll', 'poll', 'mutex', ''),
            ('/revoke-read', 'callback', 'rwlock', '.read'),
            ('/revoke-write', 'poll', 'rwlock', '.write'),
            ('/revoke-permit', 'callback', 'semaphore', ''),
            ('/revoke-permit-poll', 'poll', 'semaphore', '')):
        crowd.play(f'c1 new L {kind} {path} revocable={how}; c1 lock L{half} 0; c1 revoked L{half} 300 -> no')
        node = crowd.ask(f'c1 node L{half}')
        check(node.startswith('ok /'), node)
        crowd.play(f'j1 revoke {node[3:]}; c1 revoked L{half} 60000; c1 unlock L{half}; c1 lock L{half} 0')
        # A hold of its own, that nobody asked for.
        crowd.play(f'c1 revoked L{half} 300 -> no; c1 unlock L{half}; c1 drop L; {path} is free')


# Ours asks a holder of Curator's, first without a wait and then with one. A revocable node of Curator's has no data, so
# nobody can say whose it is.
def test_ours_asks_curator(crowd):
    for path, kind, half in (('/revoke-j', 'mutex', ''), ('/revoke-j-read', 'rwlock', '.read'),
                             ('/revoke-j-write', 'rwlock', '.write')):
        crowd.play(f'j1 new L {kind} {path} revocable=1; j1 lock L{half} 0')
        node, = crowd.children(path)
        crowd.play(f'''j1 list L{half}; c1 revoke {path}/{node} 0 -> no; j1 revoked L{half} 60000
            c1 revoke {path}/{node} 60000 ...; j1 revoked L{half} 60000; c1 waits
            j1 unlock L{half}; c1 -> ok; {path} is free''')


# --- listing the contenders -------------------------------------------------------------------------------------------------

# A holder of ours and a waiter of Kazoo's, as Curator's getParticipantNodes and Kazoo's contenders show them.
def test_peers_list_ours(crowd):
    crowd.play('''k1 new L mutex /list names=curator owner=kiosk; j1 new L mutex /list; c1 new L mutex /list owner=gantry
        c1 lock L 0; k1 lock L 20000 ...; /list has 2
        j1 list L -> ok gantry|kiosk; k2 list L -> ok gantry|kiosk
        c1 unlock L; k1 -> ok; j1 list L -> ok kiosk; k1 unlock L; c1 drop L''')


# Without an owner text there are the host, the process and the thread. Each half of Curator's lock lists its own kind.
def test_peers_list_readers_of_ours(crowd):
    crowd.play('j1 new L rwlock /list-readers; c1 new L rwlock /list-readers; c1 lock L.read 0')
    said = crowd.ask('j1 list L.read')
    check(said.startswith(f'ok {socket.gethostname()} {crowd.peers["c"].pid} '), said)
    crowd.play('j1 list L.write; c1 unlock L.read; c1 drop L')


# zkl_inspect of a queue in which all three stand. Curator's default data is its address.
def test_ours_lists_the_peers(crowd):
    crowd.play('''k1 new L mutex /inspect pattern=-lock- owner=kiosk; j1 new L mutex /inspect
        c1 new L mutex /inspect owner=gantry; j1 lock L 0
        c1 lock L 20000 ...; /inspect has 2; k1 lock L 20000 ...; /inspect has 3''')
    holder = 'mutex|holder lock curator 127.0.0.1|waiter lock curator gantry >0|waiter lock kazoo kiosk >1'
    crowd.play(f'''c2 list L -> ok {holder}
        j1 unlock L; c1 -> ok; c1 unlock L; k1 -> ok; c2 list L -> ok mutex|holder lock kazoo kiosk
        k1 unlock L; c1 drop L''')


def test_ours_lists_readers_of_the_peers(crowd):
    crowd.play('''k1 new L rwlock /inspect-rw names=curator owner=kiosk; j1 new L rwlock /inspect-rw revocable=1
        c1 new L rwlock /inspect-rw owner=gantry; j1 lock L.read 0; k1 lock L.read 0
        c1 lock L.write 20000 ...; /inspect-rw has 3; k2 lock L.read 20000 ...; /inspect-rw has 4''')
    readers = 'rwlock|holder read curator |holder read curator kiosk'
    crowd.play(f'''c2 list L.read -> ok {readers}|waiter write curator gantry >1|waiter read curator kiosk >2
        j1 unlock L.read; k1 unlock L.read; c1 -> ok; c1 unlock L.write; k2 -> ok; k2 unlock L.read; c1 drop L''')


# Leases of both, a lease that waits, and its owner's place in the queue for it: getParticipantNodes and zkl_inspect.
def test_semaphores_are_listed(crowd):
    crowd.play('j1 new L semaphore /inspect-s permits=2; c1 new L semaphore /inspect-s permits=2 owner=gantry; c1 lock L 0')
    crowd.play('j1 lock L 20000')  # our node in the inner lock may be there for a moment more
    said = crowd.ask('j1 list L')
    check('gantry' in said and '127.0.0.1' in said, said)
    crowd.play('j2 lock L 20000 ...; /inspect-s/leases has 3')
    holders = 'semaphore|holder permit curator gantry|holder permit curator 127.0.0.1'
    crowd.play(f'''c2 list L -> ok {holders}|waiter permit curator 127.0.0.1|waiter entry curator 127.0.0.1
        c1 unlock L; j2 -> ok; j2 unlock L; j1 unlock L; c1 drop L''')


sys.exit(run(globals()))

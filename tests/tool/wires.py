# SPDX-License-Identifier: Apache-2.0
"""The words of the tests of tests/lib: raw connections, what proxies do to them, and what a server says of itself."""
import ctypes
import os
import threading
from ctypes import byref, c_int64, c_size_t

from world import HOST, LIB, Names, Stat, WAIT_MS, must

SESSION_MS = 30000  # no session ends by itself in a test
SIZE = 4096
CODES = {-10000: 'IO', -101: 'NONODE', -102: 'NOAUTH', -103: 'BADVERSION', -110: 'NODEEXISTS', -111: 'NOTEMPTY', -112: 'EXPIRED'}
OPS = {'any': [-14], 'connect': [-13], 'event': [-1], 'create': [1], 'exists': [3], 'get': [4], 'acl': [6], 'ping': [11],
       'list': [12, 8]}
NUMBERS = {'persistent': 0, 'ephemeral': 1, 'sequential': 2, 'numbered': 3, 'container': 4, 'server': 1, 'client': 2, 'both': 3,
           'cut': 0, 'silent': 1, **{name: numbers[0] for name, numbers in OPS.items()}}
# Of proxy.h; and what is given to each call where a line does not say more.
FAULTS = {'hole': ('hole', 'both'), 'heal': ('heal',), 'cut': ('cut',), 'refuse': ('refuse', 1), 'listen': ('refuse', 0),
          'delay': ('delay_ms', 0), 'hang_up_on': ('hang_up_on', 'connect'), 'lose': ('drop_reply', 'get', 1, 'cut'),
          'lose_request': ('drop_request', 'get', 1, 'cut'), 'keep': ('hold_reply', 'get', 1),
          'keep_request': ('hold_request', 'get', 1), 'release': ('release',), 'disarm': ('disarm',), 'forget': ('reset_counts',)}
# Of wire.h, likewise; and what each stores.
CALLS = {'create': ('text', '', '', 'persistent'), 'get': ('text stat', ''), 'exists': ('stat', ''), 'get_acl': ('text', ''),
         'set': ('', '', '', -1), 'delete': ('', '', -1), 'wait_event': ('text', WAIT_MS)}

for its_name in 'hole heal cut delay_ms hang_up_on release disarm reset_counts'.split():
    getattr(LIB, 'proxy_' + its_name).restype = None
LIB.wire_password.restype = ctypes.c_void_p
LIB.wire_last_zxid.restype = c_int64


def arguments(words, least):
    """Numbers and their names are numbers, all else is text."""
    words = [str(word) for word in [*words, *least[len(words):]]]
    return [NUMBERS[word] if word in NUMBERS else int(word) if word.lstrip('-').isdigit() else os.fsencode(word) for word in words]


class Wire:
    """A raw connection."""

    def __init__(self):
        self.it, self.text, self.stat = ctypes.c_void_p(), ctypes.create_string_buffer(SIZE), Stat()
        self.session, self.password = 0, b''
        self.result, self.thread = None, None  # of what it does in a thread of its own

    def connect(self, port, session_ms=SESSION_MS, of=None):
        """of: whose session it takes over. The code's name, or the session's length."""
        again = (c_int64(of.session), of.password) if of else ()
        code = getattr(LIB, 'wire_reopen' if of else 'wire_open')(byref(self.it), HOST, int(port), int(session_ms), *again)
        if code != 0:
            return CODES[code]
        self.session, self.password = LIB.wire_session(self.it), ctypes.string_at(LIB.wire_password(self.it), 16)
        return str(LIB.wire_session_ms(self.it))

    def call(self, name, words):
        """The code's name, or what the call has stored or counted."""
        stores, *least = CALLS.get(name, ('',))
        more = [self.text, c_size_t(SIZE)] * ('text' in stores) + [byref(self.stat)] * ('stat' in stores)
        self.text.value = b''
        code = getattr(LIB, 'wire_' + name)(self.it, *arguments(words, least), *more)
        if 'stat' in stores:
            os.environ.update({field: str(getattr(self.stat, field)) for field, _ in Stat._fields_})
        return CODES.get(code, str(code)) if code < 0 else f'{code or ""} {self.text.value.decode()}'.strip()

    def children(self, path):
        names = Names()
        must(LIB.wire_children(self.it, os.fsencode(path), byref(names)), path)
        return ' '.join(name.decode() for name in names.name[:names.n])

    def later(self, function, *given):
        self.thread = threading.Thread(target=lambda: setattr(self, 'result', function(*given)))
        self.thread.start()


class Wires:
    """What Words has of them. "open c" opens one, and its lines begin so:

        c create /a data ephemeral      arguments as in wire.h, without what they are mostly
        c get /a = data                 what comes of it, also in $said: what it stores or counts, or an error of CODES
        c later create /a               in a thread of its own; "done c" once that has ended
        c then = NONODE                 what came of it"""

    def __init__(self):
        self.named = {}

    def port_(self, address):
        return address.rpartition(':')[2] or self.server.port(0)

    def open(self, name, address='', session_ms=SESSION_MS):
        """open NAME [ADDRESS [MS]]: at a proxy, say. The server grants that timeout."""
        self.named[name] = Wire()
        return self.named[name].connect(self.port_(address), session_ms) == str(session_ms)

    def open_later(self, name, address):
        self.named[name] = Wire()
        self.named[name].later(self.named[name].connect, self.port_(address))

    def take_over(self, name, old, due=''):
        """take_over NAME OLD [CODE]: the session of another one, which may be gone."""
        self.named[name] = Wire()
        said = self.named[name].connect(self.server.port(0), of=self.named[old])
        return said == due if due else said not in CODES.values()

    def end_wires_(self):
        for wire in self.named.values():
            if wire.it:
                LIB.wire_close(wire.it)

    def wire_(self, name, verb, *words):
        """The last two words may be = and what is due."""
        wire, wanted = self.named[name], None
        if words[-2:-1] == ('=',):
            *words, _, wanted = words
        if verb == 'later':
            wire.later(wire.call, words[0], words[1:])
            return None
        if verb == 'then':
            wire.thread.join()
        said = wire.result if verb == 'then' else wire.children(*words) if verb == 'children' else wire.call(verb, words)
        os.environ['said'] = said
        return said == wanted if wanted is not None else said not in CODES.values()

    def done(self, name):
        return not self.named[name].thread.is_alive()

    def drop(self, name, how='close'):
        """Or abandon."""
        getattr(LIB, 'wire_' + how)(self.named[name].it)
        self.named[name].it = None

    def kill_session(self, name, due, password=''):
        """One try, with its password or the test's own, must come to that."""
        wire = self.named[name]
        password = password.encode().ljust(16, b'\0') if password else wire.password
        return LIB.wire_kill_session(HOST, self.server.port(0), c_int64(wire.session), password) == int(due)

    def expire(self, name, ms=WAIT_MS):
        wire = self.named[name]
        must(LIB.wire_expire_session(HOST, self.server.port(0), c_int64(wire.session), wire.password, int(ms)), name)

    # --- proxies

    def proxy(self, name, node=None):
        """proxy NAME [NODE]: before the server, or that one of the ensemble; its address is in the variable."""
        self.proxies[name] = self.server.proxy() if node is None else self.ensemble_.proxy(int(node))
        self.links.append(self.proxies[name])
        os.environ[name] = LIB.proxy_address(self.proxies[name]).decode()

    def fault(self, name, what, *words):
        """One of FAULTS."""
        function, *least = FAULTS[what]
        must(getattr(LIB, 'proxy_' + function)(self.proxies[name], *arguments(words, least)), what)

    def kept(self, name):
        must(LIB.proxy_wait_held(self.proxies[name], WAIT_MS), 'what is kept')

    def lost(self, name, ms=WAIT_MS):
        return LIB.proxy_wait_dropped(self.proxies[name], int(ms)) == 0

    def links_of(self, name, count):
        """Connections to clients."""
        return LIB.proxy_connections(self.proxies[name]) == int(count)

    # --- what a server says of itself

    def flw(self, what, *words):
        """flw CALL [WORD] [= NUMBER]: as fourlw.h has it; a connection stands for its session, - for nothing."""
        due = words[-1] if words[-2:-1] == ('=',) else None
        given = [c_int64(self.named[word].session) if word in self.named else None if word == '-' else os.fsencode(word)
                 for word in (words if due is None else words[:-2])]
        os.environ['said'] = str(getattr(LIB, 'flw_' + what)(HOST, self.server.port(0), *given))
        return due in (None, os.environ['said'])

    def packets(self, of=''):
        """Of a connection, of a session or of the server, as $received and $sent."""
        counts = c_int64(), c_int64()
        session = [c_int64(self.named[of].session if of in self.named else int(of))] if of else []
        rc = getattr(LIB, 'flw_session_packets' if of else 'flw_packets')(HOST, self.server.port(0), *session, *map(byref, counts))
        os.environ.update(received=str(counts[0].value), sent=str(counts[1].value))
        return rc == 0

    def flw_received(self):
        count = c_int64()
        must(LIB.flw_requests_received(HOST, self.server.port(0), byref(count)), 'requests')
        os.environ['received'] = str(count.value)

    def flw_text_(self, call, *words):
        text = ctypes.create_string_buffer(SIZE)
        return getattr(LIB, 'flw_' + call)(HOST, self.server.port(0), *words, text, c_size_t(SIZE)), text.value.decode()

# SPDX-License-Identifier: Apache-2.0
"""For the tests that are text: the servers of src/dev and what tests/lib has, in C as the other tests have it."""
import ctypes
import os
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int32, c_int64, c_longlong, c_size_t, c_ubyte, c_void_p

LIB = ctypes.CDLL(os.environ['ZKL_TEST_LIB'])
HOST = b'127.0.0.1'
WAIT_MS = 60000  # for what comes immediately, on a busy machine too
LASTING_MS = 600000
READY_MS = 240000
NODES_MAX = 6


class Failure(Exception):
    """Something is not as the test says."""


class Skipped(Exception):
    """A test can't be run here."""


class Options(Structure):
    """struct zks_options of zkserver.h."""
    _fields_ = [('nodes', c_size_t), ('tick_ms', c_int), ('min_session_ms', c_int), ('max_session_ms', c_int),
                ('sync_limit_ms', c_int), ('container_check_ms', c_int), ('fsync', c_bool), ('no_digest', c_bool),
                ('extended_types', c_bool), ('port', c_int), ('reconfig', c_bool), ('jvm_extra', c_char_p),
                ('cfg_extra', c_char_p), ('hosts', c_char_p * NODES_MAX), ('nets', c_char_p * NODES_MAX),
                ('node_extra', c_char_p * NODES_MAX), ('observer', c_bool * NODES_MAX), ('route', c_void_p),
                ('route_arg', c_void_p)]


class Stat(Structure):
    """struct wire_stat; its first names are those of the tests."""
    _fields_ = [('czxid', c_int64), ('mzxid', c_int64), ('ctime_ms', c_int64), ('mtime_ms', c_int64), ('version', c_int32),
                ('cversion', c_int32), ('aversion', c_int32), ('owner', c_int64), ('size', c_int32), ('below', c_int32),
                ('pzxid', c_int64)]


class Acl(Structure):
    _fields_ = [('perms', c_int32), ('scheme', c_char_p), ('id', c_char_p)]


class Names(Structure):
    _fields_ = [('n', c_size_t), ('name', POINTER(c_char_p))]


class Lag(Structure):
    _fields_ = [('at_ns', c_int64), ('counted_ns', c_int64)]


class Shared(Structure):
    """struct shared of shared.h: what a command that works leaves behind."""
    _fields_ = [('alive_ns', c_longlong), ('pid', c_int), ('begun', c_int), ('done', c_int), ('overlaps', c_int),
                ('signals', c_int * 65)]


HOOK = ctypes.CFUNCTYPE(c_size_t, c_int, c_int, POINTER(c_ubyte), c_size_t, c_void_p)

for kind, names in {c_char_p: 'zks_connect_string zks_dir zks_address zks_data_dir proxy_address',
                    c_int64: 'proxy_counts wire_session lag_end_ms net_now_ms', c_bool: 'is_poll lag_is_slow', Lag: 'lag_of_now',
                    None: 'proxy_hole proxy_heal proxy_cut zks_stop'}.items():
    for name in names.split():
        getattr(LIB, name).restype = kind


def must(rc, what):
    if rc:
        raise Failure(f'{what}: {rc}')


def wait_until(condition, ms=WAIT_MS):
    """As wait_until of check.h: true as soon as the condition is; a busy machine has more of the time."""
    lag = LIB.lag_of_now()
    while not condition():
        if lag.counted_ns >= ms * 10**6:
            return condition()
        LIB.lag_nap(byref(lag), lag.counted_ns > ms * 10**6 // 8)
    return True


class Servers:
    """One, or an ensemble."""

    def __init__(self, options):
        self.zks, error = c_void_p(), ctypes.create_string_buffer(512)
        rc = LIB.zks_start(byref(self.zks), byref(options), error, c_size_t(512))
        if rc == -2:
            raise Skipped(error.value.decode())
        must(rc, error.value.decode())
        self.list = LIB.zks_connect_string(self.zks).decode()
        self.folder = LIB.zks_dir(self.zks).decode()

    def do(self, verb, node):
        must(getattr(LIB, f'zks_{verb}_node')(self.zks, c_size_t(node)), f'{verb} {node}')

    def stop(self):
        LIB.zks_stop(self.zks)

    def wait_ready(self):
        must(LIB.zks_wait_ready(self.zks, READY_MS), 'ready')

    def leader(self):
        """Its number."""
        return LIB.zks_wait_leader(self.zks, READY_MS)

    def pid(self, node):
        return LIB.zks_pid(self.zks, c_size_t(node))

    def port(self, node):
        return LIB.zks_port(self.zks, c_size_t(node))

    def address(self, node):
        return LIB.zks_address(self.zks, c_size_t(node)).decode()

    def change_data(self, change, node, *what):
        """By snapshot.h; the node does not run."""
        error = ctypes.create_string_buffer(512)
        rc = getattr(LIB, 'snap_' + change)(LIB.zks_data_dir(self.zks, c_size_t(node)), *what, error, c_size_t(512))
        must(rc, error.value.decode())

    def session(self, node=0):
        """A raw connection."""
        wire = c_void_p()
        must(LIB.wire_open(byref(wire), HOST, self.port(node), LASTING_MS), 'a raw connection')
        return wire

    def proxy(self, node=0):
        proxy = c_void_p()
        must(LIB.proxy_start(byref(proxy), HOST, self.port(node)), 'a proxy')
        return proxy

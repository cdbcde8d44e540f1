# SPDX-License-Identifier: Apache-2.0
"""The file that all processes of a run map. In 8-byte numbers of this machine: at 0 how many samples there are; from
4096 on 4096 bytes for each lock: who is inside, and at 64 when its last holder began to give it back
(CLOCK_MONOTONIC, ns); behind 256 locks the samples, in ns."""
import mmap
import struct

LOCK_AT = LOCK_BYTES = 4096
LOCKS_MAX = 256
SAMPLE_AT = LOCK_AT + LOCKS_MAX * LOCK_BYTES
SAMPLES_MAX = 1 << 20
BYTES = SAMPLE_AT + 8 * SAMPLES_MAX


class Board:
    def __init__(self, path):
        self.path = path
        with open(path, 'w+b') as file:
            file.truncate(BYTES)
            self.map = mmap.mmap(file.fileno(), BYTES)

    def clear(self):
        """Nobody may be inside."""
        for lock in range(LOCKS_MAX):
            at = LOCK_AT + lock * LOCK_BYTES
            inside = struct.unpack_from('=q', self.map, at)[0]
            if inside != 0:
                raise RuntimeError(f'VIOLATION: {inside} is inside lock {lock} after the run')
        struct.pack_into('=q', self.map, 0, 0)

    def samples(self):
        """In order."""
        count = min(struct.unpack_from('=q', self.map, 0)[0], SAMPLES_MAX)
        return sorted(struct.unpack_from(f'={count}q', self.map, SAMPLE_AT))

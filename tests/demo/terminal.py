# SPDX-License-Identifier: Apache-2.0
"""A command on a pseudo-terminal."""
import os
import pty
import subprocess


def run(command, **environment):
    """Its exit status, and all that it wrote there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                          env={**os.environ, 'TERM': 'xterm', **environment}) as running:
        os.close(theirs)
        text = b''
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # Linux says so when the last writer is gone
            pass
        os.close(ours)
        return running.wait(timeout=10), text.decode()

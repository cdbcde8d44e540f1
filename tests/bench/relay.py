# SPDX-License-Identifier: Apache-2.0
"""The way from one client to its servers: a port for each of them. It can be cut as if a cable were pulled: nothing passes
and nobody is told. What comes meanwhile is kept, as TCP would send it again; but a connection that its client has given
up by the end of the cut reaches the server as if it had never sent anything more."""
import os
import select
import socket
import threading

CHUNK = 1 << 16


class Link:
    """One connection."""

    def __init__(self, client, port):
        self.client, self.port = client, port
        self.server = None  # not before something may pass
        self.kept = {True: b'', False: b''}  # to the server, and from it
        self.ended = {True: False, False: False}  # the client has, the server has

    def connect(self):
        self.server = socket.create_connection(('127.0.0.1', self.port))

    def receive(self, from_client):
        try:
            part = (self.client if from_client else self.server).recv(CHUNK)
        except OSError:
            part = b''
        self.kept[from_client] += part
        self.ended[from_client] = not part

    def pass_on(self):
        """What is kept; False: it is over. The other side reads, or its buffer has room for what these clients send."""
        if self.server is None:
            self.connect()
        try:
            self.server.sendall(self.kept[True])
            self.client.sendall(self.kept[False])
        except OSError:
            return False
        self.kept = {True: b'', False: b''}
        return not any(self.ended.values())

    def close(self):
        self.client.close()
        if self.server is not None:
            self.server.close()


class Relay:
    def __init__(self, ports):
        self.listeners = {}
        for port in ports:
            listener = socket.socket()
            listener.bind(('127.0.0.1', 0))
            listener.listen(64)
            self.listeners[listener] = port
        self.address = ','.join(f'127.0.0.1:{listener.getsockname()[1]}' for listener in self.listeners)
        self.links = []
        self.is_cut = False
        self.order = None  # 'cut', 'heal' or 'stop', until it is obeyed
        self.obeyed = threading.Event()
        self.wake_read, self.wake_write = os.pipe()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _do(self, order):
        self.obeyed.clear()
        self.order = order
        os.write(self.wake_write, b'.')
        self.obeyed.wait()

    def cut(self):
        """From its return on nothing passes."""
        self._do('cut')

    def heal(self):
        self._do('heal')

    def stop(self):
        self._do('stop')
        self.thread.join()
        for link in self.links:
            link.close()
        for listener in self.listeners:
            listener.close()
        os.close(self.wake_read)
        os.close(self.wake_write)

    def _obey(self):
        os.read(self.wake_read, CHUNK)
        if self.order == 'heal':
            # Who has hung up meanwhile is not heard of any more.
            over = [link for link in self.links if link.ended[True]]
            self.links = [link for link in self.links if link not in over]
            for link in over:
                link.close()
        self.is_cut = self.order == 'cut'
        stop = self.order == 'stop'
        if not stop and not self.is_cut:
            self._pass_all()
        self.obeyed.set()
        return not stop

    def _pass_all(self):
        over = [link for link in self.links if not link.pass_on()]
        self.links = [link for link in self.links if link not in over]
        for link in over:
            link.close()

    def _sides(self):
        """Each socket that may have something: of which link, and whether it is the client's."""
        found = {}
        for link in self.links:
            if not link.ended[True]:
                found[link.client] = link, True
            if link.server is not None and not link.ended[False]:
                found[link.server] = link, False
        return found

    def _run(self):
        more = True
        while more:
            sides = self._sides()
            ready = select.select([self.wake_read, *self.listeners, *sides], [], [])[0]
            for one in ready:
                if one in self.listeners:
                    self.links.append(Link(one.accept()[0], self.listeners[one]))
                elif one in sides:
                    link, from_client = sides[one]
                    link.receive(from_client)
            if self.wake_read in ready:
                more = self._obey()
            elif not self.is_cut:
                self._pass_all()

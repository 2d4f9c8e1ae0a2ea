"""A TCP relay that can be cut, so that a test can take the cluster away from a server and restore it."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Listens on a port of its own and forwards to another port of the loopback interface."""

    def __init__(self, target_port: int) -> None:
        self._target = "127.0.0.1", target_port
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def disconnect(self) -> None:
        """Ends every connection and closes new ones until `reconnect`."""
        with self._lock:
            self._is_cut = True
            self._end_all()

    def reconnect(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.disconnect()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        with self._lock:
            if self._is_cut:
                client.close()
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                return
            self._open |= {client, server}
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with self._lock:
            for each in (source, sink):
                _end(each)
                self._open.discard(each)

    def _end_all(self) -> None:
        for each in self._open:
            _end(each)
        self._open.clear()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

"""A TCP load balancer like a Service: spreads new connections over the ready replicas, and keeps open ones."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from itertools import count

_PROBE_SECONDS = 0.1
_Ready = Callable[[], bool]


class Balancer:
    """Listens on `port` from construction to `close`. `replicas` maps the port of each replica to its readiness
    probe."""

    def __init__(self, port: int, replicas: Mapping[int, _Ready]) -> None:
        self._replicas = replicas
        self._ready: tuple[int, ...] = ()
        self._turns = count()
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port), reuse_port=False, backlog=1024)
        for target in (self._probe, self._accept):
            threading.Thread(target=target, daemon=True).start()

    @property
    def ready(self) -> tuple[int, ...]:
        return self._ready

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _probe(self) -> None:
        while not self._over.wait(_PROBE_SECONDS):
            self._ready = tuple(port for port, is_ready in self._replicas.items() if is_ready())

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            ready = self._ready
            try:
                if not ready:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", ready[next(self._turns) % len(ready)]))
            except OSError:
                client.close()
                continue
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()

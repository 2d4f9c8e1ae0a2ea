"""Connections of the HTTPS clients that stay open between two requests, as those of client-go do.

A handshake with client certificates costs the machine several times as much as the request after it, and the tests of
both clusters send tens of thousands of requests.
"""

from __future__ import annotations

import select
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from http.client import HTTPSConnection

_MAX_CONNECTIONS = 16
# less than any server keeps an idle connection
_MAX_IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Idle:
    url: str
    tls: ssl.SSLContext
    connection: HTTPSConnection
    since: float


class IdleConnections:
    """At most 16 in a process, each for the server and the credentials that it was opened with."""

    def __init__(self) -> None:
        self._idle: deque[_Idle] = deque()
        self._lock = threading.Lock()

    def take(self, url: str, tls: ssl.SSLContext) -> HTTPSConnection | None:
        """A connection that the server has not closed, for one caller only."""
        while found := self._pop(url, tls):
            if time.monotonic() - found.since < _MAX_IDLE_SECONDS and not _has_input(found.connection):
                return found.connection
            found.connection.close()
        return None

    def give_back(self, url: str, tls: ssl.SSLContext, connection: HTTPSConnection) -> None:
        """Keeps a connection whose last response was read to its end, unless that response has closed it."""
        if connection.sock is None:
            return
        with self._lock:
            self._idle.append(_Idle(url, tls, connection, time.monotonic()))
            oldest = self._idle.popleft() if len(self._idle) > _MAX_CONNECTIONS else None
        if oldest:
            oldest.connection.close()

    def _pop(self, url: str, tls: ssl.SSLContext) -> _Idle | None:
        with self._lock:
            for each in reversed(self._idle):
                if each.tls is tls and each.url == url:
                    self._idle.remove(each)
                    return each
        return None


def _has_input(connection: HTTPSConnection) -> bool:
    """True if the server has closed the connection, or sent what nobody asked for."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))

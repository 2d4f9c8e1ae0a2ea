"""python -m benchmarks.proxy.byte_source PORT MIB: stands for a cluster whose exec sends bytes as fast as it can.

A request for an upgrade is answered by a 101 and so many MiB; a review names the account of the proxy, and everything
else is 503: the proxy never becomes ready, and forwards.
"""

from __future__ import annotations

import os
import socket
import sys
from threading import Thread

import orjson

_BLOCK = 64 * 1024
_SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
_REVIEW = orjson.dumps({"status": {"userInfo": {"username": "bench-proxy"}}})


def main(port: int, mebibytes: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as listening:
        while True:
            connection, _ = listening.accept()
            Thread(target=_serve, args=(connection, mebibytes), daemon=True).start()


def _serve(connection: socket.socket, mebibytes: int) -> None:
    block = os.urandom(_BLOCK)
    with connection:
        try:
            head = _head(connection)
            if b"upgrade: spdy/3.1" in head.lower():
                connection.sendall(_SWITCHED)
                for _ in range(mebibytes * 1024 * 1024 // _BLOCK):
                    connection.sendall(block)
            elif b"selfsubjectreviews" in head:
                connection.sendall(_response(b"201 Created", _REVIEW))
            else:
                connection.sendall(_response(b"503 Service Unavailable", b"{}"))
        except OSError:
            return


def _head(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received and (data := connection.recv(_BLOCK)):
        received += data
    return received


def _response(status: bytes, body: bytes) -> bytes:
    lines = b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d" % len(body)
    return b"HTTP/1.1 %b\r\n%b\r\n\r\n%b" % (status, lines, body)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

"""Malformed HTTP and TLS at the listener: a response or a closed connection, never a hang, a 5xx or a traceback."""

from __future__ import annotations

import os
import random
import re
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.faults.support.process_usage import memory_mib, other_descriptors
from tests.faults.support.sizes import new_seed, size

CLIENTS = 16
# the server waits for the rest of an incomplete request: no response comes after this time
SILENCE_SECONDS = 0.3
# from the end of the request to the end of the connection
ANSWER_SECONDS = 60.0
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
# text of a Python error in a response
TRACES = (b"Traceback", b'File "', b".py")
# 501 and 505: a Transfer-Encoding or a version of HTTP that no request of ours has
ALLOWED_SERVER_ERRORS = {501, 503, 504, 505}

LIST, ONE = tenants_path(ROOT), tenants_path(ROOT, "root")
VALID_REQUESTS = (
    f"GET {LIST}?limit=1 HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    f"GET {ONE} HTTP/1.1\r\nHost: a\r\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n\r\n".encode(),
    f"GET {LIST}?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    f"POST {LIST}?dryRun=All HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    "Content-Length: 2\r\n\r\n{}".encode(),
    f"PATCH {ONE}?dryRun=All HTTP/1.1\r\nHost: a\r\nContent-Type: application/merge-patch+json\r\n"
    "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".encode(),
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /livez HTTP/1.0\r\n\r\n",
)
TOKENS = (
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"%", b"%00", b"%ff", b"/../", b"//", b"?", b"#", b"\xff",
    b"\xc3\x28",
    b"HTTP/1.1", b"HTTP/9.9", b"HTTP/1.", b"GET", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"Content-Length: -1\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Connection: upgrade\r\n",
    b"Upgrade: websocket\r\n", b"Host: b\r\n", b"X-Remote-User: admin\r\n", b"Authorization: Bearer \xff\r\n",
    b"Impersonate-User: x\r\n", b"Accept: \0\r\n", b" folded\r\n", b"A" * 9000, b"0\r\n\r\n", b"ffffffffffffffff\r\n",
    b"-1\r\n", b";ext=1\r\n", b"?watch=true", b"&timeout=1ns", b"&resourceVersion=18446744073709551616",
)  # fmt: skip

Mutation = Callable[[random.Random, bytes], bytes]


def insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(TOKENS) + data[at:]


def replace(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(TOKENS) + data[at + rng.randint(0, 20) :]


def flip(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(1, len(data))]


def repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    part = data[start : start + rng.randint(1, 60)]
    return data[:start] + part * rng.randint(2, 20) + data[start:]


def pipeline(rng: random.Random, data: bytes) -> bytes:
    return data + rng.choice(VALID_REQUESTS)


def noise(rng: random.Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.randint(1, 200))


MUTATIONS: tuple[Mutation, ...] = (insert, insert, replace, flip, cut, repeat, pipeline, noise)


def mutated(rng: random.Random) -> bytes:
    data = rng.choice(VALID_REQUESTS)
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(MUTATIONS)(rng, data) or b"\0"
    return data


@contextmanager
def connected(client: Client) -> Iterator[ssl.SSLSocket]:
    parts = urlsplit(client.url)
    assert parts.hostname is not None
    plain = socket.create_connection((parts.hostname, parts.port), timeout=ANSWER_SECONDS)
    with closing(client.tls.wrap_socket(plain, server_hostname=parts.hostname)) as connection:
        yield connection


def exchange(client: Client, data: bytes, *, silence: float = SILENCE_SECONDS, answered: bool = False) -> bytes:
    """Returns all bytes until the end of the connection. If the server is silent for so long, if it is `answered` after
    the beginning of the response, the client half closes it. Raises TimeoutError if the server does not close it
    then."""
    received = b""
    with connected(client) as connection, suppress(ssl.SSLError, ConnectionError):
        connection.sendall(data)
        if answered:
            received += connection.recv(65536)
        connection.settimeout(silence)
        with suppress(TimeoutError):
            while more := connection.recv(65536):
                received += more
            return received
        connection.settimeout(ANSWER_SECONDS)
        # on the plain socket: a TLS shutdown would wait for the peer's
        with closing(socket.socket(fileno=os.dup(connection.fileno()))) as below:
            below.shutdown(socket.SHUT_WR)
        while more := connection.recv(65536):
            received += more
    return received


def check_response(data: bytes, received: bytes) -> list[int]:
    codes = [int(code) for code in STATUS.findall(received)]
    assert all(code < 500 or code in ALLOWED_SERVER_ERRORS for code in codes), (data, received[:2000])
    assert not any(trace in received for trace in TRACES), (data, received[:2000])
    return codes


def test_malformed_http_gets_an_answer_or_a_closed_connection(own: EmbeddedCluster) -> None:
    seed, count = new_seed(), size(short=600, full=20_000)
    client, pid = own.client(), own.server.pid
    rng = random.Random(seed)
    requests = [mutated(rng) for _ in range(count)]
    for data in VALID_REQUESTS:
        assert check_response(data, exchange(client, data, answered=True))
    before, memory_before = other_descriptors(pid), memory_mib(pid)[0]

    silence = Pace(client).limit(SILENCE_SECONDS)

    def ask(data: bytes) -> list[int]:
        return check_response(data, exchange(client, data, silence=silence))

    with ThreadPoolExecutor(CLIENTS) as pool:
        codes = Counter(code for found in pool.map(ask, requests) for code in found)
    print(f"{count} connections: {dict(codes)}; {memory_before:.0f} MiB, then {memory_mib(pid)[0]:.0f}")
    # the requests must be neither all valid nor all invalid
    assert {200, 400} <= codes.keys()
    wait_until("no connection is left open", lambda: other_descriptors(pid) <= before + 2)
    assert memory_mib(pid)[0] - memory_before < 32
    assert client.get("/readyz").status == 200
    assert "Traceback" not in own.server.log(), own.server.tail()


def test_malformed_tls_leaves_no_connection_open(own: EmbeddedCluster) -> None:
    rng, count = random.Random(new_seed()), size(short=200, full=3000)
    client, pid = own.client(), own.server.pid
    before = other_descriptors(pid)
    parts = urlsplit(client.url)
    hello = bytes.fromhex("16030100f4010000f00303")
    for _ in range(count):
        plain = socket.create_connection((parts.hostname, parts.port), timeout=ANSWER_SECONDS)
        with closing(plain), suppress(ConnectionError):
            plain.sendall(hello[: rng.randint(0, len(hello))] + rng.randbytes(rng.randint(1, 400)))
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(65536):
                pass
    wait_until("no connection is left open", lambda: other_descriptors(pid) <= before + 2)
    assert client.get("/readyz").status == 200
    assert "Traceback" not in own.server.log(), own.server.tail()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 2000 + b"\r\n", id="very many headers"),
        pytest.param(b"GET /" + b"a" * 2**21 + b" HTTP/1.1\r\nHost: a\r\n\r\n", id="a very long target"),
        pytest.param(
            f"POST {LIST} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{{}}".encode(),
            id="two lengths",
        ),
    ],
)
def test_a_rejected_request_closes_the_connection(own: EmbeddedCluster, data: bytes) -> None:
    codes = check_response(data, exchange(own.client(), data))
    assert len(codes) <= 1
    assert set(codes) <= {400, 413, 414, 431}

"""aiohttp's parser gets whole heads, one request after the other, within limits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser
from aiohttp.streams import StreamReader

from apiserver.meta.errors import BadRequest
from apiserver.request.bytes_in_flight import UNIDENTIFIED, BytesInFlight, Reservation
from apiserver.server.bounded_parser import BoundedParser, HeadLimits

LIMITS = HeadLimits(line=5000, head=10_000, headers=200, proxied_head=40_000, proxied_headers=500)
GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n\r\n\r\nxy"
CHUNKED = (
    b"PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;ext=1\r\n\r\n\n\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
)
UPGRADE = b"GET /d HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
LARGE = b"GET /e HTTP/1.1\r\nHost: h\r\nA: " + b"a" * 9000 + b"\r\n\r\n"
ALL = b"\r\n".join([GET, POST, CHUNKED, UPGRADE, b"\r\n" + LARGE, GET])
EXPECTED = [
    ("GET", "/a", b""),
    ("POST", "/b", b"\r\n\r\nxy"),
    ("PUT", "/c", b"\r\n\n0123456789"),
    ("GET", "/d", b""),
    ("GET", "/e", b""),
    ("GET", "/a", b""),
]


class CountingParser:
    """Counts the calls of aiohttp's parser."""

    def __init__(self, parser: HttpRequestParser) -> None:
        self._parser = parser
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._parser, name)

    def feed_data(self, data: bytes) -> object:
        self.calls += 1
        return self._parser.feed_data(data)


class Connection:
    """A parser without a network, and a server that handles each request as soon as its body has arrived."""

    def __init__(
        self,
        bytes_in_flight: BytesInFlight | None = None,
        *,
        is_front_proxy: Callable[[], bool] = lambda: False,
        handles: bool = True,
    ) -> None:
        self._handles = handles
        self._queue: list[tuple[str, str, StreamReader]] = []
        self.parsers: list[CountingParser] = []
        self.requests: list[tuple[str, str, bytes]] = []
        self.parser = BoundedParser(
            self._create,  # type: ignore[arg-type]
            LIMITS,
            reservation=Reservation(bytes_in_flight),
            is_front_proxy=is_front_proxy,
        )

    def _create(self, headers: int) -> CountingParser:
        loop = asyncio.get_running_loop()
        parser = HttpRequestParser(BaseProtocol(loop), loop, 2**16, max_headers=headers, max_field_size=2**20)
        self.parsers.append(CountingParser(parser))
        return self.parsers[-1]

    def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            messages, upgraded, tail = self.parser.feed_data(piece)
            assert (upgraded, tail) == (False, b"")
            self._queue += [(message.method, message.path, payload) for message, payload in messages]
            while self._handles and self._queue and self._queue[0][2].is_eof():
                method, path, payload = self._queue.pop(0)
                self.requests.append((method, path, payload.read_nowait()))
                if self.parser.finish_request():
                    self.feed(b"")

    @property
    def payload(self) -> StreamReader:
        """The payload of the request that is being handled."""
        return self._queue[0][2]


def pieces_of(data: bytes, sizes: Iterable[int]) -> Sequence[bytes]:
    pieces, start = [], 0
    for size in sizes:
        if start >= len(data):
            break
        pieces.append(data[start : start + size])
        start += size
    return pieces


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 64, 1000, 100_000])
async def test_requests_are_the_same_in_pieces_of_any_size(size: int) -> None:
    connection = Connection()
    connection.feed(*pieces_of(ALL, [size] * len(ALL)))
    assert connection.requests == EXPECTED


@pytest.mark.parametrize("seed", range(20))
async def test_requests_are_the_same_in_random_pieces(seed: int) -> None:
    rng, connection = random.Random(seed), Connection()
    connection.feed(*pieces_of(ALL, (rng.choice((1, 2, 7, 50, 5000)) for _ in ALL)))
    assert connection.requests == EXPECTED


async def test_the_parser_sees_a_head_once_however_small_its_pieces_are() -> None:
    connection = Connection()
    connection.feed(*pieces_of(LARGE, [1] * len(LARGE)))
    assert [each.calls for each in connection.parsers] == [1]


async def test_the_next_request_waits_until_the_current_one_has_finished() -> None:
    connection = Connection(handles=False)
    connection.feed(GET + GET[:10])
    connection.feed(GET[10:])
    assert [each.calls for each in connection.parsers] == [1]
    assert connection.parser.finish_request()
    connection.feed(b"")
    assert [each.calls for each in connection.parsers] == [2]
    assert not connection.parser.finish_request()


async def test_only_a_little_is_read_ahead() -> None:
    """Without it, the end of a connection would not be noticed while a watch is in progress."""
    connection, holding = Connection(handles=False), []
    for data in (GET, GET * 10, GET * 1000):
        connection.feed(data)
        holding.append(connection.parser.is_holding)
    assert holding == [False, False, True]


def head(line: int = 20, headers: int = 3, size: int = 100) -> bytes:
    """A head with a request line of this length, and this number of headers of this size."""
    target = b"/" + b"a" * (line - len("GET / HTTP/1.1\r\n"))
    fields = [b"Host: h\r\n", *[b"A: " + b"a" * (size - 5) + b"\r\n"] * (headers - 1)]
    return b"GET " + target + b" HTTP/1.1\r\n" + b"".join(fields) + b"\r\n"


@pytest.mark.parametrize(
    ("data", "direct", "proxied"),
    [
        pytest.param(head(line=5000), 0, 0, id="the longest line"),
        pytest.param(head(line=5001), 414, 414, id="a longer line"),
        pytest.param(b"a" * 5001, 414, 414, id="a line without an end"),
        pytest.param(head(headers=2, size=9900), 0, 0, id="one long header"),
        pytest.param(head(headers=2, size=10_000), 431, 0, id="a longer header"),
        pytest.param(head(headers=2, size=40_000), 431, 431, id="a header that is too long for a proxy"),
        pytest.param(head(headers=95, size=100), 0, 0, id="a long head"),
        pytest.param(head(headers=101, size=100), 431, 0, id="a longer head"),
        pytest.param(head(headers=200, size=7), 0, 0, id="the most headers"),
        pytest.param(head(headers=201, size=7), 431, 0, id="more headers"),
        pytest.param(head(headers=500, size=7), 431, 0, id="the most headers of a proxy"),
        pytest.param(head(headers=501, size=7), 431, 431, id="more headers of a proxy"),
        pytest.param(head(headers=500, size=100)[:-2], 431, 431, id="a head without an end"),
    ],
)
async def test_heads_are_limited(data: bytes, direct: int, proxied: int) -> None:
    for is_front_proxy, code in ((False, direct), (True, proxied)):
        for pieces in ([data], pieces_of(data, [100] * len(data))):
            assert _code(Connection(is_front_proxy=lambda: is_front_proxy), pieces) == code  # noqa: B023


def _code(connection: Connection, pieces: Sequence[bytes]) -> int:
    try:
        connection.feed(*pieces)
    except HttpProcessingError as error:
        # nothing more is parsed
        connection.feed(GET)
        assert connection.requests == []
        return error.code
    assert len(connection.requests) == 1
    return 0


async def test_large_heads_of_unidentified_clients_share_their_memory() -> None:
    shared = BytesInFlight(per_user=22_000)
    first, second, third = (Connection(shared, handles=False) for _ in range(3))
    first.feed(LARGE)
    second.feed(LARGE)
    with pytest.raises(HttpProcessingError) as raised:
        third.feed(LARGE)
    assert raised.value.code == 429
    # the user of the first request accounts for it from now on, the second has finished
    assert first.parser.claim_head() > len(LARGE)
    second.parser.finish_request()
    with pytest.raises(HttpProcessingError):
        Connection(BytesInFlight(per_user=5000)).feed(LARGE[:-1])
    for _ in range(2):
        Connection(shared, handles=False).feed(LARGE[:-1])


async def test_a_lost_connection_frees_its_memory() -> None:
    shared = BytesInFlight(per_user=25_000)
    for _ in range(10):
        connection = Connection(shared, handles=False)
        connection.feed(LARGE + LARGE[:-10])
        connection.parser.close()
    shared.check(UNIDENTIFIED, 25_000)


async def test_a_body_that_arrives_with_its_head_is_no_large_head() -> None:
    connection = Connection(BytesInFlight(per_user=0))
    connection.feed(b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n" + b"x" * 9000)
    assert [len(body) for _, _, body in connection.requests] == [9000]


async def test_small_heads_and_those_of_a_front_proxy_are_not_counted_for_unidentified_clients() -> None:
    none = BytesInFlight(per_user=0)
    Connection(none).feed(GET)
    proxied = Connection(none, is_front_proxy=lambda: True, handles=False)
    proxied.feed(LARGE)
    assert proxied.parser.claim_head() > len(LARGE)


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"zz\r\n", id="a size that is no number"),
        pytest.param(b"-1\r\n", id="a negative size"),
        pytest.param(b"1_0\r\n", id="a size in Python's form"),
        pytest.param(b"1\r\nab\r\n", id="a chunk that is too long"),
        pytest.param(b"1;" + b"x" * 300, id="an endless extension"),
        pytest.param(b"1" * 300, id="an endless size"),
        pytest.param(b"0\r\n" + b"a: b\r\n" * 500, id="endless trailers"),
        pytest.param(b"0\r\na: " + b"b" * 300, id="an endless trailer"),
    ],
)
async def test_a_malformed_body_ends_its_request_at_once(rest: bytes) -> None:
    start = b"PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
    for pieces in ([rest], pieces_of(rest, [1] * len(rest))):
        connection = Connection(handles=False)
        connection.feed(start)
        with pytest.raises(HttpProcessingError) as raised:
            connection.feed(*pieces)
        assert raised.value.code == 400
        with pytest.raises(BadRequest, match="malformed request"):
            await connection.payload.readany()

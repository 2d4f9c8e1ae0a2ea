"""The end of a request body is found in pieces of any size."""

from __future__ import annotations

import pytest
from aiohttp.http_exceptions import BadHttpMessage

from apiserver.server.body_framing import BodyFraming, ChunkedFraming, LengthFraming


@pytest.mark.parametrize(
    ("body", "framing"),
    [
        pytest.param(b"abc", lambda: LengthFraming(3), id="a length"),
        pytest.param(b"0\r\n\r\n", ChunkedFraming, id="no chunk"),
        pytest.param(b"3\r\n\r\n\r\r\n0\r\n\r\n", ChunkedFraming, id="a chunk of line breaks"),
        pytest.param(b"003;a=b\r\nabc\r\nB\r\n0\r\n\r\n0\r\n\r\n0\r\n0\r\n\r\n", ChunkedFraming, id="two chunks"),
        pytest.param(b"1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\n", ChunkedFraming, id="trailers"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_what_follows_a_body_is_not_part_of_it(body: bytes, framing: type[BodyFraming], size: int) -> None:
    found, used, sent = framing(), 0, body + b"GET / HTTP/1.1\r\n"
    for start in range(0, len(sent), size):
        piece = sent[start : start + size]
        accepted = found.feed(piece)
        used += accepted
        if accepted < len(piece):
            break
    assert (used, found.ended) == (len(body), True)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\r\n", id="no size"),
        pytest.param(b"x\r\n", id="no number"),
        pytest.param(b"-1\r\n", id="a negative size"),
        pytest.param(b"0x1\r\n", id="a prefix"),
        pytest.param(b"1 2\r\n", id="two sizes"),
        pytest.param(b"1" * 17 + b"\r\n", id="too many digits"),
        pytest.param(b"1\n", id="no carriage return"),
        pytest.param(b"1;" + b"a" * 256, id="a long extension"),
        pytest.param(b"0\r\nA: " + b"a" * 256, id="a long trailer"),
        pytest.param(b"0\r\n" + b"A: a\r\n" * 300, id="many trailers"),
    ],
)
def test_malformed_and_endless_framing_is_rejected(body: bytes) -> None:
    with pytest.raises(BadHttpMessage):
        ChunkedFraming().feed(body)

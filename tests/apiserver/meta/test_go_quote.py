"""The expected texts are those of Go's strconv.Quote."""

from __future__ import annotations

import pytest

from apiserver.meta.go_quote import go_quote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("", '""', id="nothing"),
        pytest.param("a b", '"a b"', id="a space"),
        pytest.param('a"b\\', r'"a\"b\\"', id="a quote and a backslash"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="control characters with a name"),
        pytest.param("\0\x1f\x7f", r'"\x00\x1f\x7f"', id="other control characters"),
        pytest.param("ä😀�", '"ä😀�"', id="letters and symbols"),
        pytest.param("\u00a0\u2028\U000e0001", r'"\u00a0\u2028\U000e0001"', id="characters that cannot be printed"),
    ],
)
def test_text_is_quoted_like_in_go(text: str, quoted: str) -> None:
    assert go_quote(text) == quoted

"""The expected texts are those of Go's strconv.Quote."""

from __future__ import annotations

import tracemalloc

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


@pytest.mark.parametrize("text", ["\x7f" * 500_000, "\u0378" * 500_000, '"' + "\u0378" * 500_000])
def test_quoting_takes_little_more_memory_than_the_result(text: str) -> None:
    """ATTACK-19: a list of the quoted characters would take ten times as much."""
    tracemalloc.start()
    try:
        quoted = go_quote(text)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(quoted)
    finally:
        tracemalloc.stop()

from __future__ import annotations

from tests.apiserver.endpoints.request_contexts import make_context


def test_a_repeated_warning_is_added_once() -> None:
    context = make_context()
    for text in ("b", "a", "b"):
        context.warn(text)
    assert context.warnings == ["b", "a"]


def test_warnings_beyond_the_limit_are_dropped() -> None:
    """ATTACK-13: every warning is compared with those before it."""
    context = make_context()
    for number in range(10_000):
        context.warn(str(number))
    assert context.warnings == [str(number) for number in range(4096)]

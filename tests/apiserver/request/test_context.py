from __future__ import annotations

from tests.apiserver.endpoints.request_contexts import make_context


def test_a_warning_is_kept_once_in_its_order() -> None:
    context = make_context()
    for text in ("b", "a", "b"):
        context.warn(text)
    assert context.warnings == ["b", "a"]


def test_no_more_warnings_are_kept_than_can_be_sent() -> None:
    """ATTACK-13: each is compared with those before it."""
    context = make_context()
    for number in range(10_000):
        context.warn(str(number))
    assert context.warnings == [str(number) for number in range(4096)]

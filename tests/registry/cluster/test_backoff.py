from __future__ import annotations

from collections.abc import Iterator

from registry.cluster.backoff import Backoff


def _jitters() -> Iterator[float]:
    yield from (0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0)


def test_backoff_doubles_to_its_limit_with_jitter_and_restarts_after_a_reset() -> None:
    jitters = _jitters()
    backoff = Backoff(first=1.0, longest=5.0, jitter=lambda: next(jitters))
    assert [backoff.next() for _ in range(4)] == [1.0, 3.0, 5.0, 5.0]
    backoff.reset()
    assert backoff.next() == 2.0

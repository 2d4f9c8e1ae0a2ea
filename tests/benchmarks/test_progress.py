"""A terminal shows that a benchmark goes on; a pipe has only the results."""

from __future__ import annotations

import io

from benchmarks.progress import Progress
from tests.fake_clock import FakeClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_line_every_five_seconds_with_what_is_left() -> None:
    stream, clock = Terminal(), FakeClock()
    progress = Progress("Tenants created", 2000, stream=stream, clock=clock)
    for _ in range(1500):
        clock.advance(1 / 128)
        progress.step()
    assert stream.getvalue().splitlines() == [
        "  Tenants created: 640 of 2,000, 1,360 left, after 5 s",
        "  Tenants created: 1,280 of 2,000, 720 left, after 10 s",
    ]


def test_a_count_without_a_total_says_how_far_it_is() -> None:
    stream, clock = Terminal(), FakeClock()
    progress = Progress("writes of our server", stream=stream, clock=clock)
    clock.advance(6)
    progress.reach(1234)
    assert stream.getvalue() == "  writes of our server: 1,234, after 6 s\n"


def test_a_pipe_has_no_line() -> None:
    stream, clock = io.StringIO(), FakeClock()
    progress = Progress("Tenants created", 2000, stream=stream, clock=clock)
    clock.advance(60)
    progress.step()
    assert stream.getvalue() == ""

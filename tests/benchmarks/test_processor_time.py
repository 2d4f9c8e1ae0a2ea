"""The processor time of one call of many, in process."""

from __future__ import annotations

import time

import pytest

from benchmarks.features.applications import processor_ms


@pytest.mark.parametrize(
    ("calls", "least"), [pytest.param(1, 20.0, id="one call"), pytest.param(20, 1.0, id="twenty calls")]
)
async def test_the_time_is_that_of_one_call(calls: int, least: float) -> None:
    async def work() -> None:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    assert least <= await processor_ms(work, calls=calls) < least * 10

"""The layers on both hosts: one table, the same verdicts, the same texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.hosts import E2eHost
from tests.e2e.policylayers import Layers, layers_in_force
from tests.policies.cases import Case
from tests.policies.table import HOST_CASES


@pytest.fixture(scope="module")
def layers(host: E2eHost) -> Iterator[Layers]:
    with layers_in_force(host) as running:
        yield running


@pytest.mark.parametrize("case", HOST_CASES, ids=lambda case: case.id)
def test_the_host_says_what_the_table_says(layers: Layers, case: Case) -> None:
    assert layers.ask(case) == layers.expected(case)

"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from tests.fakes import FakeClock, FakeCluster

# how long an example takes is the machine's affair, and no property
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# here, because a plugin is named by the outermost conftest alone
pytest_plugins = ["tests.server_fixtures"]

OURS = ["apiserver", "registry", "admission", "controller", "tenant_apiserver"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """What one process runs one after the other, where there are several: a suite's tests of a host that they share,
    or the tests of a file."""
    path = item.path.relative_to(Path(__file__).parent)
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    shared = parameters.get("running_cluster")
    item.add_marker(pytest.mark.xdist_group(f"{path.parts[0]}/{shared}" if shared else str(path)))


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """A blocking call of our own code on the event loop is an error."""
    with blockbuster_ctx(OURS):
        yield


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()

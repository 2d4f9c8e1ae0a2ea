"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from tests.fakes import FakeClock, FakeCluster

# the duration of an example depends on the machine
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# only the outermost conftest may name plugins
pytest_plugins = ["tests.server_fixtures"]

PROJECT_PACKAGES = ["apiserver", "registry", "admission", "controller", "tenant_apiserver"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Groups tests for pytest-xdist: the tests of a suite that share a cluster, or else of a file, run in one
    process."""
    path = item.path.relative_to(Path(__file__).parent)
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    shared = parameters.get("running_cluster")
    item.add_marker(pytest.mark.xdist_group(f"{path.parts[0]}/{shared}" if shared else str(path)))


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Fails on blocking calls of the project's code on the event loop."""
    with blockbuster_ctx(PROJECT_PACKAGES):
        yield


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()

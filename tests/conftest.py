"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from tests.fakes import FakeClock, FakeHost

# how long an example takes is the machine's affair, and no property
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# here, because a plugin is named by the outermost conftest alone
pytest_plugins = ["tests.hosting"]

OURS = ["apiserver", "registry", "admission", "controller", "tenant_apiserver"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """What one process runs one after the other, where there are several: a folder's tests of a host that they share,
    or the tests of a file."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    item.add_marker(
        pytest.mark.xdist_group(f"{item.path.parent.name}/{parameters.get('running_host', item.path.stem)}")
    )


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """A blocking call of our own code on the event loop is an error."""
    with blockbuster_ctx(OURS):
        yield


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()

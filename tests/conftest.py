"""Fixtures for all tests."""

from __future__ import annotations

import functools
import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

# the program imports a part of this library only, and tests of its clients need all of it: the first import decides
import kubernetes_asyncio.client  # noqa: F401
import pytest
from blockbuster import BlockBuster
from hypothesis import settings
from xdist.remote import Producer

from tests.fake_clock import FakeClock
from tests.fake_cluster import FakeCluster
from tests.group_scheduling import MixedGroupScheduling, name_group, position
from tests.named_transports import name_transports

# the duration of an example depends on the machine
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# only the outermost conftest may name plugins
pytest_plugins = ["tests.server_fixtures"]

_HERE = Path(__file__).parent
_XDIST_WORKER = "PYTEST_XDIST_WORKER"
PROJECT_PACKAGES = ["apiserver", "registry", "admission", "controller", "tenant_apiserver"]


def pytest_configure() -> None:
    """A shell without job control starts `make test &` with SIGINT ignored. Programs that tests start would inherit it,
    and ignore the SIGINT that a test sends."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    name_transports()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without the garbage collector, which would take as much processor time as all else: tests stay until the
    end of the run. For the same reason it does not look at them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> MixedGroupScheduling | None:
    return MixedGroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Groups tests for pytest-xdist: the tests of a file that use the same kind of cluster run in one process, which
    keeps its cluster for the next group of that kind."""
    file, shared = _path(item.path), _shared_cluster(item)
    item.add_marker(pytest.mark.xdist_group(f"{file}/{shared}" if shared else file))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of pytest-xdist, the tests that take minutes begin first, and unit tests end the run: their groups
    are so short that no process is left alone with the last one."""
    if _XDIST_WORKER in os.environ:
        items.sort(key=_position)
    if config.getoption("loadgroup", False):
        for item in items:
            name_group(item)


def _position(item: pytest.Item) -> int:
    every_tenant = item.get_closest_marker("every_tenant") is not None
    return position(_suite(item), _shared_cluster(item), every_tenant=every_tenant)


def _suite(item: pytest.Item) -> str:
    """The folder of tests/ that a test is in."""
    return _path(item.path).partition("/")[0]


@functools.cache
def _path(file: Path) -> str:
    """The path below tests/."""
    return file.relative_to(_HERE).as_posix()


def _shared_cluster(item: pytest.Item) -> str:
    """The kind of the session's cluster that a test uses, empty if none."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(parameters.get("running_cluster", ""))


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Fails on blocking calls of the project's code on the event loop."""
    watching = _blockbuster()
    watching.activate()
    try:
        yield
    finally:
        watching.deactivate()


@functools.cache
def _blockbuster() -> BlockBuster:
    """Made once: it looks for sixty functions and the folders of the packages, which takes longer than many tests."""
    return BlockBuster(PROJECT_PACKAGES)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()

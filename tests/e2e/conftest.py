"""One host of each kind for the whole session, and what a test needs to keep to itself on it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.controlplane import Binaries, ControlPlane, find_binaries
from tests.e2e.gateways import Gateways
from tests.e2e.hosts import E2eHost, EmbeddedHost, KubeHost
from tests.e2e.processes import REPOSITORY
from tests.e2e.tenants import Tenants

_HERE = Path(__file__).parent
_TIMEOUT_SECONDS = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            # The first test of a host pays for its start.
            item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test runs on both hosts, unless it asks for one of them by the name of its fixture."""
    if "host" in metafunc.fixturenames:
        only = [kind for kind in ("embedded", "kube") if kind in metafunc.fixturenames]
        metafunc.parametrize("host", only or ["embedded", "kube"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[E2eHost]:
    """A server that runs. What ends badly fails the last test that used it."""
    directory = tmp_path_factory.mktemp(request.param)
    running = EmbeddedHost(directory) if request.param == "embedded" else kube_host(directory)
    yield running
    status = running.stop()
    assert status == 0, f"exit status {status} after SIGTERM\n{running.server.tail()}"


@pytest.fixture
def own_kube(tmp_path: Path) -> Iterator[KubeHost]:
    """A control plane of the test's own, which it may break."""
    running = kube_host(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def own_embedded(tmp_path: Path) -> Iterator[EmbeddedHost]:
    """An embedded host of the test's own, to be ended as it likes."""
    running = EmbeddedHost(tmp_path)
    yield running
    running.stop()


@pytest.fixture(params=["embedded", "kube"])
def own_host(request: pytest.FixtureRequest) -> E2eHost:
    """A host of the test's own: its server is started anew, and what it writes is counted."""
    running: E2eHost = request.getfixturevalue(f"own_{request.param}")
    return running


@pytest.fixture(scope="session")
def kube_parts() -> tuple[Binaries, Path]:
    """For a control plane that a test puts together by itself: its binaries, and the folder of CRDs."""
    return find_kube_parts()


def find_kube_parts() -> tuple[Binaries, Path]:
    binaries = find_binaries()
    if isinstance(binaries, str):
        pytest.skip(binaries)
    crds = Path(os.environ.get("TEST_CRD_DIR") or REPOSITORY.parent / "shared" / "crds")
    if not crds.is_dir():
        pytest.skip(f"no CRDs in {crds}: set TEST_CRD_DIR to a folder with those of Flux, Gateway API and cert-manager")
    return binaries, crds


def kube_host(directory: Path) -> KubeHost:
    binaries, crds = find_kube_parts()
    control_plane = ControlPlane(directory, binaries)
    try:
        return KubeHost(directory, control_plane, crds)
    except BaseException:
        control_plane.stop()
        raise


@pytest.fixture(autouse=True)
def _without_controllers(request: pytest.FixtureRequest) -> None:
    """What needs the control plane's controllers is skipped, by name, without them."""
    if request.node.get_closest_marker("controller_manager") and "host" in request.fixturenames:
        running: E2eHost = request.getfixturevalue("host")
        if not running.has_controllers:
            pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")


@pytest.fixture
def kube(host: E2eHost) -> KubeHost:
    """For tests of what only an aggregator does."""
    assert isinstance(host, KubeHost)
    return host


@pytest.fixture
def embedded(host: E2eHost) -> EmbeddedHost:
    """For tests of what only the embedded host does."""
    assert isinstance(host, EmbeddedHost)
    return host


@pytest.fixture
def unique() -> str:
    """A name that no other test has: lower case letters and digits."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def tenants(host: E2eHost) -> Iterator[Tenants]:
    """Makes Tenants, and asks for their deletion after the test."""
    maker = Tenants(host)
    yield maker
    maker.clean_up()


@pytest.fixture
def gateways(host: E2eHost) -> Iterator[Gateways]:
    """Makes TenantGateways and routes in namespaces of its own, and has those deleted after the test."""
    maker = Gateways(host)
    yield maker
    maker.clean_up()

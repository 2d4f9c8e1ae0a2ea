"""Fixtures of the tests that run against servers: one host of each kind for the whole session, and what a test needs to
keep to itself on it. Folders of such tests take `running_cluster` for their `host`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.support.clusters import E2eCluster, EmbeddedCluster, KubeCluster
from tests.e2e.support.control_plane import Binaries, ControlPlane, find_binaries
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.given_cluster import ExternalCluster
from tests.e2e.support.processes import REPOSITORY
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects
from tests.faults.sizes import size

_FOLDERS = tuple(Path(__file__).parent / name for name in ("e2e", "attacks"))
_ATTACKS = Path(__file__).parent / "attacks"
_KUBECONFIG, _SERVER = "ATTACK_KUBECONFIG", "ATTACK_SERVER"
_TIMEOUT_SECONDS = size(short=300, full=1800)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in _FOLDERS):
            # The first test of a host pays for its start.
            item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test runs on both hosts, unless it asks for one of them by the name of its fixture. An attack runs on the
    server that the environment names instead, if it names one."""
    if "running_cluster" not in metafunc.fixturenames:
        return
    only = [kind for kind in ("embedded", "kube") if kind in metafunc.fixturenames]
    kinds: list[str] = [*only] or ["embedded", "kube"]
    if os.environ.get(_KUBECONFIG) and _ATTACKS in metafunc.definition.path.parents:
        # what only one of our own hosts can be asked is skipped
        kinds = [] if only else ["given"]
    metafunc.parametrize("running_cluster", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def running_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[E2eCluster]:
    """A server that runs. What ends badly fails the last test that used it."""
    with started_cluster(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@contextmanager
def started_cluster(kind: str, directory: Path) -> Iterator[E2eCluster]:
    """A host of a kind, to be ended well; and whatever was asked of it, nothing in it broke."""
    running = _start_cluster(kind, directory)
    yield running
    status = running.stop()
    assert status == 0, f"exit status {status} after SIGTERM\n{running.tail()}"
    if kind != "given":
        _, broken, trace = running.server.log().partition("Traceback")
        assert not broken, f"an error that nobody foresaw\n{trace[:4000]}"


def _start_cluster(kind: str, directory: Path) -> E2eCluster:
    if kind == "given":
        return ExternalCluster(directory, Path(os.environ[_KUBECONFIG]), os.environ.get(_SERVER, ""))
    return EmbeddedCluster(directory) if kind == "embedded" else kube_cluster(directory)


@pytest.fixture
def own_kube(tmp_path: Path) -> Iterator[KubeCluster]:
    """A control plane of the test's own, which it may break."""
    running = kube_cluster(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def own_embedded(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """An embedded host of the test's own, to be ended as it likes."""
    running = EmbeddedCluster(tmp_path)
    yield running
    running.stop()


@pytest.fixture(params=["embedded", "kube"])
def own_cluster(request: pytest.FixtureRequest) -> E2eCluster:
    """A host of the test's own: its server is started anew, and what it writes is counted."""
    running: E2eCluster = request.getfixturevalue(f"own_{request.param}")
    return running


@pytest.fixture(scope="session")
def control_plane_files() -> tuple[Binaries, Path]:
    """For a control plane that a test puts together by itself: its binaries, and the folder of CRDs."""
    return find_control_plane_files()


def find_control_plane_files() -> tuple[Binaries, Path]:
    binaries = find_binaries()
    if isinstance(binaries, str):
        pytest.skip(binaries)
    crds = Path(os.environ.get("TEST_CRD_DIR") or REPOSITORY.parent / "shared" / "crds")
    if not crds.is_dir():
        pytest.skip(f"no CRDs in {crds}: set TEST_CRD_DIR to a folder with those of Flux, Gateway API and cert-manager")
    return binaries, crds


def kube_cluster(directory: Path) -> KubeCluster:
    binaries, crds = find_control_plane_files()
    control_plane = ControlPlane(directory, binaries)
    try:
        return KubeCluster(directory, control_plane, crds)
    except BaseException:
        control_plane.stop()
        raise


@pytest.fixture(autouse=True)
def _without_controllers(request: pytest.FixtureRequest) -> None:
    """What needs the control plane's controllers is skipped, by name, without them."""
    if request.node.get_closest_marker("controller_manager") and "running_cluster" in request.fixturenames:
        running: E2eCluster = request.getfixturevalue("running_cluster")
        if not running.has_controllers:
            pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")


@pytest.fixture
def kube(running_cluster: E2eCluster) -> KubeCluster:
    """For tests of what only an aggregator does."""
    assert isinstance(running_cluster, KubeCluster)
    return running_cluster


@pytest.fixture
def embedded(running_cluster: E2eCluster) -> EmbeddedCluster:
    """For tests of what only the embedded host does."""
    assert isinstance(running_cluster, EmbeddedCluster)
    return running_cluster


@pytest.fixture
def unique() -> str:
    """A name that no other test has: lower case letters and digits."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def tenants(running_cluster: E2eCluster) -> Iterator[Tenants]:
    """Makes Tenants, and asks for their deletion after the test."""
    maker = Tenants(running_cluster)
    yield maker
    maker.clean_up()


@pytest.fixture
def gateways(running_cluster: E2eCluster) -> Iterator[Gateways]:
    """Makes TenantGateways and routes in namespaces of its own, and has those deleted after the test."""
    maker = Gateways(running_cluster)
    yield maker
    maker.clean_up()


@pytest.fixture
def access(running_cluster: E2eCluster) -> Iterator[RbacObjects]:
    """Makes Roles and bindings, and takes them away after the test."""
    made = RbacObjects(running_cluster)
    yield made
    made.clean_up()

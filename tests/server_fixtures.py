"""Fixtures of the tests that run against servers: one cluster of each kind per session, and isolated objects per test.

The conftest of each such folder returns `running_cluster` as its fixture `cluster`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from tests.e2e.support.clusters.audit_log import refused_by_own_limits
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.control_plane import Binaries, ControlPlane, find_binaries
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.external import ExternalCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.prepared_control_plane import prepared_control_plane
from tests.e2e.support.clusters.processes import REPOSITORY, Process, execute_command, run_command
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects
from tests.faults.support.sizes import size

_FOLDERS = tuple(f"{Path(__file__).parent / name}/" for name in ("e2e", "attacks"))
_ATTACKS, _FAULTS = Path(__file__).parent / "attacks", Path(__file__).parent / "faults"
_KUBECONFIG, _SERVER = "ATTACK_KUBECONFIG", "ATTACK_SERVER"
# for tests that hang: no test takes a tenth of it on an idle machine
_TIMEOUT_SECONDS = size(short=600, full=1800)


def pytest_configure() -> None:
    """No Go program of the suite collects garbage up to this much memory: a third of the processor time of a kubectl or
    a Helm, which ends soon anyway."""
    os.environ.setdefault("GOGC", "off")
    os.environ.setdefault("GOMEMLIMIT", "1200MiB")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_FOLDERS):
            # the first test on a cluster includes its start
            item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test on both clusters, unless it uses the fixture `embedded` or `kube`.

    Attacks run only on the cluster that the environment variable names, if it is set.
    """
    if "running_cluster" not in metafunc.fixturenames:
        return
    only = [kind for kind in ("embedded", "kube") if kind in metafunc.fixturenames]
    kinds: list[str] = [*only] or ["embedded", "kube"]
    if os.environ.get(_KUBECONFIG) and _ATTACKS in metafunc.definition.path.parents:
        # tests that need one of our own clusters are skipped
        kinds = [] if only else ["external"]
    scope: Literal["package", "session"] = "package" if _FAULTS in metafunc.definition.path.parents else "session"
    metafunc.parametrize("running_cluster", kinds, indirect=True, scope=scope)


@pytest.fixture(scope="session")
def running_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[E2eCluster]:
    """A running cluster with our server. A failure while it stops fails the last test that used it."""
    with started_cluster(request.param, tmp_path_factory) as running:
        yield running


@contextmanager
def started_cluster(kind: str, directories: pytest.TempPathFactory) -> Iterator[E2eCluster]:
    """Starts a cluster and stops it at the end.

    Our server must exit with status 0 and must not have logged a traceback. The policies that limit its account must
    not have refused what it did.
    """
    running = _start_cluster(kind, directories)
    yield running
    status = running.stop()
    assert status == 0, f"exit status {status} after SIGTERM\n{running.tail()}"
    if kind != "external":
        _, traceback, rest = running.server.log().partition("Traceback")
        assert not traceback, f"an unexpected error\n{rest[:4000]}"
    if isinstance(running, KubeCluster):
        assert refused_by_own_limits(running.audit_log) == []


def _start_cluster(kind: str, directories: pytest.TempPathFactory) -> E2eCluster:
    directory = directories.mktemp(kind)
    if kind == "external":
        return ExternalCluster(directory, Path(os.environ[_KUBECONFIG]), os.environ.get(_SERVER, ""))
    if kind == "embedded":
        return EmbeddedCluster(directory)
    return prepared_kube_cluster(directory, directories, run=execute_command)


@pytest.fixture
def own_flags() -> Sequence[str]:
    """Additional flags of our server on a cluster of the test's own. A module with others overrides it, because a
    restart with flags would take as much processor time as the start."""
    return ()


@pytest.fixture
def own_kube(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, own_flags: Sequence[str]
) -> Iterator[KubeCluster]:
    """A control plane of the test's own, which the test may break."""
    running = prepared_kube_cluster(tmp_path, tmp_path_factory, flags=own_flags)
    yield running
    running.stop()


@pytest.fixture
def own_embedded(tmp_path: Path, own_flags: Sequence[str]) -> Iterator[EmbeddedCluster]:
    """An embedded cluster of the test's own, which the test may stop or kill."""
    running = EmbeddedCluster(tmp_path, flags=own_flags)
    yield running
    running.stop()


@pytest.fixture(params=["embedded", "kube"])
def own_cluster(request: pytest.FixtureRequest) -> E2eCluster:
    """A cluster of the test's own, for tests that restart our server or count requests."""
    running: E2eCluster = request.getfixturevalue(f"own_{request.param}")
    return running


@pytest.fixture(scope="session")
def control_plane_files() -> tuple[Binaries, Path]:
    """The binaries and the CRD folder for a test that assembles its own control plane."""
    return find_control_plane_files()


def find_control_plane_files() -> tuple[Binaries, Path]:
    binaries = find_binaries()
    if isinstance(binaries, str):
        pytest.skip(binaries)
    crds = Path(os.environ.get("TEST_CRD_DIR") or REPOSITORY.parent / "shared" / "crds")
    if not crds.is_dir():
        pytest.skip(
            f"no CRDs in {crds}: set TEST_CRD_DIR to a folder with the CRDs of Flux, Gateway API and cert-manager"
        )
    return binaries, crds


def prepared_kube_cluster(
    directory: Path,
    directories: pytest.TempPathFactory,
    *,
    run: Callable[..., Process] = run_command,
    flags: Sequence[str] = (),
    more_flags: Mapping[str, object] | None = None,
) -> KubeCluster:
    """`flags` are those of our server, `more_flags` those of kube-apiserver."""
    prepared = prepared_control_plane(_folder_of_session(directories), *find_control_plane_files())
    return kube_cluster(directory, prepared=prepared, run=run, flags=flags, more_flags=more_flags)


def control_plane_with_crds(directory: Path, directories: pytest.TempPathFactory) -> ControlPlane:
    """A control plane with the CRDs of Flux, Gateway API and cert-manager, for a test that installs the rest."""
    binaries, crds = find_control_plane_files()
    prepared = prepared_control_plane(_folder_of_session(directories), binaries, crds, with_manifests=False)
    return ControlPlane(directory, binaries, prepared=prepared)


def _folder_of_session(directories: pytest.TempPathFactory) -> Path:
    """The folder that the processes of a session share."""
    base = directories.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def kube_cluster(
    directory: Path,
    *,
    prepared: Path | None = None,
    run: Callable[..., Process] = run_command,
    flags: Sequence[str] = (),
    more_flags: Mapping[str, object] | None = None,
) -> KubeCluster:
    binaries, crds = find_control_plane_files()
    control_plane = ControlPlane(directory, binaries, prepared=prepared, more_flags=more_flags)
    try:
        return KubeCluster(directory, control_plane, crds, run=run, flags=flags)
    except BaseException:
        control_plane.stop()
        raise


@pytest.fixture(autouse=True)
def _without_controllers(request: pytest.FixtureRequest) -> None:
    """Skips tests marked `controller_manager` on a control plane without kube-controller-manager."""
    if request.node.get_closest_marker("controller_manager") and "running_cluster" in request.fixturenames:
        running: E2eCluster = request.getfixturevalue("running_cluster")
        if not running.has_controllers:
            pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")


@pytest.fixture
def kube(running_cluster: E2eCluster) -> KubeCluster:
    """For tests that need an aggregator."""
    assert isinstance(running_cluster, KubeCluster)
    return running_cluster


@pytest.fixture
def embedded(running_cluster: E2eCluster) -> EmbeddedCluster:
    """For tests that need the embedded cluster."""
    assert isinstance(running_cluster, EmbeddedCluster)
    return running_cluster


@pytest.fixture
def unique() -> str:
    """A name that no other test uses, of lower case letters and digits."""
    return _new_name()


@pytest.fixture(scope="module")
def module_unique() -> str:
    """A name that no other module uses."""
    return _new_name()


def _new_name() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def tenants(running_cluster: E2eCluster) -> Iterator[Tenants]:
    """Creates Tenants under unique names."""
    created = Tenants(running_cluster)
    yield created
    created.clean_up()


@pytest.fixture(scope="module")
def module_tenants(running_cluster: E2eCluster) -> Iterator[Tenants]:
    """Creates Tenants that all tests of a module read."""
    created = Tenants(running_cluster)
    yield created
    created.clean_up()


@pytest.fixture
def gateways(running_cluster: E2eCluster) -> Iterator[Gateways]:
    """Creates TenantGateways and routes in namespaces of its own, and requests the deletion of these after the test."""
    created = Gateways(running_cluster)
    yield created
    created.clean_up()


@pytest.fixture
def access(running_cluster: E2eCluster) -> Iterator[RbacObjects]:
    """Creates Roles and bindings, and deletes them after the test."""
    created = RbacObjects(running_cluster)
    yield created
    created.clean_up()

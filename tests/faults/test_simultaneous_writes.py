"""Two replicas on a real kube-apiserver decide about simultaneous writes, each from its own cache: never both succeed,
and after the retries that a 429 requests exactly one does."""

from __future__ import annotations

import http.client
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from admission.tenant.claims.claim import EXPIRY_SECONDS
from admission.tenant.claims.claim_lease import NAME as LEASE
from admission.tenant.claims.unconfirmed_writes import LATE_SECONDS
from admission.tenant.quota import validate_quota_change
from apiserver.meta.resource import Key
from registry.tenant.convert import to_tenant
from registry.tenant.summary import summarize
from registry.tenant.tree import TenantTree, effective_host
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, ROOT_HOST, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.http.recording_proxy import RecordingProxy
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.faults.support.replicas import Replicas
from tests.faults.support.server_behind_proxy import is_ready, started_proxied_server
from tests.faults.support.sizes import is_full, new_seed, size

pytestmark = pytest.mark.usefixtures("kube")

ROUNDS = size(short=3, full=200)
# the writes of a round are sent at most this long after each other
OFFSET_SECONDS = 0.01
RETRIES = 20
MARGIN_SECONDS = 10.0
MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Write:
    """A request that the client repeats after each 429."""

    method: str
    path: str
    body: Object | None = None

    def send(self, client: Client, *, retries: int = RETRIES) -> Response:
        return client.request_with_retries(
            self.method, self.path, self.body, content_type=self._content_type, retries=retries
        )

    def send_once(self, client: Client) -> Response:
        return client.request(self.method, self.path, self.body, content_type=self._content_type)

    @property
    def _content_type(self) -> str:
        return MERGE if self.method == "PATCH" else "application/json"


def create(name: str, namespace: str = ROOT, **spec: object) -> Write:
    return Write("POST", tenants_path(namespace), manifest(name, namespace, spec=spec))


def change(name: str, namespace: str = ROOT, **spec: object) -> Write:
    return Write("PATCH", tenants_path(namespace, name), {"spec": spec})


def delete(name: str, namespace: str = ROOT) -> Write:
    return Write("DELETE", tenants_path(namespace, name))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ready replicas, which get their requests directly."""

    clients: tuple[Client, Client]
    rng: random.Random

    def send_both(self, first: Write, second: Write) -> tuple[Response, Response]:
        """Sends two writes at about the same time, each to another replica."""
        barrier = threading.Barrier(2)
        clients = self.rng.sample(self.clients, 2)
        offsets = self.rng.sample([0.0, self.rng.random() * OFFSET_SECONDS], 2)

        def send(number: int) -> Response:
            barrier.wait()
            time.sleep(offsets[number])
            return (first, second)[number].send(clients[number])

        with ThreadPoolExecutor(2) as pool:
            one, two = pool.map(send, range(2))
        return one, two


@pytest.fixture(scope="module")
def pair(running_cluster: KubeCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Besides the server of the session, which runs the controllers."""
    directory: Path = tmp_path_factory.mktemp("replicas")
    started = Replicas(running_cluster, directory, {})
    ports = (free_port(), free_port())
    clients = started.client(ports[0]), started.client(ports[1])
    try:
        for port in ports:
            started.start(port)
        for client in clients:
            wait_until("the replica is ready", lambda client=client: is_ready(client), seconds=PATIENCE)  # type: ignore[misc]
        yield Pair(clients, random.Random(new_seed()))
    finally:
        for process in started.processes.values():
            process.stop()


def in_rounds(
    play: Callable[[int], tuple[Response, Response]], *, refusals: frozenset[int] = frozenset((422,))
) -> None:
    """Fails unless exactly one of the two writes of each round succeeds, and the other gets one of these codes."""
    first_wins = 0
    for number in range(ROUNDS):
        answers = play(number)
        codes = [answer.status for answer in answers]
        won = [code in (200, 201) for code in codes]
        assert sum(won) == 1, f"round {number}: {codes} {[answer.content for answer in answers]}"
        assert set(codes) & refusals, f"round {number}: {codes} {[answer.content for answer in answers]}"
        first_wins += won[0]
    print(f"{ROUNDS} rounds, {first_wins} won by the first write")


def stored_tree(kube: KubeCluster) -> TenantTree:
    """All Tenants that are not being deleted, as the cluster stores them."""
    releases = kube.client().get("/apis/helm.toolkit.fluxcd.io/v2/helmreleases").expect(200)["items"]
    tenants = [summarize(to_tenant(each)) for each in releases if each["metadata"]["name"].startswith("tenant-")]
    return TenantTree([each for each in tenants if not each.terminating], root_host=ROOT_HOST)


def check_hosts(kube: KubeCluster) -> None:
    tree = stored_tree(kube)
    hosts = Counter(host.value for each in tree if (host := effective_host(tree, each)) is not None)
    assert {host: number for host, number in hosts.items() if number > 1} == {}


def check_quotas(kube: KubeCluster) -> None:
    tree = stored_tree(kube)
    assert [error for each in tree for error in validate_quota_change(tree, each, None)] == []


def test_two_explicit_hosts(kube: KubeCluster, pair: Pair, tenants: Tenants) -> None:
    def play(number: int) -> tuple[Response, Response]:
        one, two = tenants.new_name(), tenants.new_name()
        host = f"{one}.claimed.example"
        return pair.send_both(create(one, host=host), create(two, host=host))

    in_rounds(play)
    check_hosts(kube)


def test_an_explicit_host_and_the_host_that_another_tenant_derives(
    kube: KubeCluster, pair: Pair, tenants: Tenants
) -> None:
    def play(number: int) -> tuple[Response, Response]:
        plain, explicit = tenants.new_name(), tenants.new_name()
        return pair.send_both(create(plain), create(explicit, host=f"{plain}.{ROOT_HOST}"))

    in_rounds(play)
    check_hosts(kube)


def test_a_host_that_an_existing_tenant_gets_and_the_host_of_a_new_one(
    kube: KubeCluster, pair: Pair, tenants: Tenants
) -> None:
    existing = tenants.create()["metadata"]["name"]

    def play(number: int) -> tuple[Response, Response]:
        new = tenants.new_name()
        host = f"{new}.claimed.example"
        return pair.send_both(change(existing, host=host), create(new, host=host))

    in_rounds(play)
    check_hosts(kube)


def key(number: int) -> str:
    """Each round has a resource of its own, and all rounds have one parent."""
    return f"requests.example.com/r{number}"


def for_each_round(amount: str) -> Object:
    return {"resourceQuotas": {key(number): amount for number in range(ROUNDS)}}


def test_two_creates_for_the_last_of_a_quota(kube: KubeCluster, pair: Pair, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec=for_each_round("4"))

    def play(number: int) -> tuple[Response, Response]:
        quotas = {key(number): "3"}
        one, two = (create(tenants.new_name(parent), parent, resourceQuotas=quotas) for _ in range(2))
        return pair.send_both(one, two)

    in_rounds(play)
    check_quotas(kube)


def test_a_create_and_a_raise_for_the_last_of_a_quota(kube: KubeCluster, pair: Pair, tenants: Tenants) -> None:
    parent = tenants.create_with_namespace(spec=for_each_round("4"))
    child = tenants.create(parent, spec=for_each_round("1"))["metadata"]["name"]

    def play(number: int) -> tuple[Response, Response]:
        new = create(tenants.new_name(parent), parent, resourceQuotas={key(number): "3"})
        return pair.send_both(new, change(child, parent, resourceQuotas={key(number): "2"}))

    in_rounds(play)
    check_quotas(kube)


def test_a_parent_that_lowers_its_quota_and_a_create_that_needs_it(
    kube: KubeCluster, pair: Pair, tenants: Tenants
) -> None:
    parent = tenants.create_with_namespace(spec=for_each_round("4"))
    name = parent.removeprefix("tenant-")

    def play(number: int) -> tuple[Response, Response]:
        new = create(tenants.new_name(parent), parent, resourceQuotas={key(number): "3"})
        return pair.send_both(change(name, resourceQuotas={key(number): "2"}), new)

    in_rounds(play)
    check_quotas(kube)


def test_the_deletion_of_a_parent_and_the_creation_of_a_child(pair: Pair, tenants: Tenants) -> None:
    parents = [tenants.create()["status"]["namespace"] for _ in range(ROUNDS)]
    for parent in parents:
        tenants.wait_for_namespace(parent)

    def play(number: int) -> tuple[Response, Response]:
        parent = parents[number]
        return pair.send_both(delete(parent.removeprefix("tenant-")), create(tenants.new_name(parent), parent))

    # the parent has a child, or the child's parent is gone
    in_rounds(play, refusals=frozenset((403, 404, 409)))


@contextmanager
def replica_that_dies_with_a_claim(kube: KubeCluster, directory: Path) -> Iterator[tuple[Process, Client]]:
    """A replica that is killed as soon as the cluster has stored its first claim."""
    proxy, port, started = RecordingProxy(kube.url, kube.account), free_port(), list[Process]()

    def kill(number: int, answered: bool) -> None:
        request = [each for each in tuple(proxy.forwarded) if each.server == "dying"][number - 1 : number]
        if answered and request and request[0].method == "PUT" and request[0].path.endswith(f"/{LEASE}"):
            started[0].signal(signal.SIGKILL)

    kubeconfig = proxy.add_server("dying", directory, observer=kill)
    address = ["--bind-address=127.0.0.1", f"--secure-port={port}", "--controllers=none"]
    log = directory / "dying.log"
    started.append(run_command("serve", f"--kubeconfig={kubeconfig}", f"--root-host={ROOT_HOST}", *address, log=log))
    direct = kube.direct_client()
    client = Client(f"https://127.0.0.1:{port}", direct.tls, direct.headers)
    try:
        wait_until("the replica is ready", lambda: is_ready(client), seconds=PATIENCE, processes=started)
        yield started[0], client
    finally:
        started[0].kill()
        proxy.close()


@pytest.mark.skipif(not is_full(), reason="it waits for a minute; tests/admission/tenant/claims/test_kills.py does not")
def test_a_kill_between_the_claim_and_the_write_blocks_others_for_a_minute(
    kube: KubeCluster, pair: Pair, tenants: Tenants, tmp_path: Path
) -> None:
    one, other, host = tenants.new_name(), tenants.new_name(), f"{tenants.new_name()}.claimed.example"
    # the Lease exists from now on
    create(tenants.new_name(), host=f"{other}.before.example").send(pair.clients[0]).expect(201)
    with replica_that_dies_with_a_claim(kube, tmp_path) as (process, client):
        with pytest.raises((OSError, http.client.HTTPException)):
            create(one, host=host).send_once(client)
        process.wait(seconds=PATIENCE)
    assert create(other, host=host).send_once(pair.clients[0]).status == 429
    began = time.monotonic()
    create(tenants.new_name(), host=f"{other}.other.example").send(pair.clients[0]).expect(201)
    create(other, host=host).send(pair.clients[0], retries=70).expect(201)
    blocked = time.monotonic() - began
    print(f"blocked for {blocked:.1f} s")
    assert blocked < EXPIRY_SECONDS + Pace(pair.clients[0]).limit(MARGIN_SECONDS)
    check_hosts(kube)


def is_stored(kube: KubeCluster, write: Write) -> bool:
    assert write.body is not None
    metadata = write.body["metadata"]
    return stored_tree(kube).get(Key(metadata["namespace"], metadata["name"])) is not None


def store_and_kill(kube: KubeCluster, directory: Path, first: Write, second: Write, other: Client) -> None:
    """Sends the first create to `other`. A replica that does not see it stores the second one, and is killed before it
    gets the event of its own write."""
    with started_proxied_server(kube, kube.account, directory) as dying, ThreadPoolExecutor(1) as pool:
        wait_until("its cache is up to date", dying.cache_equals_cluster, seconds=PATIENCE)
        with dying.proxy.silencing("helmreleases"):
            first.send(other).expect(201)
            answer = pool.submit(second.send, dying.client)

            def is_second_stored() -> bool:
                if answer.done():
                    answer.result().expect(201)
                return is_stored(kube, second)

            wait_until("the HelmRelease is stored", is_second_stored, seconds=PATIENCE)
            dying.process.kill()


def test_a_tenant_whose_replica_is_killed_before_it_sees_its_host_inherited_is_withdrawn(
    kube: KubeCluster, pair: Pair, tenants: Tenants, tmp_path: Path
) -> None:
    name = tenants.new_name()
    explicit, inherited = create(tenants.new_name(), host=f"{name}.{ROOT_HOST}"), create(name)
    store_and_kill(kube, tmp_path, explicit, inherited, pair.clients[0])
    check_withdrawn(kube, inherited)
    assert is_stored(kube, explicit)


@pytest.mark.skipif(not is_full(), reason="it is the test above in the other order")
def test_a_tenant_whose_replica_is_killed_before_it_sees_who_inherits_its_host_is_withdrawn(
    kube: KubeCluster, pair: Pair, tenants: Tenants, tmp_path: Path
) -> None:
    name = tenants.new_name()
    explicit, inherited = create(tenants.new_name(), host=f"{name}.{ROOT_HOST}"), create(name)
    store_and_kill(kube, tmp_path, inherited, explicit, pair.clients[0])
    check_withdrawn(kube, explicit)
    assert is_stored(kube, inherited)


@pytest.mark.skipif(not is_full(), reason="tests/admission/tenant/claims/test_kills.py has it, too")
def test_the_last_of_a_quota_belongs_to_a_replica_that_is_killed_with_it(
    kube: KubeCluster, pair: Pair, tenants: Tenants, tmp_path: Path
) -> None:
    parent = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "4"}})
    last = create(tenants.new_name(parent), parent, resourceQuotas={"cpu": "3"})
    store_and_kill(kube, tmp_path, create(tenants.new_name()), last, pair.clients[0])
    create(tenants.new_name(parent), parent, resourceQuotas={"cpu": "2"}).send(pair.clients[0]).expect(422)
    assert is_stored(kube, last)
    check_quotas(kube)


def check_withdrawn(kube: KubeCluster, write: Write) -> None:
    assert write.body is not None
    wait_until("the later one is withdrawn", lambda: not is_stored(kube, write), seconds=LATE_SECONDS + PATIENCE)
    namespace = f"tenant-{write.body['metadata']['name']}"
    assert kube.client().get(f"/api/v1/namespaces/{namespace}").status == 404
    check_hosts(kube)

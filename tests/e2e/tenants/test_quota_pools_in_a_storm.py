"""Many Pods are created at once in all namespaces of a pool, with kube-apiserver's quota plugin and a real quota
controller."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from registry.tenant.pool_quotas import POOL_NAME, shares_of
from registry.tenant.quota_keys import NANO
from registry.tenant.quota_pools import Share
from tests.e2e.support.clusters.cluster import ROOT
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.pods import Pods
from tests.e2e.support.tenants import Tenants

CAPACITY, CHILDREN, WORKERS, ATTEMPTS = 24, 3, 8, 30
_POOL_QUOTAS = {"fieldSelector": f"metadata.name={POOL_NAME}"}
STRICT, SHARED = "quotas: {pool: strict}\n", "quotas: {pool: shared}\n"


class Pool:
    """A tenant with a quota of Pods, and child tenants without one."""

    def __init__(self, cluster: KubeCluster) -> None:
        self._cluster, self._tenants, self._pods = cluster, Tenants(cluster), Pods(cluster)
        self._numbers = itertools.count()
        self.parent = self._tenants.create_with_namespace(spec={"resourceQuotas": {"pods": CAPACITY}})
        self.namespaces = [
            self.parent,
            *(self._tenants.create_with_namespace(self.parent) for _ in range(CHILDREN)),
        ]
        for namespace in self.namespaces:
            self._pods.wait_until_limited(namespace, POOL_NAME)

    def storm(self, attempts: int = ATTEMPTS) -> None:
        """Clients create Pods in all namespaces at once, whether or not they are admitted.

        No two have one name: kube-apiserver counts a Pod before it finds that the name is taken.
        """

        def create(worker: int) -> None:
            for number in range(attempts):
                namespace = self.namespaces[(worker + number) % len(self.namespaces)]
                answer = self._pods.create(namespace, f"p{next(self._numbers)}", cpu=1)
                assert answer.status in (201, 403, 409), answer.content

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(create, range(WORKERS)))

    def is_used_up(self) -> bool:
        """Creates Pods once more, and returns whether nothing is left."""
        self.storm(len(self.namespaces))
        used = self.used()
        if used < CAPACITY:
            print(f"{used} of {CAPACITY} Pods; used and possible by namespace: {self.limits()}")
        return used >= CAPACITY

    def used(self) -> int:
        return sum(self._pods.count(each) for each in self.namespaces)

    def limits(self) -> list[tuple[int, int]]:
        """For each namespace at one instant: what it uses, and what it uses or may use as soon as what was written
        takes effect."""
        return [(share.used // NANO, share.ceiling // NANO) for _, share in self._shares()[1]]

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Prints the ResourceQuotas and the number of Pods of each namespace afterwards: pytest shows it on failure."""
        try:
            yield
        finally:
            for namespace in self.namespaces:
                quotas = self._cluster.client().get(f"/api/v1/namespaces/{namespace}/resourcequotas").json()["items"]
                print(namespace, f"{self._pods.count(namespace)} Pods")
                for each in quotas:
                    print(" ", each["metadata"]["name"], each["spec"]["hard"], each.get("status"))

    def limits_of_all(self) -> int:
        """The sum of what the namespaces may use at one instant, now or as soon as what was written takes effect."""
        return sum(max(share.hard or 0, share.admitted or 0) for _, share in self._shares()[1]) // NANO

    def version(self) -> str:
        return self._shares()[0]

    def forgotten_since(self, version: str) -> int:
        """The number of Pods by which `status.used` has become less since a version, as no Pod was deleted meanwhile.

        The quota controller counts anew when a limit changes, from a cache that can lack Pods that were just admitted:
        kube-apiserver then admits as many more (docs/inheritance.md, what `strict` cannot promise).
        """
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "2", **_POOL_QUOTAS}
        events = self._cluster.client().get("/api/v1/resourcequotas", query=query).content.splitlines()
        used: dict[str, int] = {}
        forgotten = 0
        for quota in (orjson.loads(event)["object"] for event in events):
            namespace = quota["metadata"].get("namespace")
            if namespace in self.namespaces:
                now = shares_of(quota)["pods"].used // NANO
                forgotten += max(0, used.get(namespace, 0) - now)
                used[namespace] = now
        return forgotten

    def _shares(self) -> tuple[str, list[tuple[str, Share]]]:
        """The resourceVersion of the list, and the share of each namespace."""
        found = self._cluster.client().get("/api/v1/resourcequotas", query=_POOL_QUOTAS).expect(200)
        shares = [
            (each["metadata"]["namespace"], shares_of(each)["pods"])
            for each in found["items"]
            if each["metadata"]["namespace"] in self.namespaces
        ]
        return found["metadata"]["resourceVersion"], shares

    @contextmanager
    def watching(self) -> Iterator[list[int]]:
        """Collects the sum of the limits of the namespaces, again and again."""
        sums: list[int] = []
        stopped = threading.Event()

        def observe() -> None:
            while not stopped.is_set():
                sums.append(self.limits_of_all())

        observer = threading.Thread(target=observe)
        observer.start()
        try:
            yield sums
        finally:
            stopped.set()
            observer.join()

    def delete_pods(self, count: int) -> None:
        client = self._cluster.client()
        for namespace in self.namespaces:
            for pod in client.get(f"/api/v1/namespaces/{namespace}/pods").expect(200)["items"]:
                if count:
                    self._pods.delete(namespace, pod["metadata"]["name"])
                    count -= 1

    def condition(self) -> tuple[str, str] | None:
        found = self._tenants.get(self.parent.removeprefix("tenant-"), ROOT)["status"].get("conditions") or ()
        return next(((each["status"], each["reason"]) for each in found if each["type"] == "QuotaReady"), None)


@pytest.fixture
def settings(own_kube: KubeCluster, tmp_path: Path) -> Path:
    """The file of the platform's settings, with which our server runs."""
    if not own_kube.has_controllers:
        pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")
    path = tmp_path / "platform.yaml"
    path.write_text(SHARED)
    own_kube.flags = (f"--config={path}",)
    own_kube.restart()
    return path


def test_a_shared_pool_is_exceeded_by_what_was_left_at_most_and_holds_afterwards(
    own_kube: KubeCluster, settings: Path
) -> None:
    pool = Pool(own_kube)
    with pool.shown():
        pool.storm()
        used = pool.used()
        print(f"shared: {used} of {CAPACITY} Pods in {len(pool.namespaces)} namespaces")
        assert CAPACITY <= used <= CAPACITY * len(pool.namespaces)
        own_kube.wait_until("no namespace may use more", lambda: all(a == b for a, b in pool.limits()) or None)
        if used > CAPACITY:
            own_kube.wait_until("a condition says so", lambda: pool.condition() == ("False", "PoolExceeded"))
        pool.delete_pods(used - CAPACITY + 3)
        # three are left, and each of the namespaces may use them
        expected = CAPACITY - 3 + 3 * len(pool.namespaces)
        own_kube.wait_until("three are left", lambda: sum(b for _, b in pool.limits()) == expected)
        own_kube.wait_until("the condition says so", lambda: pool.condition() == ("True", "Reconciled"))


def test_the_limits_of_a_strict_pool_never_exceed_it(own_kube: KubeCluster, settings: Path) -> None:
    settings.write_text(STRICT)
    pool = Pool(own_kube)
    with pool.shown():
        own_kube.wait_until(
            "the pool is divided", lambda: sum(may_use for _, may_use in pool.limits()) == CAPACITY or None
        )
        before = pool.version()
        with pool.watching() as sums:
            pool.storm()
            # what is left moves to who needs it
            own_kube.wait_until("all is used", pool.is_used_up)
        print(f"strict: {max(sums)} of {CAPACITY} Pods in {len(sums)} observations")
        assert max(sums) <= CAPACITY
        assert CAPACITY <= pool.used() <= CAPACITY + pool.forgotten_since(before)

"""PersistentVolumes through the proxy, by the claims that a user may get, behind a real kube-apiserver."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.proxy.test_namespace_lists import NAMESPACES
from tests.e2e.proxy.test_random_rights import may
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import (
    PARTIAL,
    ROLEBINDINGS,
    ROLES,
    TABLE,
    Object,
    RbacObjects,
    WatchReader,
    list_names,
    open_watch,
    user_subject,
)

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "persistentvolumeclaims"
MERGE = "application/merge-patch+json"


class Volumes:
    """PersistentVolumes that are prepared for claims, and deleted after the test."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._created: list[str] = []

    def create(self, name: str, claim_namespace: str = "") -> None:
        spec: Object = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/mnt/volumes/{name}"},
            "storageClassName": "manual",
        }
        if claim_namespace:
            spec["claimRef"] = _claim(claim_namespace)
        metadata = {"name": name, "annotations": {"example.org/backend": "hidden"}}
        self._client.request("POST", VOLUMES, {"metadata": metadata, "spec": spec}).expect(201)
        self._created.append(name)

    def claim(self, name: str, namespace: str) -> None:
        """Moves a volume to a claim of this namespace, or to none."""
        body: Object = {"spec": {"claimRef": None}}
        self._client.request("PATCH", f"{VOLUMES}/{name}", body, content_type=MERGE).expect(200)
        if namespace:
            body = {"spec": {"claimRef": _claim(namespace)}}
            self._client.request("PATCH", f"{VOLUMES}/{name}", body, content_type=MERGE).expect(200)

    def clean_up(self) -> None:
        for name in self._created:
            self._client.request("DELETE", f"{VOLUMES}/{name}")


def _claim(namespace: str) -> Object:
    return {"namespace": namespace, "name": "data"}


@pytest.fixture
def volumes(kube: KubeCluster) -> Iterator[Volumes]:
    made = Volumes(kube.client())
    yield made
    made.clean_up()


def listed(client: Client) -> list[str] | None:
    return list_names(client, VOLUMES) if client.get(VOLUMES).status == 200 else None


def test_a_user_lists_the_volumes_of_the_claims_that_they_may_get(
    kube: KubeCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, volumes: Volumes, unique: str
) -> None:
    """In every form. Neither volumes of other namespaces nor free ones, by no selector; a single one stays RBAC's."""
    mine, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    for name, namespace in (("mine", mine), ("other", other), ("free", "")):
        volumes.create(f"{unique}-{name}", namespace)
    client, shown = proxy.client(unique), f"{unique}-mine"
    assert listed(client) is None
    access.bind(unique, mine, user_subject(unique))
    kube.wait_until("the list is answered", lambda: listed(client) == [shown])
    kube.client(unique).get(VOLUMES).expect(403)
    assert "annotations" not in client.get(VOLUMES).expect(200)["items"][0]["metadata"]
    for accept in (TABLE, PARTIAL):
        text = str(client.get(VOLUMES, headers={"Accept": accept}).expect(200))
        assert shown in text
        assert f"{unique}-other" not in text
    for selector in (f"metadata.name={unique}-other", f"metadata.name={unique}-free"):
        assert list_names(client, VOLUMES, fieldSelector=selector) == []
    assert client.get(f"{VOLUMES}/{shown}").status == 403
    row = proxy.kubectl("get", "pv", "--no-headers", user=unique).stdout.split()
    of_cluster = kube.kubectl("get", "pv", shown, "--no-headers").stdout.split()
    assert row[:-1] == of_cluster[:-1]


def test_a_watch_follows_claims_and_revocations(
    kube: KubeCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, volumes: Volumes, unique: str
) -> None:
    mine, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    bound, moved = f"{unique}-bound", f"{unique}-moved"
    volumes.create(moved, other)
    access.bind(unique, mine, user_subject(unique))
    client = proxy.client(unique)
    kube.wait_until("the list is answered", lambda: listed(client) == [])
    with open_watch(client, VOLUMES) as frames:
        reader = WatchReader(frames)
        volumes.create(bound, mine)
        reader.wait_for_event("ADDED", bound)
        volumes.claim(moved, mine)
        reader.wait_for_event("ADDED", moved)
        volumes.claim(moved, other)
        reader.wait_for_event("DELETED", moved)
        volumes.claim(bound, "")
        reader.wait_for_event("DELETED", bound)
        volumes.claim(bound, mine)
        reader.wait_for_event("ADDED", bound)
        access.delete(ROLEBINDINGS, unique, mine)
        lost = reader.wait_for_event("DELETED", bound)
        assert "spec" not in lost
    kube.wait_until("the list is refused", lambda: listed(client) is None)


def test_a_watch_goes_on_from_a_list_of_a_proxy_that_started_after_the_last_change_of_the_kind(
    kube: KubeCluster, tenants: Tenants, access: RbacObjects, volumes: Volumes, unique: str, tmp_path: Path
) -> None:
    """The lists of a kube-apiserver's watch cache beside an old etcd have the version of the last change of their kind.
    The rights have changed since, and are known only from a later version on."""
    shown, granted = tenants.create_with_namespace(), tenants.create_with_namespace()
    volumes.create(f"{unique}-a", shown)
    volumes.create(f"{unique}-b", granted)
    access.bind(unique, shown, user_subject(unique))
    config = tmp_path / "config.yaml"
    config.write_text("persistentVolumesByClaim: true\n")
    started = TenantProxy(kube, tmp_path / "proxy", f"--config={config}")
    client = started.client(unique)
    kube.wait_until(
        "both lists are answered", lambda: {client.get(each).status for each in (VOLUMES, NAMESPACES)} == {200}
    )
    with open_watch(client, NAMESPACES) as namespaces, open_watch(client, VOLUMES) as found:
        access.bind(unique, granted, user_subject(unique))
        assert WatchReader(namespaces).wait_for_event("ADDED", granted)["kind"] == "Namespace"
        assert WatchReader(found).wait_for_event("ADDED", f"{unique}-b")["kind"] == "PersistentVolume"
    started.stop()


def test_the_list_agrees_with_the_reviews_of_the_cluster(
    kube: KubeCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, volumes: Volumes, unique: str
) -> None:
    """Under random roles, a user lists a volume if and only if they may get the claims of its namespace."""
    rng = random.Random(22)
    namespaces = [tenants.create_with_namespace() for _ in range(4)]
    users = [f"{unique}{number}" for number in range(4)]
    for namespace in namespaces:
        volumes.create(f"{unique}-{namespace}", namespace)
    for number in range(20):
        name, namespace = f"{unique}-{number}", rng.choice(namespaces)
        access.create(ROLES, {"metadata": {"name": name}, "rules": [_random_rule(rng)]}, namespace)
        access.bind(name, namespace, user_subject(rng.choice(users)), name)
    found: set[bool] = set()
    for user in users:
        wait_until_they_agree(kube, proxy.client(user), user, namespaces, unique)
        shown = listed(proxy.client(user)) or []
        found |= {f"{unique}-{namespace}" in shown for namespace in namespaces}
    assert found == {True, False}


def _random_rule(rng: random.Random) -> Object:
    return {
        "verbs": rng.choice([["get"], ["list"], ["*"], ["list", "watch"], ["get", "list"]]),
        "apiGroups": rng.choice([[""], ["*"], ["apps"], ["", "apps"]]),
        "resources": rng.choice([[CLAIMS], ["*"], [f"{CLAIMS}/status"], ["persistentvolumes"], ["pods", CLAIMS]]),
        "resourceNames": rng.choice([[], [], [], ["data"]]),
    }


def wait_until_they_agree(kube: KubeCluster, client: Client, user: str, namespaces: Sequence[str], prefix: str) -> None:
    """Both the cluster and the proxy learn of the last role a moment later."""

    def agree() -> bool:
        allowed = [each for each in sorted(namespaces) if may(kube.client(), user, namespace=each, resource=CLAIMS)]
        return (listed(client) or []) == [f"{prefix}-{each}" for each in allowed]

    kube.wait_until(f"the volumes of {user} agree with the reviews", agree)

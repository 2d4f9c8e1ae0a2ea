"""Two proxies before one cluster: they share nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.proxy.conftest import CONFIG
from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import ROLEBINDINGS, RbacObjects, WatchReader, open_watch


@pytest.fixture
def other(kube: KubeCluster, tmp_path: Path) -> Iterator[TenantProxy]:
    directory = tmp_path
    config = directory / "config.yaml"
    config.write_text(CONFIG)
    running = TenantProxy(kube, directory, f"--config={config}")
    yield running
    running.stop()


def test_a_list_and_its_watch_may_go_to_different_replicas(
    kube: KubeCluster, proxy: TenantProxy, other: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Pages and watches go on with the other one; a grant in between is not lost, and after a revocation, of which the
    other cannot know what its client has, the client is told to list again."""
    one, two = sorted(tenants.create_with_namespace() for _ in range(2))
    create(tenants, one, "a", "b")
    create(tenants, two, "hidden")
    grant(access, unique, one)
    first, second = proxy.client(unique), other.client(unique)
    for client in (first, second):
        kube.wait_until("the list is answered", partial(_lists, client, [(one, "a"), (one, "b")]))
    page = first.get(CONFIGMAPS, query={"limit": 1, "labelSelector": "for=test"}).expect(200)
    assert keys(second, **{"continue": page["metadata"]["continue"]}) == [(one, "b")]
    version = first.get(CONFIGMAPS).expect(200)["metadata"]["resourceVersion"]
    create(tenants, one, "late")
    grant(access, unique, two)
    kube.wait_until("the other lists both", lambda: (two, "hidden") in (keys(second) or ()))
    with open_watch(second, CONFIGMAPS, version) as frames:
        assert WatchReader(frames).wait_for_event("ADDED", "hidden")["metadata"]["namespace"] == two
    with open_watch(second, CONFIGMAPS, version) as frames:
        assert WatchReader(frames).wait_for_event("ADDED", "late")["metadata"]["namespace"] == one
    version = first.get(CONFIGMAPS).expect(200)["metadata"]["resourceVersion"]
    access.delete(ROLEBINDINGS, unique, two)
    kube.wait_until("the other lists one", lambda: (two, "hidden") not in (keys(second) or ()))
    with second.stream(CONFIGMAPS, query={"watch": "true", "resourceVersion": version}) as frames:
        frame = next(iter(frames))
    assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)


def _lists(client: Client, expected: list[tuple[str, str]]) -> bool:
    return keys(client) == expected

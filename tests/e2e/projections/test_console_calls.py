"""Cozystack's console: each of its calls answers, with the token of a tenant's user (catalogue, section 7)."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, ROOT, SDN_GROUP_VERSION, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.visibility import TABLE

_IN_ROOT = f"{CORE_GROUP_VERSION}/namespaces/{ROOT}"
_LABELS = ",".join(
    f"apps.cozystack.io/application.{field}={value}"
    for field, value in (("group", "apps.cozystack.io"), ("kind", "Postgres"), ("name", "db"))
)
CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    (f"{CORE_GROUP_VERSION}/tenantnamespaces", {}),
    (tenants_path(ROOT), {"limit": 500}),
    (f"{_IN_ROOT}/tenantmodules", {}),
    (f"{_IN_ROOT}/tenantsecrets", {"labelSelector": _LABELS}),
    (f"{_IN_ROOT}/options", {}),
    (f"{_IN_ROOT}/options/storageclass", {}),
    (f"{SDN_GROUP_VERSION}/namespaces/{ROOT}/securitygroups", {}),
)


@pytest.fixture(scope="module")
def user(cluster: E2eCluster) -> str:
    """Somebody who uses the root tenant."""
    cluster.grant("console-user", "cozy:tenant:use", ROOT)
    cluster.wait_until_allowed("console-user", ROOT, verb="get", group="core.cozystack.io", resource="tenantsecrets")
    return "console-user"


@pytest.mark.parametrize(("path", "query"), CALLS, ids=[path.rpartition("/v1alpha1/")[2] for path, _ in CALLS])
def test_a_call_answers_as_list_as_table_and_as_watch(
    cluster: E2eCluster, user: str, path: str, query: dict[str, object]
) -> None:
    client = cluster.client(user)
    cluster.wait_until("it answers", lambda: client.get(path, query=query).status == 200)
    if "items" not in client.get(path, query=query).expect(200):
        return
    cluster.wait_until("it can be watched", lambda: _watched_without_error(client, path, query))


def _watched_without_error(client: Client, path: str, query: dict[str, object]) -> bool:
    found = client.get(path, query=query).expect(200)
    table = client.get(path, query=query, headers={"Accept": TABLE}).expect(200)
    assert table["metadata"].keys() >= {"resourceVersion"}
    version = found["metadata"]["resourceVersion"]
    watch = {**query, "watch": "1", "resourceVersion": version, "timeoutSeconds": 1, "allowWatchBookmarks": "true"}
    with client.stream(path, query=watch) as frames:
        return all(frame["type"] != "ERROR" for frame in frames)

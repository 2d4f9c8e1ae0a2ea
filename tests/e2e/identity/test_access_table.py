"""Permissions of people at each level of the tree: a table for each level, as `kubectl auth can-i` answers.

The people are those of foo, in the tree root > top > foo > bar > baz, with side beside foo. Golden files show every
change of the roles and their bindings; UPDATE_GOLDEN=1 writes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest

LEVELS = ("view", "use", "admin", "super-admin")
_FILES = Path(__file__).parent / "golden"
_APPS, _CORE, _SDN = "apps.cozystack.io", "core.cozystack.io", "sdn.cozystack.io"
_ACTIONS = (
    *((verb, _APPS, "tenants") for verb in ("get", "list", "create", "update", "delete", "deletecollection")),
    ("get", _APPS, "postgreses"),
    ("create", _APPS, "postgreses"),
    ("get", _CORE, "tenantsecrets"),
    ("create", _CORE, "tenantsecrets"),
    ("get", _SDN, "securitygroups"),
    ("create", _SDN, "securitygroups"),
    ("get", "", "namespaces"),
    ("get", "", "pods"),
    ("get", "", "pods/log"),
    ("create", "", "pods"),
    ("get", "", "resourcequotas"),
    ("update", "", "resourcequotas"),
    ("get", "", "secrets"),
    ("get", "gateway.networking.k8s.io", "httproutes"),
    ("create", "gateway.networking.k8s.io", "httproutes"),
    ("create", "gateway.cozystack.io", "tenantgateways"),
    ("create", "rbac.authorization.k8s.io", "rolebindings"),
)


@dataclass(frozen=True, slots=True)
class Tree:
    """The workload namespaces by the place of their tenant, and the names of three Tenants."""

    namespaces: dict[str, str]
    names: dict[str, str]


@pytest.fixture(scope="module")
def tree(cluster: E2eCluster) -> Iterator[Tree]:
    tenants = Tenants(cluster)
    top = tenants.create_with_namespace()
    foo, side = (tenants.create_with_namespace(top) for _ in range(2))
    bar = tenants.create_with_namespace(foo)
    baz = tenants.create_with_namespace(bar)
    names = {
        "foo": foo.removeprefix(f"{top}-"),
        "side": side.removeprefix(f"{top}-"),
        "bar": bar.removeprefix(f"{foo}-"),
    }
    namespaces = {"root": ROOT, "top": top, "side": side, "foo": foo, "bar": bar, "baz": baz}
    cluster.wait_until(
        "people of the root are bound in the last namespace",
        lambda: may(cluster.client(), f"{ROOT}-super-admin", "deletecollection", _APPS, "tenants", baz),
    )
    yield Tree(namespaces, names)
    tenants.clean_up()


def may(client: Client, group: str, verb: str, api_group: str, resource: str, namespace: str, name: str = "") -> bool:
    plural, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": api_group,
        "resource": plural,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    body = {"spec": {"user": "someone", "groups": [group, "system:authenticated"], "resourceAttributes": attributes}}
    answer = client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body).expect(201)
    return bool(answer["status"]["allowed"])


def access_table(client: Client, tree: Tree, level: str) -> str:
    """A row for each action, with a column for each place: yes or a dash."""
    group = f"{tree.namespaces['foo']}-{level}"
    rows = [["can a person of foo ...", *(f"in {place}" for place in tree.namespaces)]]
    for verb, api_group, resource in _ACTIONS:
        cells = [may(client, group, verb, api_group, resource, each) for each in tree.namespaces.values()]
        rows.append([f"{verb} {resource}", *("yes" if cell else "-" for cell in cells)])
    for tenant, place in (("foo", "top"), ("side", "top"), ("bar", "foo")):
        for verb in ("get", "list", "watch", "update", "delete"):
            is_allowed = may(client, group, verb, _APPS, "tenants", tree.namespaces[place], tree.names[tenant])
            word = "yes" if is_allowed else "-"
            rows.append([f"{verb} the tenant {tenant}", *(word if each == place else "" for each in tree.namespaces)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("level", LEVELS)
def test_access_by_level_and_depth(cluster: E2eCluster, tree: Tree, level: str) -> None:
    """People have their level in their tenant and below it (R-020 to R-026); above it they may read their own Tenant
    only."""
    client, path = cluster.client(), _FILES / f"can-i-{level}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(access_table(client, tree, level))
    expected = path.read_text()
    cluster.wait_until(f"the rights of {level} are those of {path.name}", lambda: _is(client, tree, level, expected))


def _is(client: Client, tree: Tree, level: str, expected: str) -> bool:
    """The cluster's authorizer sees bindings a moment after they were written."""
    return access_table(client, tree, level) == expected


@pytest.mark.parametrize("level", LEVELS)
def test_people_of_the_root_have_their_level_everywhere(cluster: E2eCluster, tree: Tree, level: str) -> None:
    """As at Cozystack: tenant-root-super-admin is bound in every tenant."""
    client = cluster.client()
    writes = level in ("admin", "super-admin")

    def permissions() -> list[tuple[bool, bool]]:
        group = f"{ROOT}-{level}"
        return [
            (may(client, group, "get", _APPS, "tenants", each), may(client, group, "create", _APPS, "tenants", each))
            for each in tree.namespaces.values()
        ]

    cluster.wait_until("they may read everywhere", lambda: permissions() == [(True, writes)] * len(tree.namespaces))


def test_people_of_an_ancestor_see_and_change_what_is_below_them(
    cluster: E2eCluster, tenants: Tenants, tree: Tree, unique: str
) -> None:
    """An administrator who creates a sub-tenant also sees what is in it, however deep."""
    baz = tree.namespaces["baz"]
    admin, name = cluster.client(unique, [f"{tree.namespaces['foo']}-admin"]), tenants.new_name(baz)
    path = tenants_path(baz)
    cluster.wait_until("it is created", lambda: admin.request("POST", path, manifest(name, baz)).status in (201, 409))
    shown = {each["status"]["namespace"] for each in admin.get(tenants_path()).expect(200)["items"]}
    assert shown == {*(tree.namespaces[each] for each in ("foo", "bar", "baz")), f"{baz}-{name}"}

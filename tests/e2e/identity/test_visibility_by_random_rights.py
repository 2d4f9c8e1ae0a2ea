"""Lists agree with the cluster's access reviews, whatever the roles and bindings are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import pytest

from registry.rbac.role_index import to_policy_rule
from tests.e2e.support.clusters.cluster import RBAC, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    ROLEBINDINGS,
    ROLES,
    RbacObjects,
    create_child,
    group_subject,
    list_names,
    user_subject,
    wait_until_listed,
)
from tests.random_rbac import random_rule


def may_get(client: Client, who: str, groups: Sequence[str], namespace: str, **resource: str) -> bool:
    """The decision of the cluster on the verb `get`."""
    attributes = {"verb": "get", "namespace": namespace, **resource}
    spec = {"user": who, "groups": list(groups), "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = client.request("POST", path, {"spec": spec}).expect(201)
    return bool(answer["status"].get("allowed"))


def wait_until_all_are_in_effect(
    cluster: E2eCluster, access: RbacObjects, unique: str, namespaces: Sequence[str]
) -> None:
    """Creates a last object of each kind of RBAC and waits until both our server and the cluster have seen all four:
    each kind is watched on its own, in the order of its changes."""
    local, everywhere = f"{unique}local", f"{unique}everywhere"
    access.create_role("last", namespaces[0], GET_TENANTS)
    access.bind("last", namespaces[0], user_subject(local), "last")
    access.create("clusterroles", {"metadata": {"name": f"{unique}:last"}, "rules": [GET_TENANTS]})
    access.bind(f"{unique}-last", "", user_subject(everywhere), f"{unique}:last")
    wait_until_listed(cluster.client(local), NAMESPACES, [namespaces[0]])
    reader = cluster.client(everywhere)
    wait_until("all namespaces are visible", lambda: set(namespaces) <= set(list_names(reader, NAMESPACES)))
    for user in (local, everywhere):
        cluster.wait_until_allowed(user, namespaces[0], verb="get", group="apps.cozystack.io", resource="tenants")


@pytest.mark.every_tenant
def test_lists_agree_with_the_access_reviews_of_the_cluster(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Random roles and bindings, some of them for objects of certain names: for each namespace, Tenant and user, lists
    and reviews agree."""
    rng = random.Random(11)
    namespaces = [tenants.create_with_namespace() for _ in range(6)]
    children = {namespace: create_child(tenants, namespace) for namespace in namespaces}
    names = [*namespaces, *children.values()]
    users = {f"{unique}a": [f"{unique}g"], f"{unique}b": [], f"{unique}c": [f"{unique}g", f"{unique}h"]}
    subjects = [*(user_subject(name) for name in users), group_subject(f"{unique}g"), group_subject(f"{unique}h")]
    for number in range(60):
        name, namespace = f"{unique}-{number}", rng.choice([*namespaces, *namespaces, ""])
        rules = [to_policy_rule(random_rule(rng, names)) for _ in range(rng.randint(0, 2))]
        kind = "Role" if namespace and rng.random() < 0.5 else "ClusterRole"
        path = ROLES if kind == "Role" else "clusterroles"
        access.create(path, {"metadata": {"name": name}, "rules": rules}, namespace if kind == "Role" else "")
        body = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": rng.sample(subjects, 1),
        }
        access.create(ROLEBINDINGS if namespace else "clusterrolebindings", body, namespace)
    wait_until_all_are_in_effect(cluster, access, unique, namespaces)
    admin, decisions = cluster.client(), {True: 0, False: 0}
    for name, groups in users.items():
        groups = [*groups, "system:authenticated"]
        client = cluster.client(name, groups[:-1])
        shown, listed = set(list_names(client, NAMESPACES)), set(list_names(client, tenants_path()))
        for namespace in namespaces:
            tenants_in = partial(may_get, admin, name, groups, namespace, group="apps.cozystack.io", resource="tenants")
            of_all, of_child = tenants_in(), tenants_in(name=children[namespace])
            of_namespace = may_get(admin, name, groups, namespace, resource="namespaces", name=namespace)
            assert (namespace in shown) == (of_all or of_namespace), (name, namespace)
            assert (children[namespace] in listed) == of_child, (name, namespace)
            decisions[of_child] += 1
    assert min(decisions.values()) >= 3

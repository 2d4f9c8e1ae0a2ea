"""The lists of the proxy agree with the access reviews of the cluster, whatever the roles and bindings are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from registry.rbac.role_index import to_policy_rule
from tests.e2e.proxy.test_merged_lists import create, keys
from tests.e2e.support.clusters.cluster import RBAC, E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import ROLES, Object, RbacObjects, list_names, user_subject
from tests.random_rbac import random_rule

NAMESPACES = "/api/v1/namespaces"
CLUSTERROLES = "clusterroles"
ROLES_PATH = f"/apis/{RBAC}/v1/{CLUSTERROLES}"
ALL_ROLES = {"group": RBAC, "resource": CLUSTERROLES}
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def may(client: Client, who: str, verb: str = "get", **attributes: str) -> bool:
    spec = {"user": who, "groups": ["system:authenticated"], "resourceAttributes": {"verb": verb, **attributes}}
    return bool(client.request("POST", REVIEWS, {"spec": spec}).expect(201)["status"].get("allowed"))


def test_a_user_lists_exactly_the_namespaces_whose_tenants_or_themselves_they_may(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    rng = random.Random(19)
    namespaces = [tenants.create_with_namespace() for _ in range(4)]
    users = [f"{unique}{number}" for number in range(5)]
    for number in range(40):
        name, namespace = f"{unique}-{number}", rng.choice(namespaces)
        rules = [to_policy_rule(random_rule(rng, namespaces)) for _ in range(rng.randint(1, 2))]
        access.create(ROLES, {"metadata": {"name": name}, "rules": rules}, namespace)
        access.bind(name, namespace, user_subject(rng.choice(users)), name)
    admin, found = cluster.client(), set()
    for user in users:
        wait_until_they_agree(cluster, proxy.client(user), admin, user, namespaces)
        listed = _listed(proxy.client(user))
        found |= {namespace in listed for namespace in namespaces}
    assert found == {True, False}


def wait_until_they_agree(
    cluster: E2eCluster, client: Client, admin: Client, user: str, namespaces: Sequence[str]
) -> None:
    """Both the cluster and the proxy learn of the last role a moment later."""

    def agree() -> bool:
        return _listed(client) == {each for each in namespaces if _is_visible(admin, user, each)}

    cluster.wait_until(f"the list of {user} agrees with the reviews", agree)


def _is_visible(admin: Client, user: str, namespace: str) -> bool:
    of_tenants = may(admin, user, namespace=namespace, group="apps.cozystack.io", resource="tenants")
    return of_tenants or may(admin, user, namespace=namespace, resource="namespaces", name=namespace)


def _listed(client: Client) -> set[str]:
    return set(list_names(client, NAMESPACES)) if client.get(NAMESPACES).status == 200 else set()


def test_a_list_of_all_namespaces_has_those_where_the_user_may_list(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Neither less nor more, with rules for other verbs, kinds, subresources and names beside."""
    rng = random.Random(20)
    namespaces = [tenants.create_with_namespace() for _ in range(4)]
    users = [f"{unique}{number}" for number in range(5)]
    for namespace in namespaces:
        create(tenants, namespace, "a")
    for number in range(30):
        name, namespace = f"{unique}-{number}", rng.choice(namespaces)
        access.create(
            ROLES, {"metadata": {"name": name}, "rules": [_rule_of_kind(rng, "configmaps", ["a"])]}, namespace
        )
        access.bind(name, namespace, user_subject(rng.choice(users)), name)
    admin, found = cluster.client(), set()
    for user in users:
        client = proxy.client(user)
        allowed = [may(admin, user, "list", namespace=each, resource="configmaps") for each in namespaces]
        expected = {each for each, is_allowed in zip(namespaces, allowed, strict=True) if is_allowed}
        cluster.wait_until(f"the list of {user} agrees", partial(_agrees, client, expected))
        found |= set(allowed)
    assert found == {True, False}


def test_a_list_of_names_has_those_that_the_user_may_get(
    cluster: E2eCluster, proxy: TenantProxy, access: RbacObjects, unique: str
) -> None:
    rng = random.Random(21)
    names = [f"{unique}:{letter}" for letter in "abcd"]
    users = [f"{unique}{number}" for number in range(5)]
    for name in names:
        access.create("clusterroles", {"metadata": {"name": name}, "rules": []})
    for number in range(15):
        name = f"{unique}:r{number}"
        access.create("clusterroles", {"metadata": {"name": name}, "rules": [_rule_of_kind(rng, CLUSTERROLES, names)]})
        access.bind(name, "", user_subject(rng.choice(users)), name)
    admin, sizes = cluster.client(), set()
    for user in users:
        client = proxy.client(user)
        if may(admin, user, "list", **ALL_ROLES):
            # the cluster answers
            continue
        if may(admin, user, **ALL_ROLES):
            # one who may get them all, and not list them, is told no names
            assert client.get(ROLES_PATH).status == 403
            continue
        expected = {name for name in names if may(admin, user, name=name, **ALL_ROLES)}
        cluster.wait_until(f"the list of {user} agrees", partial(_roles_agree, client, expected))
        sizes.add(len(expected))
    assert len(sizes) > 1


def _rule_of_kind(rng: random.Random, plural: str, names: Sequence[str]) -> Object:
    group = ALL_ROLES["group"] if plural == CLUSTERROLES else ""
    return {
        "verbs": rng.choice([["get"], ["list"], ["list", "watch"], ["*"], ["get", "update"], ["LIST"]]),
        "apiGroups": rng.choice([[group], ["*"], ["apps"], [group, "apps"]]),
        "resources": rng.choice([[plural], ["*"], [f"{plural}/status"], ["secrets"], [plural, "secrets"]]),
        "resourceNames": rng.choice([[], [rng.choice(names)], [rng.choice(names), "x"]]),
    }


def _agrees(client: Client, expected: set[str]) -> bool:
    return {namespace for namespace, _ in keys(client) or ()} == expected


def _roles_agree(client: Client, expected: set[str]) -> bool:
    return _listed_roles(client) == expected


def _listed_roles(client: Client) -> set[str]:
    return set(list_names(client, ROLES_PATH)) if client.get(ROLES_PATH).status == 200 else set()

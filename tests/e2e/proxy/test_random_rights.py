"""The list of namespaces agrees with the access reviews of the cluster, whatever the roles and bindings are."""

from __future__ import annotations

import random
from collections.abc import Sequence

from registry.rbac.role_index import to_policy_rule
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import ROLES, RbacObjects, list_names, user_subject
from tests.random_rbac import random_rule

NAMESPACES = "/api/v1/namespaces"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def _may_get(client: Client, who: str, **attributes: str) -> bool:
    spec = {"user": who, "groups": ["system:authenticated"], "resourceAttributes": {"verb": "get", **attributes}}
    return bool(client.request("POST", REVIEWS, {"spec": spec}).expect(201)["status"].get("allowed"))


def test_a_user_lists_exactly_the_namespaces_whose_tenants_or_themselves_they_may_get(
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
    of_tenants = _may_get(admin, user, namespace=namespace, group="apps.cozystack.io", resource="tenants")
    return of_tenants or _may_get(admin, user, namespace=namespace, resource="namespaces", name=namespace)


def _listed(client: Client) -> set[str]:
    return set(list_names(client, NAMESPACES)) if client.get(NAMESPACES).status == 200 else set()

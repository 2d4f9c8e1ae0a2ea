"""A ClusterRole that lacks permissions: missing ones are reported, and nothing is removed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.tenants import Tenants

APEX = "foo.example.com"
_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tenant-apiserver"

Rule = dict[str, Any]


def replace_rules(cluster: KubeCluster, change: Callable[[Rule], Rule]) -> list[Rule]:
    """Changes the rules of our ClusterRole and returns the previous ones."""
    rules: list[Rule] = cluster.client().get(_ROLE).expect(200)["rules"]
    restore_rules(cluster, [change(each) for each in rules])
    return rules


def restore_rules(cluster: KubeCluster, rules: list[Rule]) -> None:
    cluster.client().update(_ROLE, lambda role: {**role, "rules": rules}).expect(200)


def without_read_verbs(plural: str, rule: Rule) -> Rule:
    """Removes the read verbs from a rule for this resource."""
    if plural not in rule.get("resources", ()):
        return rule
    return {**rule, "verbs": [each for each in rule["verbs"] if each not in ("get", "list", "watch")]}


@pytest.mark.timeout(600)
def test_late_permissions_remove_nothing(own_kube: KubeCluster) -> None:
    """During an upgrade, the ClusterRole may be applied later than the Deployment (GW-14, GW-15)."""
    gateways, tenants = Gateways(own_kube), Tenants(own_kube)
    foo, harbor = gateways.create_owner(), gateways.create_namespace("cozy-harbor")
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor])
    gateways.create_route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.create_route(foo, "loser", f"harbor.{APEX}", to=foo, port=443)
    gateways.wait_until("the losing route has the conflict in its status", lambda: gateways.has_conflict(foo, "loser"))
    gateways.wait_until("the namespace is attached", lambda: gateways.attachment(harbor) == (foo, foo))
    status = gateways.get("httproutes", foo, "loser")["status"]

    rules = replace_rules(own_kube, partial(without_read_verbs, "tenantgateways"))
    own_kube.restart()
    # the controllers are running once a new Tenant has its Namespace
    tenants.create_with_namespace()
    assert gateways.attachment(harbor) == (foo, foo)
    assert gateways.get("httproutes", foo, "loser")["status"] == status
    restore_rules(own_kube, rules)
    gateways.create_route(harbor, "late", f"late.{APEX}", to=foo)
    served = partial(gateways.listener_hostnames, foo)
    gateways.wait_until("the late route is served", lambda: f"late.{APEX}" in served(), seconds=2 * PATIENCE)

    rules = replace_rules(own_kube, partial(without_read_verbs, "certificates"))
    own_kube.restart()
    message = "certificates.cert-manager.io cannot be listed and watched: "
    gateways.wait_until(
        "the missing permission is reported", lambda: message in gateways.conditions(foo)["Ready"]["message"]
    )
    assert gateways.ready_reason(foo) == "ReconcileError"
    gateways.create_route(harbor, "later", f"later.{APEX}", to=foo)
    gateways.wait_until("listeners are still added", lambda: f"later.{APEX}" in served())
    restore_rules(own_kube, rules)
    gateways.wait_until(
        "the error is resolved", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted", seconds=2 * PATIENCE
    )
    assert len(gateways.names("certificates", foo)) == len(served())

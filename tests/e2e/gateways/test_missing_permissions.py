"""A process whose ClusterRole is behind: what it may not see is named, and nothing is taken away meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.e2e.support.clusters import PATIENCE, KubeCluster
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.tenants import Tenants

APEX = "foo.example.com"
_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tenant-apiserver"

Rule = dict[str, Any]


def change_rights(cluster: KubeCluster, change: Callable[[Rule], Rule]) -> list[Rule]:
    """The rules as they were."""
    client = cluster.session()
    role = client.get(_ROLE).expect(200)
    rules: list[Rule] = role["rules"]
    client.request("PUT", _ROLE, {**role, "rules": [change(each) for each in rules]}).expect(200)
    return rules


def give_back(cluster: KubeCluster, rules: list[Rule]) -> None:
    client = cluster.session()
    client.request("PUT", _ROLE, {**client.get(_ROLE).expect(200), "rules": rules}).expect(200)


def without(plural: str, rule: Rule) -> Rule:
    """Nothing may be read of it."""
    if plural not in rule.get("resources", ()):
        return rule
    return {**rule, "verbs": [each for each in rule["verbs"] if each not in ("get", "list", "watch")]}


@pytest.mark.timeout(600)
def test_rights_that_come_late_cost_nobody_anything(own_kube: KubeCluster) -> None:
    """GW-14, GW-15: after an upgrade whose ClusterRole is applied later than the Deployment."""
    gateways, tenants = Gateways(own_kube), Tenants(own_kube)
    foo, harbor = gateways.namespace("m-foo"), gateways.namespace("cozy-harbor")
    gateways.ask(foo, APEX, attachedNamespaces=[harbor])
    gateways.route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.route(foo, "loser", f"harbor.{APEX}", to=foo, port=443)
    gateways.until("the loser is told", lambda: gateways.lost(foo, "loser"))
    gateways.until("and attached", lambda: gateways.mark(harbor) == (foo, foo))
    told = gateways.get("httproutes", foo, "loser")["status"]

    rules = change_rights(own_kube, partial(without, "tenantgateways"))
    own_kube.restart()
    # the controllers are at work once a new Tenant has its Namespace
    tenants.nest()
    assert gateways.mark(harbor) == (foo, foo)
    assert gateways.get("httproutes", foo, "loser")["status"] == told
    give_back(own_kube, rules)
    gateways.route(harbor, "late", f"late.{APEX}", to=foo)
    served = partial(gateways.listeners, foo)
    gateways.until("it works again", lambda: f"late.{APEX}" in served(), seconds=2 * PATIENCE)

    rules = change_rights(own_kube, partial(without, "certificates"))
    own_kube.restart()
    named = "the host does not show certificates.cert-manager.io: "
    gateways.until("it is named", lambda: named in gateways.conditions(foo)["Ready"]["message"])
    assert gateways.reason(foo) == "ReconcileError"
    gateways.route(harbor, "later", f"later.{APEX}", to=foo)
    gateways.until("listeners are made meanwhile", lambda: f"later.{APEX}" in served())
    give_back(own_kube, rules)
    gateways.until("no fault", lambda: gateways.reason(foo) == "GatewayNotAccepted", seconds=2 * PATIENCE)
    assert len(gateways.names("certificates", foo)) == len(served())

"""The rendered network policies of seed 001's tenants, in both forms."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from apiserver.meta.resource import Object
from controller.tenant.isolation.cilium import render_cilium_policies
from controller.tenant.isolation.model import ClusterNetworks, IsolatedTenant
from controller.tenant.isolation.network_policies import render_network_policies
from registry.tenant.inheritance import Services
from tests.controller.golden_files import assert_golden
from tests.controller.tenant.isolation.tenant_forest import NETWORKS, PEERS

ROOT, FOO, BAR = "tenant-root", "tenant-foo", "tenant-foo-bar"
TENANTS = {
    "root": IsolatedTenant(namespace=ROOT, services=Services(etcd=ROOT, ingress=ROOT, monitoring=ROOT, seaweedfs=ROOT)),
    "bar": IsolatedTenant(
        namespace=BAR,
        ancestors=(FOO, ROOT),
        services=Services(etcd=BAR, ingress=ROOT, monitoring=FOO, seaweedfs=ROOT),
    ),
    "alone": IsolatedTenant(namespace=BAR),
}
NAMES = {
    "root": ["tenant-isolation", "tenant-ingress", "tenant-apiserver", "tenant-services", "tenant-to-etcd"],
    "bar": ["tenant-isolation", "tenant-ingress", "tenant-apiserver", "tenant-services", "tenant-to-etcd"],
    "alone": ["tenant-isolation", "tenant-ingress", "tenant-apiserver"],
}


def names(policies: Iterable[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in policies]


@pytest.mark.parametrize("name", TENANTS)
def test_the_cilium_policies(name: str) -> None:
    rendered = list(render_cilium_policies(TENANTS[name], PEERS))

    assert names(rendered) == NAMES[name]
    assert_golden(f"isolation/cilium-{name}", rendered)


@pytest.mark.parametrize("name", TENANTS)
def test_the_network_policies(name: str) -> None:
    assert_golden(f"isolation/networkpolicies-{name}", list(render_network_policies(TENANTS[name], PEERS, NETWORKS)))


def test_one_rule_allows_connections_to_the_api_server_and_it_selects_the_pod_label() -> None:
    """R-078, R-079; and no rule names the entity `cluster`, which contains every tenant."""
    allowed: list[tuple[str, Object]] = []
    for policy in render_cilium_policies(TENANTS["bar"], PEERS):
        for spec in [policy["spec"]] if policy["spec"] else policy["specs"]:
            for rule in spec.get("egress", ()):
                if "kube-apiserver" in rule.get("toEntities", ()):
                    allowed.append((policy["metadata"]["name"], spec["endpointSelector"]))
            for rule in (*spec.get("egress", ()), *spec.get("ingress", ())):
                assert not {"cluster", "all"} & {*rule.get("toEntities", ()), *rule.get("fromEntities", ())}
    assert allowed == [("tenant-apiserver", {"matchLabels": {"policy.cozystack.io/allow-to-apiserver": "true"}})]


def test_a_child_named_ingress_below_a_tenant_with_ingress_clashes_with_nothing() -> None:
    """All policies are in the tenant's own Namespace, under the same names for every tenant."""
    services = Services(ingress="tenant-ingress")
    child = IsolatedTenant(namespace="tenant-ingress-ingress", ancestors=("tenant-ingress",), services=services)
    parent = IsolatedTenant(namespace="tenant-ingress", services=services)

    for tenant in (parent, child):
        rendered = render_cilium_policies(tenant, PEERS)
        assert {each["metadata"]["namespace"] for each in rendered} == {tenant.namespace}
    assert names(render_cilium_policies(parent, PEERS)) == [*NAMES["alone"], "tenant-services"]
    assert names(render_cilium_policies(child, PEERS)) == NAMES["alone"]


def test_ancestors_are_not_taken_out_of_names() -> None:
    """R-050."""
    odd = IsolatedTenant(namespace="team", ancestors=("shop-floor", ROOT))
    spec = render_cilium_policies(odd, PEERS)[0]["spec"]
    ingress = spec["egress"][0]["toEndpoints"][3]["matchExpressions"]

    assert ingress[0]["values"] == ["shop-floor", ROOT]
    assert ingress[1] == {"key": "cozystack.io/service", "operator": "In", "values": ["ingress"]}


def test_without_the_networks_of_the_cluster_nothing_opens_the_world() -> None:
    unknown = ClusterNetworks(nodes=NETWORKS.nodes, api_server=NETWORKS.api_server)
    known = [*render_network_policies(TENANTS["bar"], PEERS, NETWORKS)]
    rendered = [*render_network_policies(TENANTS["bar"], PEERS, unknown)]

    assert "0.0.0.0/0" in str(known)
    assert "0.0.0.0/0" not in str(rendered)
    assert "::/0" not in str(rendered)
    assert names(rendered) == names(known)


@pytest.mark.parametrize(
    ("networks", "opened"),
    [
        pytest.param(["10.0.0.0/8"], ["0.0.0.0/0"], id="one family"),
        pytest.param(["fd00::/8"], ["::/0"], id="the other"),
        pytest.param(["10.0.0.0/8", "fd00::/8"], ["0.0.0.0/0", "::/0"], id="both"),
    ],
)
def test_the_world_is_opened_in_the_families_of_which_the_cluster_is_known(
    networks: list[str], opened: list[str]
) -> None:
    """Pods of a cluster with both would reach each other by the addresses of the family that nobody named."""
    rendered = render_network_policies(TENANTS["alone"], PEERS, ClusterNetworks(cluster=networks))
    rules = rendered[0]["spec"]["egress"][1]["to"]
    assert [(each["ipBlock"]["cidr"], bool(each["ipBlock"]["except"])) for each in rules] == [
        (cidr, True) for cidr in opened
    ]


def test_the_order_and_overlaps_of_networks_change_no_policy() -> None:
    mixed = ClusterNetworks(
        cluster=("192.0.2.0/25", *reversed(NETWORKS.cluster), "10.244.7.0/24"),
        nodes=("192.0.2.128/25", "192.0.2.0/25"),
        api_server=tuple(reversed(NETWORKS.api_server)),
    )
    assert render_network_policies(TENANTS["bar"], PEERS, mixed) == render_network_policies(
        TENANTS["bar"], PEERS, NETWORKS
    )

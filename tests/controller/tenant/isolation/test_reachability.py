"""The policies of tenants decide who reaches whom: in the tree of seed 001 and in random trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta.resource import Object
from controller.tenant.isolation.model import PeerNamespaces
from registry.names import workload_namespace
from registry.tenant.inheritance import effective_services
from registry.tenant.summary import TenantSummary
from tests.controller.tenant.isolation import policy_model as model
from tests.controller.tenant.isolation.cells import BAR, CELLS, DEFAULT, QUX, SEED, Cell, of
from tests.controller.tenant.isolation.policy_model import may_connect
from tests.controller.tenant.isolation.tenant_forest import (
    ETCD,
    INGRESS,
    NETWORKS,
    SERVICE_PODS,
    TO_API_SERVER,
    TO_ETCD,
    VMINSERT,
    Forest,
)
from tests.tenant_objects import root_summary, tenant_summary

Render = Callable[[Forest], Sequence[Object]]
FORMS: Mapping[str, Render] = {"cilium": Forest.cilium, "networkpolicies": Forest.network_policies}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cell", CELLS, ids=[each.name for each in CELLS])
def test_who_reaches_whom(form: str, cell: Cell) -> None:
    """R-076, R-078, R-079, R-080, R-081, PEER-26."""
    assert cell.judge(FORMS[form](SEED)) is cell.allowed


@pytest.mark.parametrize("form", FORMS)
def test_pods_of_namespaces_that_the_platform_allows_reach_tenants(form: str) -> None:
    opened = PeerNamespaces(allow_from=("default",))
    policies = SEED.cilium(opened) if form == "cilium" else SEED.network_policies(opened)

    assert may_connect(policies, DEFAULT, BAR)
    assert not may_connect(policies, DEFAULT, of(BAR, ETCD))
    assert not may_connect(policies, BAR, DEFAULT)


def test_pods_do_not_reach_hostnames_of_gateways_within_the_cluster_on_cilium() -> None:
    """The stricter reading of what the entity `ingress` means for a sender."""
    assert not may_connect(SEED.cilium(), BAR, model.GATEWAY)


def test_two_pods_whose_addresses_are_in_no_network_count_as_the_world_without_cilium() -> None:
    """EndpointSlices show such Pods, but not those of no Service: `isolation.clusterCIDRs` has to name their network.
    Of two Pods with one such address, the policies of the other one stop the connection."""
    one, other = replace(BAR, address="172.30.0.8"), replace(QUX, address="172.30.0.9")
    known = SEED.network_policies(networks=replace(NETWORKS, cluster=(*NETWORKS.cluster, "172.30.0.0/16")))
    assert may_connect(SEED.network_policies(), one, other)
    assert not may_connect(SEED.network_policies(), one, QUX)
    assert not may_connect(SEED.network_policies(), BAR, other)
    assert not may_connect(known, one, other)
    assert not may_connect(SEED.cilium(), one, other)


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """A root and up to nine tenants, each below any of those before it, with any services."""
    tenants: list[TenantSummary] = [root_summary()]
    for name in draw(st.lists(st.sampled_from("abcdefgh"), max_size=9)):
        parent = draw(st.sampled_from(tenants)).namespace
        namespace = workload_namespace(parent, name)
        if namespace not in {each.namespace for each in tenants}:
            flags = draw(st.sets(st.sampled_from(["etcd", "ingress", "monitoring"])))
            tenants.append(tenant_summary(name, parent, spec=dict.fromkeys(flags, True)))
    return Forest.of(tenants)


ADDRESSES = ("10.244.0.9", "10.244.255.254", "10.96.0.10")
"""Of Pods, whether they are part of a Service or not, and of a Service."""
LABELS: Sequence[Mapping[str, str]] = ({}, ETCD, INGRESS, VMINSERT, TO_ETCD, TO_API_SERVER, {**TO_ETCD, **INGRESS})


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(
    forest=forests(),
    sender=st.sampled_from(LABELS),
    receiver=st.sampled_from(LABELS),
    address=st.sampled_from(ADDRESSES),
)
def test_no_tenant_reaches_one_that_is_neither_above_nor_below_it(
    form: str, forest: Forest, sender: Mapping[str, str], receiver: Mapping[str, str], address: str
) -> None:
    """R-076: whatever labels a Pod sets and at whatever address, in both directions."""
    policies = FORMS[form](forest)
    namespaces = [each.namespace for each in forest.tenants]
    senders = {each: forest.pod(each, sender) for each in namespaces}
    receivers = {each: replace(forest.pod(each, receiver), address=address) for each in namespaces}
    for one, other in permutations(namespaces, 2):
        if not forest.related(one, other):
            assert not may_connect(policies, senders[one], receivers[other])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(forest=forests())
def test_the_services_that_a_tenant_uses_are_reached(form: str, forest: Forest) -> None:
    """R-050, R-063: those of each ancestor that the tree provides, however deep the tenant is."""
    policies = FORMS[form](forest)
    for tenant in forest.tenants:
        services = effective_services(tenant, forest.tree.ancestors(tenant)).by_name()
        for service, labels in SERVICE_PODS.items():
            provider = forest.pod(services[service], labels)
            assert may_connect(policies, forest.pod(tenant.namespace, TO_ETCD), provider), (tenant.namespace, service)
        for ancestor in forest.tree.ancestors(tenant):
            below = effective_services(ancestor, forest.tree.ancestors(ancestor))
            if below.ingress == ancestor.namespace:
                ingress = forest.pod(ancestor.namespace, INGRESS)
                assert may_connect(policies, forest.pod(tenant.namespace), ingress)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(forest=forests(), labels=st.sampled_from(LABELS))
def test_a_child_reaches_nothing_of_an_ancestor_but_its_services(
    form: str, forest: Forest, labels: Mapping[str, str]
) -> None:
    policies = FORMS[form](forest)
    for tenant in forest.tenants:
        for ancestor in forest.tree.ancestors(tenant):
            assert not may_connect(policies, forest.pod(tenant.namespace, labels), forest.pod(ancestor.namespace))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None)
@given(forest=forests(), receiver=st.sampled_from([{}, INGRESS, VMINSERT]))
def test_an_ancestor_reaches_every_pod_below_it_but_etcd(
    form: str, forest: Forest, receiver: Mapping[str, str]
) -> None:
    policies = FORMS[form](forest)
    for tenant in forest.tenants:
        for ancestor in forest.tree.ancestors(tenant):
            above = forest.pod(ancestor.namespace)
            assert may_connect(policies, above, forest.pod(tenant.namespace, receiver))
            assert not may_connect(policies, above, forest.pod(tenant.namespace, ETCD))

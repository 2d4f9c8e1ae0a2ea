"""The rows of the table for the network policies of tenants."""

from __future__ import annotations

from collections.abc import Sequence

from controller.tenant.isolation.chart_policies import CLUSTERWIDE_POLICIES
from controller.tenant.isolation.policy_kinds import CILIUM_NAMES, CILIUM_POLICIES, PLAIN_NAMES
from registry.cluster.interface import ENDPOINTSLICES, NETWORKPOLICIES, NODES, SERVICECIDRS
from tenant_apiserver.least_privilege import places
from tenant_apiserver.least_privilege.right import Right, Role

_REMAINS = "Open the Pods of tenants to each other and to everybody, or cut them off. Read all of these policies."
_ALL = ("get", "list", "watch", "create", "patch", "delete")
_CILIUM_TEST = (
    "tests/e2e/tenants/test_isolation.py::test_cilium_policies_are_written_restored_and_replaced_when_the_kind_is_gone"
)
_CILIUM_CHART_TEST = "tests/e2e/tenants/test_isolation.py::test_a_policy_of_the_charts_release_is_named_and_left"


def isolation_rights(role: Role) -> Sequence[Right]:
    return (*_policies(role), *_networks(role))


def _policies(role: Role) -> Sequence[Right]:
    return (
        Right(
            role=role,
            group=CILIUM_POLICIES.group,
            resources=[CILIUM_POLICIES.plural],
            verbs=_ALL,
            place=places.named(*sorted(CILIUM_NAMES)),
            proofs=dict.fromkeys(_ALL, _CILIUM_TEST),
            why="Network policies isolate tenants from one another, where the cluster has Cilium.",
            remains=_REMAINS,
        ),
        Right(
            role=role,
            group=CLUSTERWIDE_POLICIES.group,
            resources=[CLUSTERWIDE_POLICIES.plural],
            verbs=["list", "watch"],
            proofs=dict.fromkeys(("list", "watch"), _CILIUM_CHART_TEST),
            why="The policies of Cozystack's chart take over from ours, and back; some of them are cluster-wide.",
            remains="Read all of them.",
        ),
        Right(
            role=role,
            group=NETWORKPOLICIES.group,
            resources=[NETWORKPOLICIES.plural],
            verbs=_ALL,
            place=places.named(*sorted(PLAIN_NAMES)),
            why="Network policies isolate tenants from one another, where the cluster does not have Cilium.",
            remains=_REMAINS,
        ),
    )


def _networks(role: Role) -> Sequence[Right]:
    return (
        Right(
            role=role,
            group=NODES.group,
            resources=[NODES.plural],
            verbs=["list", "watch"],
            why="NetworkPolicies must name the networks of Pods and nodes, unless `isolation.clusterCIDRs` tells them.",
            remains="Know all nodes, with their addresses and what runs on them.",
        ),
        Right(
            role=role,
            group=SERVICECIDRS.group,
            resources=[SERVICECIDRS.plural],
            verbs=["list", "watch"],
            why="NetworkPolicies must name the networks of Services, unless `isolation.clusterCIDRs` tells them.",
            remains="Know these networks.",
        ),
        Right(
            role=role,
            group=ENDPOINTSLICES.group,
            resources=[ENDPOINTSLICES.plural],
            verbs=["list", "watch"],
            why="NetworkPolicies must name the addresses of kube-apiserver. Without `isolation.clusterCIDRs`, the "
            "addresses of Pods confirm the networks that Nodes tell.",
            remains="Know the addresses of all Pods that are part of a Service.",
        ),
    )

"""The step that isolates a Tenant's Namespace with network policies, before anybody gets access to it (R-076 to R-081).

Nothing of a Tenant but its place in the tree and its services changes the policies: no field, label or annotation turns
them off (R-077).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from controller.runtime.conditions import Finding, join_limited
from controller.runtime.parallel import run_all
from controller.tenant.helm_ownership import ChartMode, ObjectManager, tenant_release
from controller.tenant.isolation.chart_policies import ChartPolicies
from controller.tenant.isolation.cilium import render_cilium_policies
from controller.tenant.isolation.model import ClusterNetworks, IsolatedTenant, PeerNamespaces
from controller.tenant.isolation.network_policies import render_network_policies
from controller.tenant.isolation.networks import ConfiguredNetworks, NetworkSource
from controller.tenant.isolation.policy_kinds import ALWAYS, PolicyKind, PolicyKinds
from controller.tenant.isolation.policy_writer import PolicyWriter
from controller.tenant.observe import ObservedTenant
from controller.tenant.planning.context import PlanningContext

ISOLATION_READY = "IsolationReady"
NOT_SERVED, NETWORKS_UNKNOWN = "NotServed", "ClusterNetworksUnknown"
CHART_POLICIES_REMAIN, REFUSED = "ChartPoliciesRemain", "Refused"
TURNED_OFF, LEFT_TO_CHART = "TurnedOff", "LeftToChart"
ON_PURPOSE = frozenset((TURNED_OFF, LEFT_TO_CHART))
"""Reasons with which IsolationReady is False, and the Tenant is ready nevertheless: the platform has chosen so."""

IsolationMode = Literal["auto", "cilium", "networkPolicy", "off"]
"""The setting `tenants.isolation`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationStepSettings:
    """The current settings, each read on demand."""

    chart: Callable[[], ChartMode]
    mode: Callable[[], IsolationMode]
    peers: Callable[[], PeerNamespaces]
    networks: Callable[[], ConfiguredNetworks]


class IsolationStep:
    """Finding: IsolationReady always."""

    name = "isolation"
    condition = ISOLATION_READY

    def __init__(
        self,
        *,
        writer: PolicyWriter,
        kinds: PolicyKinds,
        charts: ChartPolicies,
        networks: NetworkSource,
        settings: IsolationStepSettings,
    ) -> None:
        self._writer = writer
        self._kinds = kinds
        self._charts = charts
        self._networks = networks
        self._settings = settings

    def planning(self, context: PlanningContext) -> IsolationStep:
        return IsolationStep(
            writer=context.policies,
            kinds=self._kinds,
            charts=self._charts,
            networks=self._networks,
            settings=self._settings,
        )

    def permits_access(self, namespace: str) -> bool:
        """True if users may get access to the Namespace: it was isolated once, or is left open on purpose."""
        if self._settings.chart() == "flux" or self._settings.mode() == "off":
            return True
        return any(
            all((known := digests.get(namespace, name)) and known.manager is ObjectManager.OURS for name in ALWAYS)
            for digests in self._kinds.digests
        )

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        await self._kinds.wait_until_known()
        if self._settings.chart() == "flux":
            return [await self._leave_to_chart(observed)]
        if self._settings.mode() == "off":
            await self._remove_all(observed.tenant.namespace)
            return [_false(TURNED_OFF, "tenants.isolation is off: the platform does not isolate its tenants")]
        kind = self._chosen_kind()
        if kind is None:
            return [self._not_served()]
        return [await self._isolate(observed, kind)]

    def _chosen_kind(self) -> PolicyKind | None:
        """Without knowing of Cilium, nothing is written: its nodes and Pods are in no ipBlock of a NetworkPolicy."""
        cilium, plain, mode = self._kinds.cilium, self._kinds.plain, self._settings.mode()
        if mode != "networkPolicy" and cilium.served:
            return cilium
        return plain if plain.served and _may_be_plain(mode, cilium) else None

    def _not_served(self) -> Finding:
        cilium, plain, mode = self._kinds.cilium, self._kinds.plain, self._settings.mode()
        asked = {"cilium": (cilium,), "networkPolicy": (plain,)}.get(mode, (cilium, plain))
        if problems := [each.problem for each in asked if each.problem]:
            return _false(REFUSED, f"the kinds of network policies cannot be listed: {'; '.join(problems)}")
        return _false(NOT_SERVED, f"the cluster serves no kind of network policies for tenants.isolation {mode}")

    async def _isolate(self, observed: ObservedTenant, kind: PolicyKind) -> Finding:
        tenant, networks = _isolated(observed), ClusterNetworks()
        if kind is self._kinds.plain:
            configured = self._settings.networks()
            await self._networks.wait_until_known(configured)
            networks = self._networks.current(configured)
            desired = render_network_policies(tenant, self._settings.peers(), networks)
        else:
            desired = render_cilium_policies(tenant, self._settings.peers())
        refusals = await run_all(
            self._writer.ensure(kind.digests, policy, observed.tenant.key)
            for policy in desired
            if not self._writer.is_current(kind.digests, policy)
        )
        names = {policy["metadata"]["name"] for policy in desired}
        await self._remove_others(tenant.namespace, kind, names, keep_other_kind=any(refusals))
        if problems := [each for each in refusals if each]:
            return _false(REFUSED, "; ".join(problems))
        if remaining := self._charts.names(tenant_release(observed.tenant)):
            message = "policies of the tenant's chart remain, and open what ours do not: delete "
            return _false(CHART_POLICIES_REMAIN, message + join_limited(sorted(remaining)))
        return self._written(kind, networks)

    def _written(self, kind: PolicyKind, networks: ClusterNetworks) -> Finding:
        if kind is self._kinds.cilium:
            return Finding(ISOLATION_READY, "True", "CiliumPolicies", "CiliumNetworkPolicies isolate the namespace")
        if not networks.cluster:
            message = (
                "the networks of Pods, Services and nodes are not known, so that Pods cannot reach addresses outside "
                "of the cluster, nor be reached from there: set isolation.clusterCIDRs"
            )
            return _false(NETWORKS_UNKNOWN, f"{networks.unknown}; {message}" if networks.unknown else message)
        message = "NetworkPolicies isolate the namespace, if the network plugin enforces them: that is not known here"
        if not networks.api_server:
            message += "; the addresses of kube-apiserver are not known, and no Pod can reach it"
        return Finding(ISOLATION_READY, "True", "NetworkPolicies", message)

    async def _leave_to_chart(self, observed: ObservedTenant) -> Finding:
        """Our policies remain until the chart's are there."""
        namespace = observed.tenant.namespace
        if self._charts.isolates(tenant_release(observed.tenant), namespace):
            await self._remove_all(namespace)
        return _false(LEFT_TO_CHART, "tenants.chart is flux: the chart isolates the namespace")

    async def _remove_all(self, namespace: str) -> None:
        for digests in self._kinds.digests:
            for name in digests.names(namespace):
                await self._writer.remove(digests, namespace, name)

    async def _remove_others(self, namespace: str, kind: PolicyKind, names: set[str], *, keep_other_kind: bool) -> None:
        """Remove policies that are no longer needed, and those of the other kind once all of this kind are there."""
        for digests in self._kinds.digests:
            is_chosen = digests is kind.digests
            if not is_chosen and keep_other_kind:
                continue
            for name in digests.names(namespace):
                if not (is_chosen and name in names):
                    await self._writer.remove(digests, namespace, name)


def _isolated(observed: ObservedTenant) -> IsolatedTenant:
    return IsolatedTenant(
        namespace=observed.tenant.namespace,
        ancestors=[each.namespace for each in observed.ancestors],
        services=observed.services,
    )


def _may_be_plain(mode: IsolationMode, cilium: PolicyKind) -> bool:
    return mode == "networkPolicy" or (mode == "auto" and not cilium.problem)


def _false(reason: str, message: str) -> Finding:
    return Finding(ISOLATION_READY, "False", reason, message)

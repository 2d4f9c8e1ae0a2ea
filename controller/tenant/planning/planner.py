"""Plans what the controllers would change for a Tenant, by their own steps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.runtime.planning_writer import PlannedWrite, PlanningWriter
from controller.tenant.finalizer import missing_finalizer
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.isolation.policy_writer import PolicyWriter
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.namespace_step import NAMESPACE_READY
from controller.tenant.observe import ObservedTenant, observe_in
from controller.tenant.planning.context import PlanningContext
from controller.tenant.reconciler import Step
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.cluster.object_store import ObjectLister
from registry.names import release_name
from registry.tenant.convert import to_release
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.spec import with_spec_defaults
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import BaseTenantTree, ChangedTree, TenantTree

# A plan takes about a millisecond of processor time for each Tenant.
MOST_DESCENDANTS = 100


@runtime_checkable
class PlannableStep(Protocol):
    def planning(self, context: PlanningContext) -> Step:
        """The step as it plans instead of writing: it changes nothing of what this one knows."""
        ...


class GatewaysPlanner(Protocol):
    async def plan(self, writer: PlanningWriter, namespaces: Set[str]) -> None:
        """Plan the Gateways of these namespaces, after what `writer` has planned already. Raises StatusError."""
        ...


@dataclass(frozen=True, slots=True)
class TenantPlan:
    """`problems` are messages of conditions that keep something from being written. It is `truncated` if further
    descendants were not looked at."""

    writes: Sequence[PlannedWrite]
    problems: Sequence[str] = ()
    truncated: bool = False


class TenantPlanner:
    """It has the steps, the caches and the settings of the controllers, on every replica that may run them.

    Status subresources, Events and the status of routes are left out, and so is what is written for other objects than
    Tenants and their Gateways: the labels of attached namespaces, flattened routes of delegations, and the routes of
    the platform's services, which `tenant-apiserver render` prints.
    """

    def __init__(
        self,
        *,
        cluster: ClusterClient,
        tree: TenantTree,
        releases: ObjectLister,
        namespaces: ObjectLister,
        steps: Sequence[Step],
        content_steps: Sequence[Step],
        chart: Callable[[], ChartMode],
        settings: Callable[[], ReleaseSettings],
    ) -> None:
        """`settings` are those of new HelmReleases. Steps that write nothing have no method `planning`."""
        self._cluster = cluster
        self._tree = tree
        self._releases = releases
        self._namespaces = namespaces
        self._steps = [each for each in steps if isinstance(each, PlannableStep)]
        self._content_steps = [each for each in content_steps if isinstance(each, PlannableStep)]
        self._chart = chart
        self._settings = settings

    async def plan(
        self, key: Key, proposed: Object | None, gateways: GatewaysPlanner | None, sees: Callable[[Key], bool]
    ) -> TenantPlan:
        """The changes for an existing Tenant as it is, or for the valid Tenant `proposed`, which need not exist, and
        then also for its descendants. One that does not exist has the values as they were sent, without defaults.
        Objects of other Tenants are in it if `sees` is true of them: their number, too, would tell of hidden ones.
        Raises the cluster's StatusError."""
        writer, now = PlanningWriter(self._cluster), self._tree.get(key)
        if proposed is not None:
            tenant = _proposed(proposed, key, now)
            tree: BaseTenantTree = ChangedTree(self._tree, tenant)
            self._plan_release(writer, proposed, key)
        elif now is None:
            return TenantPlan(())
        else:
            tenant, tree = now, self._tree
        if tenant.terminating:
            return TenantPlan(writer.planned, ["the tenant is being deleted: its controllers change nothing more"])
        below = list(_below(tree, tenant)) if _concerns_descendants(now, tenant) else []
        seen = {tenant.key, *(each.key for each in below if sees(each.key))}
        # hidden ones count, too, where a Gateway serves their hosts, but never displace one that is seen
        tenants = [tenant, *sorted(below, key=lambda each: each.key not in seen)[:MOST_DESCENDANTS]]
        problems = await self._plan_tenants(writer, tree, tenants, seen)
        if gateways is not None:

            def hides(key: Key) -> bool:
                owner = tree.by_namespace(key.namespace)
                return owner is not None and owner.key != tenant.key and not sees(owner.key)

            writer.hides = hides
            await gateways.plan(writer, self._gateways(tree, tenants, now))
        return TenantPlan(writer.planned, problems, truncated=len(seen) - 1 > MOST_DESCENDANTS)

    def _plan_release(self, writer: PlanningWriter, proposed: Object, key: Key) -> None:
        current = self._release(key)
        writer.record(HELMRELEASES, current, to_release(proposed, current, self._settings()))

    async def _plan_tenants(
        self, writer: PlanningWriter, tree: BaseTenantTree, tenants: Sequence[TenantSummary], seen: Set[Key]
    ) -> Sequence[str]:
        """Returns the problems of the first one. Of those that are not `seen`, the plan tells nothing."""
        context = PlanningContext(
            writer=writer,
            contents=ContentWriter(writer=writer, cluster=self._cluster, chart=self._chart, remembers=False),
            policies=PolicyWriter(writer=writer, cluster=self._cluster, remembers=False),
            tree=tree,
            namespaces={tenant.namespace for tenant in tenants},
        )
        steps = [each.planning(context) for each in self._steps]
        content_steps = [each.planning(context) for each in self._content_steps]
        problems: list[str] = []
        planned = writer.planned_objects(HELMRELEASES)
        for tenant in tenants:
            key = _release_key(tenant.key)
            release = planned.get(key) or self._release(tenant.key)
            if release is None:
                continue
            writer.hides = _no_key if tenant.key in seen else _any_key
            observed = observe_in(tree, tenant, release, self._namespaces)
            if patch := missing_finalizer(observed):
                await writer.patch(HELMRELEASES, release, patch)
            findings = await _run(steps, observed)
            if any(each.type == NAMESPACE_READY and each.status == "True" for each in findings):
                findings += await _run(content_steps, observed)
            if tenant is tenants[0]:
                problems = [each.message for each in findings if _is_problem(each)]
            # a plan of many Tenants must not delay other requests
            await asyncio.sleep(0)
        return problems

    def _release(self, key: Key) -> Object | None:
        return self._releases.get(_release_key(key))

    def _gateways(self, tree: BaseTenantTree, tenants: Sequence[TenantSummary], now: TenantSummary | None) -> Set[str]:
        """The namespaces whose Gateways may change: those of the tenants, and the ones that their hosts and labels are
        served by, before and after."""
        found = {tenant.namespace for tenant in tenants if tenant.gateway}
        if tree is self._tree:
            return found
        lineages = [(tree, tenants[0]), *([(self._tree, now)] if now is not None else [])]
        for each, tenant in lineages:
            found |= {one.namespace for one in (tenant, *each.ancestors(tenant)) if one.gateway}
        return found


def _proposed(tenant: Object, key: Key, now: TenantSummary | None) -> TenantSummary:
    """The summary of a Tenant that a client sends: of its status and its place, nothing is taken from the client."""
    shown = with_spec_defaults(tenant)
    found = summarize({field: value for field, value in shown.items() if field != "status"}, key)
    if now is None:
        return found
    return replace(found, namespace=now.namespace, uid=now.uid, created=now.created, terminating=now.terminating)


def _concerns_descendants(now: TenantSummary | None, then: TenantSummary) -> bool:
    if now is None or now is then:
        return False
    fields = ("host", "gateway", "quotas", "flags", "scheduling_class")
    return any(getattr(now, field) != getattr(then, field) for field in fields)


def _below(tree: BaseTenantTree, tenant: TenantSummary) -> Iterator[TenantSummary]:
    """The descendants, parents before children."""
    waiting, seen = deque([tenant]), {tenant.key}
    while waiting:
        for child in tree.children(waiting.popleft().namespace):
            if child.key not in seen:
                seen.add(child.key)
                waiting.append(child)
                yield child


def _any_key(key: Key) -> bool:
    return True


def _no_key(key: Key) -> bool:
    return False


async def _run(steps: Sequence[Step], observed: ObservedTenant) -> list[Finding]:
    return [finding for step in steps for finding in await step.run(observed)]


def _is_problem(finding: Finding) -> bool:
    """Of conditions that are True while something is wrong, and of parts that cannot be written. The
    conditions of the Tenant tell of parts that wait, and of those that are left as they are on purpose."""
    if finding.type.endswith("Ready"):
        return finding.status == "False" and finding.type in (NAMESPACE_READY, "ValuesReady")
    return finding.status == "True"


def _release_key(key: Key) -> Key:
    return Key(key.namespace, release_name(key.name))

"""The two kinds of network policies, and the digests of those that the controller manages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from apiserver.meta.resource import Key, Object
from controller.tenant.helm_ownership import ObjectManager, object_manager
from controller.tenant.isolation import model
from controller.tenant.isolation import network_policies as plain
from controller.tenant.isolation.served_kind import ServedKind
from controller.tenant.managed_objects import ManagedKind, ObjectDigests
from controller.tenant.namespace_ownership import ADOPT_ANNOTATION
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import NETWORKPOLICIES, ClusterResource

CILIUM_POLICIES = ClusterResource("cilium.io", "v2", "ciliumnetworkpolicies", "CiliumNetworkPolicy")

ALWAYS: Final = (model.ISOLATION, model.INGRESS, model.API_SERVER)
"""The names of the policies that every tenant has: it counts as isolated once they were written."""
CILIUM_NAMES: Final = frozenset({*ALWAYS, model.SERVICES, model.TO_ETCD})
PLAIN_NAMES: Final = frozenset(
    {
        *ALWAYS,
        plain.INGRESS_SERVICE,
        plain.MONITORING_SERVICE,
        plain.METRICS_AGENT,
        plain.ETCD_SERVICE,
        model.TO_ETCD,
    }
)


def normalize_policy(policy: Object) -> object:
    """All of a policy's rules, where a field that nobody asked for counts, because it may open everything; and of a
    policy that is not ours, the Tenant that may adopt it."""
    adopter = (policy["metadata"].get("annotations") or {}).get(ADOPT_ANNOTATION)
    is_other = object_manager(policy) is ObjectManager.OTHER
    return [policy.get("spec"), policy.get("specs"), adopter if is_other else None]


def with_exact_rules(desired: Object, stored: Object | None) -> Object:
    """`desired`, with None for each field of the stored rules that it does not have, so that a merge patch removes
    it."""
    if stored is None:
        return desired
    rules: Object = {
        field: _exact(desired.get(field), stored.get(field))
        for field in ("spec", "specs")
        if field in desired or field in stored
    }
    return {**desired, **rules}


def _exact(desired: Any, stored: Any) -> Any:
    if isinstance(desired, Mapping) and isinstance(stored, Mapping):
        absent = {field: None for field in stored if field not in desired}
        return absent | {field: _exact(value, stored.get(field)) for field, value in desired.items()}
    if isinstance(desired, list) and isinstance(stored, list) and len(desired) == len(stored):
        return [_exact(one, other) for one, other in zip(desired, stored, strict=True)]
    return desired


def _managed(resource: ClusterResource, names: Collection[str]) -> ManagedKind:
    return ManagedKind(resource=resource, normalize=normalize_policy, selects=lambda namespace, name: name in names)


class PolicyKind:
    """One kind of policies: what is stored, and whether the cluster serves it."""

    def __init__(
        self,
        informers: InformerFactory,
        resource: ClusterResource,
        names: Collection[str],
        *,
        on_change: Callable[[Key], None],
        on_served: Callable[[], None],
        others: Sequence[EventHandler] = (),
    ) -> None:
        """`names` are those of our policies. `on_change` is called with the key of one that has changed, `on_served`
        when the kind begins or ceases to be served. `others` are further handlers of the same objects."""
        self.digests = ObjectDigests(_managed(resource, names), on_change=on_change)
        self._kind = ServedKind(
            informers, resource, (self.digests, *others), on_change=on_served, on_gone=self.digests.clear
        )

    @property
    def served(self) -> bool:
        return self._kind.served

    @property
    def problem(self) -> str:
        return self._kind.problem

    async def wait_until_known(self) -> None:
        await self._kind.wait_until_known()


class PolicyKinds:
    """Cilium's policies and Kubernetes' own."""

    def __init__(
        self,
        informers: InformerFactory,
        *,
        on_change: Callable[[Key], None],
        on_served: Callable[[], None],
        cilium_handlers: Sequence[EventHandler] = (),
    ) -> None:
        self.cilium = PolicyKind(
            informers, CILIUM_POLICIES, CILIUM_NAMES, on_change=on_change, on_served=on_served, others=cilium_handlers
        )
        self.plain = PolicyKind(informers, NETWORKPOLICIES, PLAIN_NAMES, on_change=on_change, on_served=on_served)

    @property
    def digests(self) -> Sequence[ObjectDigests]:
        return self.cilium.digests, self.plain.digests

    async def wait_until_known(self) -> None:
        await self.cilium.wait_until_known()
        await self.plain.wait_until_known()

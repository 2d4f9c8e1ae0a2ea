"""How many hostnames an heir may have on the Gateway of a tenant above it: each costs that tenant a listener and a
certificate (R-313).

A budget covers the whole subtree of its holder, so that children of an heir add nothing to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from apiserver.meta.resource import Key
from apiserver.storage.event_history import CacheEvent
from registry import quantity
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import BaseTenantTree, TenantTree

QUOTA = "count/certificates.cert-manager.io"
SETTING = "gateway.hostnamesPerHeir"


class HostnameBudget(NamedTuple):
    """`limit` hostnames for the Tenant with the namespace `holder` and those below it. It is `declared` if it is the
    quota of the Tenant, and not the platform's setting."""

    holder: str
    limit: int
    declared: bool = True


BudgetsOf = Callable[[str], Sequence[HostnameBudget]]
"""All budgets that the hostnames of a namespace are charged to."""


def no_budgets(namespace: str) -> Sequence[HostnameBudget]:
    return ()


class CertificateBudgets:
    """The budgets of the heirs of a Gateway, by the tree as it is now."""

    def __init__(self, *, tree: BaseTenantTree, per_heir: Callable[[], int]) -> None:
        """`per_heir` returns the limit of an heir whose Tenant declares none."""
        self._tree = tree
        self._per_heir = per_heir

    def of(self, owner: str, namespace: str) -> Sequence[HostnameBudget]:
        """The budgets for hostnames of `namespace` on the Gateway of the namespace `owner`: its own and those of the
        Tenants between. Namespaces that are no tenant's, and the owner's own, have none."""
        tenant = self._tree.by_namespace(namespace)
        if tenant is None or namespace == owner:
            return ()
        heirs = self._heirs(tenant, owner)
        found = [(each, declared_limit(each.quotas)) for each in heirs]
        budgets = [HostnameBudget(each.namespace, limit) for each, limit in found if limit is not None]
        nearest, limit = found[-1]
        if limit is None:
            budgets.append(HostnameBudget(nearest.namespace, self._per_heir(), declared=False))
        return budgets

    def _heirs(self, tenant: TenantSummary, owner: str) -> Sequence[TenantSummary]:
        """The Tenant and its ancestors below the owner; the Tenant alone if the owner is none of its ancestors."""
        heirs = [tenant]
        for each in self._tree.ancestors(tenant):
            if each.namespace == owner:
                return heirs
            heirs.append(each)
        return [tenant]


def declared_limit(quotas: Mapping[str, str | int]) -> int | None:
    """The quota of certificates among those of a Tenant; None if there is none, or none that is valid."""
    if QUOTA not in quotas:
        return None
    try:
        return int(quantity.parse_limit(quotas[QUOTA]))
    except ValueError:
        return None


class HostnameLedger:
    """Counts the hostnames that are charged to each budget while a Gateway is planned."""

    def __init__(self, budgets_of: BudgetsOf) -> None:
        self._budgets_of = budgets_of
        self._spent: Counter[str] = Counter()

    def refuse(self, namespace: str, *, served: bool) -> str:
        """The reason why the namespace can have no further hostname; empty if it can. Hostnames that are `served`
        already stay unless a declared quota ends it, so that a new setting takes nothing down."""
        for each in self._budgets_of(namespace):
            if self._spent[each.holder] >= each.limit and (each.declared or not served):
                return _describe(each, namespace)
        return ""

    def spend(self, namespace: str) -> None:
        self._spent.update(each.holder for each in self._budgets_of(namespace))


def _describe(budget: HostnameBudget, namespace: str) -> str:
    if not budget.declared:
        return f"exceeds the {budget.limit} hostnames that a tenant may have on the gateway of another ({SETTING})"
    if budget.holder == namespace:
        return f"exceeds the quota {QUOTA} of its tenant, which is {budget.limit}"
    # readers of the route need not be allowed to get the tenants above (ATTACK-15)
    return f"exceeds the quota {QUOTA} of a tenant above its own"


class BudgetListener:
    """Reports the namespaces of Tenants whose quota of certificates changes. Must subscribe after the tree."""

    def __init__(self, tree: TenantTree, on_change: Callable[[str], None]) -> None:
        self._tree = tree
        self._on_change = on_change
        self._declared: dict[Key, _Declared] = {}

    def on_event(self, event: CacheEvent) -> None:
        key = event.object.key
        before, now = self._declared.pop(key, None), _declared(self._tree.get(key))
        if now is not None:
            self._declared[key] = now
        if now != before:
            for namespace in {each.namespace for each in (before, now) if each is not None}:
                self._on_change(namespace)


class _Declared(NamedTuple):
    namespace: str
    limit: int


def _declared(tenant: TenantSummary | None) -> _Declared | None:
    limit = declared_limit(tenant.quotas) if tenant is not None else None
    return _Declared(tenant.namespace, limit) if tenant is not None and limit is not None else None

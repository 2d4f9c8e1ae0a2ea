"""The references that ReferenceGrants permit, indexed so that one is judged in constant time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.consent.references import Reference
from controller.tenantgateway.names import GATEWAY_API_GROUP
from controller.tenantgateway.parse import mapping, mappings, string
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.interface import is_terminating
from registry.multimap import Multimap


class Referrer(NamedTuple):
    """The objects of one kind in one namespace, as far as a grant tells them apart (R-368)."""

    kind: str
    namespace: str
    group: str = GATEWAY_API_GROUP


class Permission(NamedTuple):
    """Objects that may be referred to, in the namespace of the grant; an empty `name` means all of the kind."""

    referrer: Referrer
    group: str
    kind: str
    name: str = ""


GrantListener = Callable[[str, Permission], None]


def permissions(grant: Object) -> frozenset[Permission]:
    """Each entry of `from` with each of `to`: a list without entries permits nothing (R-369, R-370). Neither does a
    grant whose deletion has begun."""
    if is_terminating(grant):
        return frozenset()
    spec = mapping(grant.get("spec"))
    referrers = [
        Referrer(string(each, "kind"), string(each, "namespace"), string(each, "group"))
        for each in mappings(spec.get("from"))
    ]
    return frozenset(
        Permission(referrer, string(each, "group"), string(each, "kind"), string(each, "name"))
        for referrer in referrers
        for each in mappings(spec.get("to"))
    )


class ReferenceGrants:
    """All permissions by the namespace that gives them. A grant adds to what others permit (R-372)."""

    def __init__(self, on_change: GrantListener) -> None:
        """`on_change` is called with the namespace of a grant and each permission that the grant gains or loses."""
        self._on_change = on_change
        self._grants: Multimap[tuple[str, Permission], Key] = Multimap()
        self.handler = ProjectionStore(project=permissions, on_change=self._changed)

    def permit(self, referrer: Referrer, reference: Reference) -> bool:
        """True if the objects of `referrer` may refer to `reference`: those of the same namespace always (R-367)."""
        if reference.namespace == referrer.namespace:
            return True
        one = Permission(referrer, reference.group, reference.kind, reference.name)
        return any(self._grants[reference.namespace, each] for each in (one, one._replace(name="")))

    def permit_all(self, referrer: Referrer, namespace: str, group: str, kind: str) -> bool:
        """True if a grant of the namespace names no object, so that it opens all of this kind."""
        return bool(self._grants[namespace, Permission(referrer, group, kind)])

    def _changed(self, key: Key, before: frozenset[Permission] | None, now: frozenset[Permission] | None) -> None:
        old, new = before or frozenset(), now or frozenset()
        for each in old - new:
            self._grants.discard((key.namespace, each), key)
        for each in new - old:
            self._grants.add((key.namespace, each), key)
        for each in old ^ new:
            self._on_change(key.namespace, each)

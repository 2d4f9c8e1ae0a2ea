"""What there is, found by what it concerns: a change costs work for its own TenantGateway and no other (GW-19)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.tenantgateway import parse as facts
from controller.tenantgateway.model import GatewayFacts, Heir, Route, RouteId, RouteKind
from controller.tenantgateway.names import redirect_name
from controller.tenantgateway.parse import Asked
from registry.cluster.event_handlers import Follower
from registry.multimap import Multimap
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL

Enqueue = Callable[[Key], None]
Attach = Callable[[str], None]


class TenantGateways:
    """All TenantGateways: by key, by namespace, and by the namespaces that they ask to have attached.

    `attach` is told a namespace, once who asks for it has changed.
    """

    def __init__(self, *, enqueue: Enqueue, attach: Attach) -> None:
        self._enqueue = enqueue
        self._attach = attach
        self._written: dict[Key, Object] = {}
        self._asked: dict[Key, Asked] = {}
        self._in_namespace: Multimap[str, Key] = Multimap()
        self._claimants: Multimap[str, Key] = Multimap()
        self.handler = Follower[Object](view=lambda obj: obj, changed=self._changed)

    def get(self, key: Key) -> Object | None:
        """As the host had it last, or as this process has just written it. Not to be changed."""
        held, written = self.handler.get(key), self._written.get(key)
        return written if held is not None and written is not None else held

    def wrote(self, obj: Object) -> None:
        self._written[Key(obj["metadata"]["namespace"], obj["metadata"]["name"])] = obj

    def asked(self, key: Key) -> Asked | None:
        return self._asked.get(key)

    def serves(self, key: Key) -> bool:
        """Whether there is a TenantGateway that speaks for the Gateway of this name."""
        asked = self._asked.get(key)
        return asked is not None and not asked.facts.terminating

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._asked))

    def in_namespace(self, namespace: str) -> Collection[Key]:
        return self._in_namespace[namespace]

    def claimants(self, namespace: str) -> Sequence[GatewayFacts]:
        """Those that ask for a namespace to be attached."""
        return [self._asked[key].facts for key in sorted(self._claimants[namespace])]

    def claimed(self) -> Iterable[str]:
        return iter(self._claimants)

    def _changed(self, key: Key, before: Object | None, now: Object | None) -> None:
        written = self._written.get(key)
        if written is not None and (now is None or _version(now) >= _version(written)):
            del self._written[key]
        former = self._asked.pop(key, None)
        asked = facts.tenantgateway(now) if now is not None else None
        if asked is not None:
            self._asked[key] = asked
            self._in_namespace.add(key.namespace, key)
        else:
            self._in_namespace.discard(key.namespace, key)
        self._claim(key, former, asked)
        self._enqueue(key)

    def _claim(self, key: Key, former: Asked | None, asked: Asked | None) -> None:
        before, now = _claims(former), _claims(asked)
        for namespace in before - now:
            self._claimants.discard(namespace, key)
        for namespace in now - before:
            self._claimants.add(namespace, key)
        for namespace in before ^ now:
            self._attach(namespace)


def _claims(asked: Asked | None) -> frozenset[str]:
    return frozenset(asked.facts.attached) if asked is not None and not asked.facts.terminating else frozenset()


@dataclass(frozen=True, slots=True)
class _Mention:
    """What matters of a route: what it is to each Gateway that it refers to, and what its status says in our name.

    `version` counts where the object as a whole does: that of a redirect, and of what we have written to.
    """

    routes: Mapping[Key, Route]
    judged: frozenset[Key]
    version: str


_NO_MENTION = _Mention({}, frozenset(), "")


class Routes:
    """HTTPRoutes and TLSRoutes, by the Gateways that they refer to or that their status names."""

    def __init__(self, *, tenantgateways: TenantGateways, enqueue: Enqueue) -> None:
        self._tenantgateways = tenantgateways
        self._enqueue = enqueue
        self._routes: dict[Key, dict[RouteId, Route]] = {}
        self._judged: Multimap[Key, RouteId] = Multimap()
        self.httproutes = self._follower("HTTPRoute")
        self.tlsroutes = self._follower("TLSRoute")

    def of(self, gateway: Key) -> Sequence[Route]:
        """The routes that refer to a Gateway."""
        return tuple(self._routes.get(gateway, {}).values())

    def judged(self, gateway: Key) -> Collection[RouteId]:
        """The routes whose status says something of a Gateway that this controller wrote."""
        return self._judged[gateway]

    def judged_for(self) -> Iterable[Key]:
        """All Gateways of which something is said: nobody may speak for them any more."""
        return iter(self._judged)

    def _follower(self, kind: RouteKind) -> Follower[_Mention]:
        return Follower(view=partial(_mention, kind=kind), changed=partial(self._changed, kind))

    def _changed(self, kind: RouteKind, key: Key, before: _Mention | None, now: _Mention | None) -> None:
        identity = RouteId(key.namespace, key.name, kind)
        old, new = before or _NO_MENTION, now or _NO_MENTION
        for gateway in old.routes.keys() - new.routes.keys():
            self._drop(gateway, identity)
        for gateway, route in new.routes.items():
            self._routes.setdefault(gateway, {})[identity] = route
        for gateway in old.judged - new.judged:
            self._judged.discard(gateway, identity)
        for gateway in new.judged - old.judged:
            self._judged.add(gateway, identity)
        judged = old.judged | new.judged
        for gateway in judged | old.routes.keys() | new.routes.keys():
            if gateway in judged or self._tenantgateways.serves(gateway):
                self._enqueue(gateway)
        if kind == "HTTPRoute" and key.name.endswith(redirect_name("")):
            concern(self._tenantgateways, self._enqueue, key)

    def _drop(self, gateway: Key, route: RouteId) -> None:
        held = self._routes[gateway]
        del held[route]
        if not held:
            del self._routes[gateway]


def _mention(obj: Object, *, kind: RouteKind) -> _Mention | None:
    metadata = obj["metadata"]
    judged = frozenset(facts.judged_by(obj))
    whole = judged or metadata["name"].endswith(redirect_name(""))
    found = _Mention(facts.routes(obj, kind), judged, str(metadata["resourceVersion"]) if whole else "")
    return found if found.routes or whole else None


class _Place(NamedTuple):
    """What matters of a Namespace: whose heir it is, and the marks of an attachment."""

    owner: str
    heir: Heir | None
    label: str
    attached_by: str


_NOWHERE = _Place("", None, "", "")


class Namespaces:
    """Namespaces by the owner of the Gateway that their label names (R-104, R-105, GW-1)."""

    def __init__(self, *, tenantgateways: TenantGateways, enqueue: Enqueue, attach: Attach) -> None:
        self._tenantgateways = tenantgateways
        self._enqueue = enqueue
        self._attach = attach
        self._heirs: dict[str, dict[str, Heir]] = {}
        self.handler = Follower[_Place](view=_place, changed=self._changed)

    def heirs(self, owner: str) -> Sequence[Heir]:
        return [heir for _, heir in sorted(self._heirs.get(owner, {}).items())]

    def attached(self) -> Iterable[str]:
        """The Namespaces that say that this controller attached them."""
        return [key.name for key, place in self.handler.items() if place.attached_by]

    def _changed(self, key: Key, before: _Place | None, now: _Place | None) -> None:
        if _inheritance(before) != _inheritance(now):
            for place in (before, now):
                self._concern(place)
            if before is not None and before.heir is not None:
                self._drop(before.owner, key.name)
            if now is not None and now.heir is not None:
                self._heirs.setdefault(now.owner, {})[key.name] = now.heir
        self._attach(key.name)

    def _concern(self, place: _Place | None) -> None:
        if place is not None and place.heir is not None:
            for gateway in self._tenantgateways.in_namespace(place.owner):
                self._enqueue(gateway)

    def _drop(self, owner: str, namespace: str) -> None:
        held = self._heirs[owner]
        del held[namespace]
        if not held:
            del self._heirs[owner]


def _place(namespace: Object) -> _Place:
    owner, heir = facts.heir(namespace) or ("", None)
    metadata = namespace["metadata"]
    label = (metadata.get("labels") or {}).get(GATEWAY_LABEL)
    annotation = (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION)
    place = _Place(owner, heir, str(label or ""), str(annotation or ""))
    # most of ten thousand Namespaces have nothing of a Gateway: one value for all of them
    return place if place != _NOWHERE else _NOWHERE


def _inheritance(place: _Place | None) -> tuple[str, Heir | None]:
    return (place.owner, place.heir) if place is not None else ("", None)


@dataclass(slots=True)
class Derived:
    """Of a kind that is made from TenantGateways: what each of them owns, by uid."""

    tenantgateways: TenantGateways
    enqueue: Enqueue
    _owned: Multimap[str, Key] = field(default_factory=Multimap)
    handler: Follower[tuple[str, frozenset[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.handler = Follower(view=_owners, changed=self._changed)

    def owned(self, uid: str) -> Sequence[Key]:
        return sorted(self._owned[uid])

    def _changed(
        self, key: Key, before: tuple[str, frozenset[str]] | None, now: tuple[str, frozenset[str]] | None
    ) -> None:
        old, new = (each[1] if each is not None else frozenset() for each in (before, now))
        for uid in old - new:
            self._owned.discard(uid, key)
        for uid in new - old:
            self._owned.add(uid, key)
        concern(self.tenantgateways, self.enqueue, key)


def _owners(obj: Object) -> tuple[str, frozenset[str]]:
    metadata = obj["metadata"]
    owners = frozenset(str(each.get("uid")) for each in metadata.get("ownerReferences") or ())
    return str(metadata["resourceVersion"]), owners


def concern(tenantgateways: TenantGateways, enqueue: Enqueue, key: Key) -> None:
    """Whose object it is, or would be if it were not somebody else's: its name begins with the TenantGateway's."""
    for gateway in tenantgateways.in_namespace(key.namespace):
        if key.name == gateway.name or key.name.startswith(f"{gateway.name}-"):
            enqueue(gateway)


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])

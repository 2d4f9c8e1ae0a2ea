"""Frozen value types of delegation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.consent.references import Reference
from controller.tenantgateway.model import RouteId

MAX_HOPS = 8
"""The number of delegations between a root and a vertex that is still served."""

# Reasons of conditions beside those of Gateway API.
DELEGATION_CONFLICT = "DelegationConflict"
DELEGATION_CYCLE = "DelegationCycle"
OUTSIDE_DELEGATION = "OutsideDelegation"
BACKEND_NOT_FOUND = "BackendNotFound"


class DelegatedMatch(NamedTuple):
    """The requests that a match of a rule selects: those with this path or, unless it is `exact`, below it. The path of
    a gRPC call consists of the service and the method.

    `constraints` are further conditions, on the method, on headers and on the query; each must hold. Rules of a
    TLSRoute have no matches: what is delegated is a whole `hostname`, which is empty for all others.
    """

    segments: tuple[str, ...]
    exact: bool = False
    constraints: frozenset[tuple[str, ...]] = frozenset()
    hostname: str = ""

    def __str__(self) -> str:
        return self.hostname or f"/{'/'.join(self.segments)}"

    def places(self, hostnames: Iterable[str]) -> Sequence[str]:
        """The match below each of the hostnames, for people to read."""
        return [self.hostname] if self.hostname else [f"{each}{self}" for each in hostnames]


class DelegationRule(NamedTuple):
    """A rule of a route; it delegates its matches to the `targets`, if it has any."""

    matches: tuple[DelegatedMatch, ...]
    targets: tuple[RouteId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A route that refers to a TenantGateway (a root) or to other routes (a vertex).

    `served` are its rules that delegate nothing, unchanged. `problem` is the reason why it cannot delegate, and
    `vertex_problem` the reason why it cannot be delegated to; each is empty if there is none. `services` are the
    Services that it refers to.
    """

    id: RouteId
    uid: str
    hostnames: tuple[str, ...] = ()
    gateways: tuple[Key, ...] = ()
    parents: tuple[RouteId, ...] = ()
    rules: tuple[DelegationRule, ...] = ()
    served: Sequence[Object] = ()
    problem: str = ""
    vertex_problem: str = ""
    services: frozenset[Reference] = field(default_factory=frozenset)

    @property
    def targets(self) -> Sequence[RouteId]:
        """The routes that it delegates to, each once, in the order of its rules."""
        return tuple(dict.fromkeys(each for rule in self.rules for each in rule.targets))


class Edge(NamedTuple):
    """The delegation from one route to another. `reason` is empty if both agree on it and the vertex keeps within it.

    `delegated` are the matches that the vertex has got. `parent_message` is what the readers of the parent may know of
    the reason, if that is less than the `message`."""

    reason: str
    message: str = ""
    delegated: tuple[DelegatedMatch, ...] = ()
    parent_message: str = ""

    @property
    def for_parent(self) -> str:
        return self.parent_message or self.message


class DelegationVerdict(NamedTuple):
    """The decision on a vertex and one of the routes that may delegate to it; it is served below each of `roots`."""

    edge: Edge
    roots: tuple[RouteId, ...] = ()


class FlatRoute(NamedTuple):
    """A route to write: the rules of `content` below the hostnames of `root`, which may be the same route."""

    root: Participant
    content: Participant

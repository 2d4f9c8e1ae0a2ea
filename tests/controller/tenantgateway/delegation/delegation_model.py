"""Random trees of roots and vertices, and what must be served of them, said as simply as possible: every chain is
followed, and nothing is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from apiserver.meta.resource import Object
from controller.tenantgateway.model import RouteId, RouteKind
from registry.tenantgateway.types import GROUP
from tests.controller.tenantgateway.gateway_world import GATEWAY_API

ROOT_NAMESPACE, OTHERS = "tenant-root", ("tenant-a", "tenant-b")
PATHS: dict[RouteKind, tuple[str, ...]] = {
    "HTTPRoute": ("/", "/a", "/ab", "/a/b", "/a/b/c", "/d"),
    # services and methods
    "GRPCRoute": ("/", "/a", "/ab", "/a/b", "/a/c", "/d"),
}


@dataclass(frozen=True)
class Rule:
    """Serves the paths, or delegates them to the targets. Those of a TLSRoute are its hostnames."""

    paths: tuple[str, ...]
    targets: tuple[RouteId, ...] = ()


@dataclass
class RouteSpec:
    """A root has hostnames, a vertex has parents; one of TLSRoutes has both."""

    rules: tuple[Rule, ...]
    hosts: tuple[str, ...] = ()
    parents: tuple[RouteId, ...] = ()

    @property
    def targets(self) -> set[RouteId]:
        return {each for rule in self.rules for each in rule.targets}


@dataclass
class Model:
    """All routes are of one kind. `grants` are pairs of a namespace and the route that it may delegate to; `unadmitted`
    are namespaces whose roots no Gateway serves."""

    kind: RouteKind = "HTTPRoute"
    routes: dict[RouteId, RouteSpec] = field(default_factory=dict)
    grants: set[tuple[str, RouteId]] = field(default_factory=set)
    unadmitted: set[str] = field(default_factory=set)

    def served(self) -> set[tuple[RouteId, RouteId]]:
        """Pairs of a root and a route whose own rules are served below its hostnames."""
        reached = {(root, each) for root in self.routes if self.is_root(root) for each in self._below((root,))}
        return {(root, each) for root, each in reached if any(not rule.targets for rule in self.routes[each].rules)}

    def is_root(self, route: RouteId) -> bool:
        found = self.routes[route]
        return bool(found.hosts) and not found.parents and route.namespace not in self.unadmitted

    def agreed(self, parent: RouteId, vertex: RouteId) -> bool:
        found = self.routes.get(vertex)
        permitted = parent.namespace == vertex.namespace or (parent.namespace, vertex) in self.grants
        return found is not None and parent in found.parents and vertex in self.routes[parent].targets and permitted

    def _below(self, chain: tuple[RouteId, ...]) -> Iterator[RouteId]:
        yield chain[-1]
        for each in self.routes[chain[-1]].targets if len(chain) <= 8 else ():
            if each not in chain and self._keeps_within(chain[-1], each):
                yield from self._below((*chain, each))

    def _keeps_within(self, parent: RouteId, vertex: RouteId) -> bool:
        if not self.agreed(parent, vertex) or bool(self.routes[vertex].hosts) != (self.kind == "TLSRoute"):
            return False
        given = {path for rule in self.routes[parent].rules if vertex in rule.targets for path in rule.paths}
        won = [path for path in given if self._winner(parent, path) == (parent, vertex)]
        return all(
            any(lies_below(path, each) for each in won) for rule in self.routes[vertex].rules for path in rule.paths
        )

    def _winner(self, parent: RouteId, path: str) -> tuple[RouteId, RouteId] | None:
        hosts = set(self.routes[parent].hosts) if not self.routes[parent].parents else set()
        rivals = [parent] + [
            each
            for each, spec in self.routes.items()
            if each.namespace == parent.namespace and self.is_root(each) and hosts & set(spec.hosts) and each != parent
        ]
        agreed = (
            (each, target)
            for each in sorted(rivals)
            for rule in self.routes[each].rules
            if path in rule.paths
            for target in rule.targets
            if self.agreed(each, target) and (self.kind != "TLSRoute" or path in self.routes[target].hosts)
        )
        return next(agreed, None)


def lies_below(path: str, delegated: str) -> bool:
    return delegated == "/" or path == delegated or path.startswith(f"{delegated}/")


def random_change(model: Model, random: Random) -> RouteId | tuple[str, RouteId] | str:
    """Changes a route, a grant or the admission of a namespace, and returns what has changed."""
    namespaces = (ROOT_NAMESPACE, *OTHERS)
    names = [RouteId(namespace, name, model.kind) for namespace in namespaces for name in "rstu"]
    what = random.random()
    if what < 0.3:
        wanted = sorted((each.namespace, target) for each, spec in model.routes.items() for target in spec.targets)
        missing = [each for each in wanted if each not in model.grants] or wanted
        grant = random.choice([*missing[:8], (random.choice(namespaces), random.choice(names))])
        model.grants ^= {grant}
        return grant
    if what < 0.35:
        namespace = random.choice(namespaces)
        model.unadmitted ^= {namespace}
        return namespace
    route = random.choice(names)
    if what < 0.45:
        model.routes.pop(route, None)
    elif route.name in "rs":
        hosts = tuple(random.sample((f"x.{route.namespace}", f"y.{route.namespace}"), random.choice((1, 1, 2))))
        model.routes[route] = RouteSpec(tuple(_random_rules(random, names, hosts)), hosts=hosts)
    else:
        naming = [each for each, spec in model.routes.items() if route in spec.targets]
        parents = tuple(
            dict.fromkeys(
                [*random.sample(naming, len(naming) - random.choice((0, 0, len(naming) // 2))), random.choice(names)]
            )
        )
        hosts = _random_hosts(model, random, naming) if model.kind == "TLSRoute" else ()
        model.routes[route] = RouteSpec(tuple(_random_rules(random, names, hosts)), hosts=hosts, parents=parents)
    return route


def _random_hosts(model: Model, random: Random, naming: list[RouteId]) -> tuple[str, ...]:
    """Mostly some of those that a parent has."""
    known = [host for each in naming for host in model.routes[each].hosts] or [f"x.{ROOT_NAMESPACE}"]
    some = random.sample(known, random.choice((1, len(known))))
    return tuple(dict.fromkeys([*some, *(["z.elsewhere"] if random.random() < 0.1 else [])]))


def _random_rules(random: Random, names: list[RouteId], hosts: tuple[str, ...]) -> Iterator[Rule]:
    """A TLSRoute has one rule, about all of its `hosts`."""
    known = PATHS.get(names[0].kind)
    for _ in range(random.choice((1, 2, 2, 3)) if known else 1):
        paths = (
            tuple(random.sample(known, random.choice((1, 1, 2))) if random.random() < 0.5 else ("/a",))
            if known
            else hosts
        )
        vertices = [each for each in names if each.name in "tu"]
        yield Rule(paths, tuple(random.sample(vertices, random.choice((0, 1, 1, 2)))))


def to_object(route: RouteId, spec: RouteSpec) -> Object:
    parents = [
        {"group": GATEWAY_API, "kind": each.kind, "namespace": each.namespace, "name": each.name}
        for each in spec.parents
    ]
    if not spec.parents:
        parents = [{"group": GROUP, "kind": "TenantGateway", "namespace": ROOT_NAMESPACE, "name": "cozystack"}]
    rules = [_rule(each, route.kind) for each in spec.rules]
    metadata = {"namespace": route.namespace, "name": route.name, "uid": str(route)}
    return {"metadata": metadata, "spec": {"hostnames": list(spec.hosts), "parentRefs": parents, "rules": rules}}


def _rule(rule: Rule, kind: RouteKind) -> Object:
    backends: list[Object] = [
        {"group": GATEWAY_API, "kind": each.kind, "namespace": each.namespace, "name": each.name}
        for each in rule.targets
    ]
    matches = {} if kind == "TLSRoute" else {"matches": [_match(each, kind) for each in rule.paths]}
    return {**matches, "backendRefs": backends or [{"name": "web", "port": 80}]}


def _match(path: str, kind: RouteKind) -> Object:
    if kind == "HTTPRoute":
        return {"path": {"type": "PathPrefix", "value": path}}
    service, _, method = path[1:].partition("/")
    return {"method": {key: each for key, each in (("service", service), ("method", method)) if each}}

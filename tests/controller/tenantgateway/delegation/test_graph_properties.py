"""The graph against the model, over random histories: what is served is what the model says, after each change, though
only the routes are asked anew that the graph says a change concerns."""

from __future__ import annotations

from random import Random

import pytest

from controller.tenantgateway.delegation.graph import DelegationGraph
from controller.tenantgateway.delegation.participants import participant
from controller.tenantgateway.model import ROUTE_KINDS, RouteId, RouteKind
from tests.controller.tenantgateway.delegation.delegation_model import Model, lies_below, random_change, to_object

Served = set[tuple[RouteId, RouteId]]


class Incremental:
    """The graph, and what is known to be served, of which each change updates only what the graph names."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.graph = DelegationGraph(
            permits=lambda parent, vertex: (
                parent.namespace == vertex.namespace or (parent.namespace, vertex) in model.grants
            ),
            admits=lambda root: bool(root.hostnames) and root.id.namespace not in model.unadmitted,
        )
        self.served: Served = set()

    def follow(self, changed: RouteId | tuple[str, RouteId] | str) -> None:
        if isinstance(changed, RouteId):
            spec = self.model.routes.get(changed)
            found = participant(to_object(changed, spec), changed.kind) if spec is not None else None
            concerned = self.graph.update(changed, found)
        elif isinstance(changed, str):
            concerned = self.graph.concerned_by(self.graph.in_namespace(changed))
        else:
            concerned = self.graph.concerned_by([changed[1]])
        self.served = {pair for pair in self.served if pair[1] not in concerned}
        self.served |= {(flat.root.id, each) for each in concerned for flat in self.graph.flat_routes(each)}


@pytest.mark.parametrize("kind", ROUTE_KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_served_after_each_change_is_what_the_model_says(seed: int, kind: RouteKind) -> None:
    """R-345, R-362."""
    random, model = Random(seed), Model(kind)
    graph = Incremental(model)
    for _ in range(120):
        graph.follow(random_change(model, random))
        assert graph.served == model.served()


@pytest.mark.parametrize("kind", ROUTE_KINDS)
def test_the_random_histories_have_every_case(kind: RouteKind) -> None:
    """Otherwise the tests around it would show little."""
    random, model = Random(7), Model(kind)
    graph, reasons, hops = Incremental(model), set(), set()
    for _ in range(1000):
        graph.follow(random_change(model, random))
        for vertex in graph.graph:
            for parent in model.routes[vertex].parents:
                edge, roots = graph.graph.connection(vertex, parent)
                reasons.add(edge.reason)
                hops |= {parent == root for root in roots}
    assert reasons == {
        "", "Orphaned", "RefNotPermitted", "OutsideDelegation", "DelegationConflict", "DelegationCycle",
    }  # fmt: skip
    assert hops == {True, False}


@pytest.mark.parametrize("kind", ROUTE_KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_served_that_somebody_in_the_chain_did_not_consent_to(seed: int, kind: RouteKind) -> None:
    """R-346, R-360 to R-362: for each path, some chain in which each route names the next one, each is named as a
    parent, each consents, and each keeps within what it has got."""
    random, model = Random(1000 + seed), Model(kind)
    graph = Incremental(model)
    for _ in range(150):
        graph.follow(random_change(model, random))
        for root, vertex in graph.served:
            for rule in model.routes[vertex].rules:
                assert all(_is_consented(model, (vertex,), root, path) for path in rule.paths)


def _is_consented(model: Model, chain: tuple[RouteId, ...], root: RouteId, path: str) -> bool:
    """Follows the chain upward, from its first route to the root."""
    if chain[0] == root:
        return True
    for parent in model.routes[chain[0]].parents:
        if parent in chain or parent not in model.routes or not model.agreed(parent, chain[0]):
            continue
        given = [each for rule in model.routes[parent].rules if chain[0] in rule.targets for each in rule.paths]
        if any(lies_below(path, each) for each in given) and _is_consented(model, (parent, *chain), root, path):
            return True
    return False


@pytest.mark.parametrize("kind", ROUTE_KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_random_removals_leave_nothing_behind(seed: int, kind: RouteKind) -> None:
    random, model = Random(2000 + seed), Model(kind)
    graph = Incremental(model)
    for _ in range(80):
        graph.follow(random_change(model, random))
    routes = [*model.routes]
    random.shuffle(routes)
    for route in routes:
        del model.routes[route]
        graph.follow(route)
        assert graph.served == model.served()
    assert (graph.served, len(graph.graph)) == (set(), 0)

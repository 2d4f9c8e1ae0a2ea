"""The cost of one change among 10,000 vertices under 1,000 roots: counts, not time."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key
from controller.tenantgateway.delegation.graph import DelegationGraph
from controller.tenantgateway.delegation.matches import parse_match
from controller.tenantgateway.delegation.model import DelegatedMatch, DelegationRule, Participant
from controller.tenantgateway.model import RouteId
from tests.controller.tenantgateway.delegation.delegation_world import serving

ROOTS, VERTICES = 1000, 10
GATEWAY = Key("tenant-root", "cozystack")


def match(path: str) -> DelegatedMatch:
    found = parse_match({"path": {"value": path}})
    assert found is not None
    return found


def root_id(number: int) -> RouteId:
    return RouteId("tenant-root", f"www{number}", "HTTPRoute")


def vertex_id(number: int) -> RouteId:
    return RouteId(f"tenant-{number % 500}", f"v{number}", "HTTPRoute")


def vertex(number: int, service: str = "web") -> Participant:
    path = f"/p{number}"
    return Participant(
        id=vertex_id(number),
        uid="u",
        parents=(root_id(number // VERTICES),),
        rules=(DelegationRule((match(path),)),),
        served=[serving(path, service=service)],
    )


def root(number: int, hostname: str) -> Participant:
    numbers = range(number * VERTICES, (number + 1) * VERTICES)
    rules = tuple(DelegationRule((match(f"/p{each}"),), (vertex_id(each),)) for each in numbers)
    return Participant(id=root_id(number), uid="u", hostnames=(hostname,), gateways=(GATEWAY,), rules=rules)


class CountingGraph(DelegationGraph):
    def __init__(self) -> None:
        self.asked = 0
        super().__init__(permits=self._count, admits=lambda _: True)

    def _count(self, parent: RouteId, vertex: RouteId) -> bool:
        self.asked += 1
        return True


@pytest.fixture(scope="module")
def graph() -> CountingGraph:
    """Ten roots share a hostname each, as an HTTPRoute has at most 16 rules."""
    found = CountingGraph()
    for number in range(ROOTS):
        found.update(root_id(number), root(number, f"h{number // 10}.example.org"))
    for number in range(ROOTS * VERTICES):
        found.update(vertex_id(number), vertex(number))
    return found


def test_a_change_of_a_vertex_concerns_it_and_its_root(graph: CountingGraph) -> None:
    graph.asked = 0
    concerned = graph.update(vertex_id(1234), vertex(1234, service="other"))
    assert concerned == {vertex_id(1234), root_id(123)}
    flat = [each for route in concerned for each in graph.flat_routes(route)]
    assert [(each.root.id, each.content.id) for each in flat] == [(root_id(123), vertex_id(1234))]
    assert graph.asked < 10


def test_a_change_of_a_root_concerns_what_it_delegates_to(graph: CountingGraph) -> None:
    concerned = graph.update(root_id(5), root(5, "new.example.org"))
    assert len(concerned) == 1 + VERTICES
    graph.asked = 0
    assert sum(len(graph.flat_routes(each)) for each in concerned) == VERTICES
    assert graph.asked < 10 * VERTICES
    graph.update(root_id(5), root(5, "h0.example.org"))


def test_every_vertex_has_one_flat_route(graph: CountingGraph) -> None:
    graph.asked = 0
    assert sum(len(graph.flat_routes(each)) for each in graph) == ROOTS * VERTICES
    assert graph.asked < 5 * ROOTS * VERTICES

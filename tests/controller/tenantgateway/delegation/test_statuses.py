"""The conditions of roots and vertices: about each other, and about the data plane's verdicts (docs/delegation.md)."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from tests.controller.tenantgateway.delegation.delegation_world import (
    FINANCE,
    HOST,
    ROOT,
    add_finance_story,
    add_grant,
    add_platform,
    add_root,
    add_tenant,
    add_vertex,
    delegating,
    flat_routes,
    reasons,
    serving,
    told,
)
from tests.controller.tenantgateway.gateway_world import GRANTS, HTTPROUTES, World, run_in_world

CILIUM = "io.cilium/gateway-controller"
SERVED = "its hostnames are served, and those parts of them that are delegated with consent"
UNCONFIRMED = "not yet confirmed by the Gateway's controller"
DELEGATED = f"{HOST}/finance, delegated by HTTPRoute {ROOT}/www"


async def report(world: World, name: str, status: str, reason: str, *, generation: int | None = None) -> None:
    """The data plane writes Accepted for each parentRef of a flat route, for its current generation by default."""
    obj = world.get(HTTPROUTES, ROOT, name)
    condition = {
        "type": "Accepted",
        "status": status,
        "reason": reason,
        "message": "",
        "observedGeneration": generation if generation is not None else obj["metadata"]["generation"],
    }
    entries: list[Object] = [
        {"parentRef": each, "controllerName": CILIUM, "conditions": [condition]} for each in obj["spec"]["parentRefs"]
    ]
    await world.edit(HTTPROUTES, ROOT, name, {"status": {"parents": entries}}, "status")
    await world.settle()


def accepted(world: World, namespace: str, name: str, parent: str) -> tuple[str, str, str]:
    return told(world, namespace, name)[parent, "Accepted"]


def test_served_is_said_when_the_data_plane_has_accepted_the_flat_route() -> None:
    """R-348. Of its current generation: after a change, it has yet to accept."""

    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            (name,) = await flat_routes(world)
            pending = f"{UNCONFIRMED}: HTTPRoute {name}"
            assert accepted(world, ROOT, "www", "cozystack") == ("True", "Accepted", pending)
            assert accepted(world, FINANCE, "finance", "www") == ("True", "Accepted", f"{DELEGATED}; {UNCONFIRMED}")
            await report(world, name, "True", "Accepted")
            assert accepted(world, ROOT, "www", "cozystack") == ("True", "Accepted", SERVED)
            assert accepted(world, FINANCE, "finance", "www") == ("True", "Accepted", DELEGATED)
            rules = {"spec": {"rules": [serving("/finance/reports")]}}
            await world.edit(HTTPROUTES, FINANCE, "finance", rules)
            await world.settle()
            assert accepted(world, ROOT, "www", "cozystack")[2] == pending
            await report(world, name, "True", "Accepted")
            assert accepted(world, ROOT, "www", "cozystack")[2] == SERVED

    run_in_world(main)


def test_a_refusal_of_an_earlier_generation_is_none() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            (name,) = await flat_routes(world)
            await report(world, name, "False", "NoMatchingParent", generation=0)
            assert accepted(world, FINANCE, "finance", "www") == ("True", "Accepted", f"{DELEGATED}; {UNCONFIRMED}")

    run_in_world(main)


def test_what_the_data_plane_says_of_another_parent_counts_nothing() -> None:
    """Entries of parentRefs that the flat route has no longer stay in its status for a while."""

    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            (name,) = await flat_routes(world)
            condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}
            parent = {"namespace": ROOT, "name": "other"}
            entry = {"parentRef": parent, "controllerName": CILIUM, "conditions": [condition]}
            await world.edit(HTTPROUTES, ROOT, name, {"status": {"parents": [entry]}}, "status")
            await world.settle()
            assert UNCONFIRMED in accepted(world, ROOT, "www", "cozystack")[2]

    run_in_world(main)


def test_the_root_hears_what_the_data_plane_refuses() -> None:
    """Of its own rules it is not accepted; of a vertex, it hears which one is not served."""

    async def main(world: World) -> None:
        add_finance_story(world)
        rules = [serving("/", service="home"), delegating("/finance", f"{FINANCE}/finance")]
        await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"rules": rules}})
        async with world.running():
            own, of_vertex = sorted(await flat_routes(world), key=lambda each: "-own-" not in each)
            await report(world, of_vertex, "False", "UnsupportedValue")
            await report(world, own, "True", "Accepted")
            refusal = f"{CILIUM} does not accept it: UnsupportedValue"
            assert accepted(world, FINANCE, "finance", "www") == ("False", "UnsupportedValue", f"{HOST}: {refusal}")
            assert accepted(world, ROOT, "www", "cozystack")[:2] == ("True", "Accepted")
            message = f"not delegated to 1 of 1 routes: HTTPRoute {FINANCE}/finance (UnsupportedValue: {refusal})"
            assert told(world, ROOT, "www")["cozystack", "Delegated"] == ("False", "UnsupportedValue", message)
            await report(world, of_vertex, "True", "Accepted")
            assert ("cozystack", "Delegated") not in told(world, ROOT, "www")
            await report(world, own, "False", "NoMatchingParent")
            message = f"HTTPRoute {own}: {CILIUM} does not accept it: NoMatchingParent"
            assert accepted(world, ROOT, "www", "cozystack") == ("False", "NoMatchingParent", message)

    run_in_world(main)


def test_a_root_that_gives_nothing_away_and_keeps_nothing_is_not_said_to_be_served() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            await world.cluster.delete(GRANTS, FINANCE, "www")
            await world.settle()
            status, reason, message = accepted(world, ROOT, "www", "cozystack")
            assert (status, reason) == ("True", "Accepted")
            assert message.startswith("nothing of its hostnames is served: ")

    run_in_world(main)


def test_the_root_is_told_which_vertices_it_does_not_delegate_to() -> None:
    """R-349: the others are served."""

    async def main(world: World) -> None:
        add_platform(world)
        for name in ("tenant-a", "tenant-b", "tenant-c"):
            add_tenant(world, name)
        add_root(
            world,
            delegating("/a", f"{FINANCE}/finance"),
            delegating("/b", "tenant-a/r"),
            delegating("/a", "tenant-b/r"),
            delegating("/c", "tenant-c/r"),
        )
        add_vertex(world, FINANCE, "finance", serving("/a"))
        add_grant(world, FINANCE)
        for name, path in (("tenant-a", "/css"), ("tenant-b", "/a"), ("tenant-c", "/c")):
            add_vertex(world, name, "r", serving(path))
        for name in ("tenant-a", "tenant-b"):
            add_grant(world, name, routes=("r",))
        async with world.running():
            pass
        status, reason, message = told(world, ROOT, "www")["cozystack", "Delegated"]
        assert (status, reason) == ("False", "DelegationConflict")
        assert message == (
            "not delegated to 3 of 4 routes: "
            'HTTPRoute tenant-a/r (OutsideDelegation: "/css" is not below "/b"), '
            f'HTTPRoute tenant-b/r (DelegationConflict: "/a" is delegated to another route by HTTPRoute {ROOT}/www), '
            "HTTPRoute tenant-c/r (RefNotPermitted)"
        )
        assert reasons(world, ROOT, "www")["cozystack", "ResolvedRefs"] == ("False", "RefNotPermitted")
        assert len(await flat_routes(world)) == 1

    run_in_world(main)


def test_the_summary_names_ten_vertices_and_the_number_of_the_others() -> None:
    async def main(world: World) -> None:
        add_platform(world)
        targets = [f"{FINANCE}/r{number:02}" for number in range(12)]
        add_root(world, *(delegating(f"/{number}", target) for number, target in enumerate(targets)))
        async with world.running():
            pass
        _, _, message = told(world, ROOT, "www")["cozystack", "Delegated"]
        assert message.startswith(f"not delegated to 12 of 12 routes: HTTPRoute {FINANCE}/r00 (RefNotPermitted), ")
        assert message.endswith(f"HTTPRoute {FINANCE}/r09 (RefNotPermitted) and 2 more")

    run_in_world(main)


def test_the_root_does_not_hear_what_a_vertex_names_in_its_own_namespace_or_elsewhere() -> None:
    """R-360: it may not read the vertex; what is wrong with its rules is for the vertex to know."""

    async def main(world: World) -> None:
        add_platform(world)
        add_root(world, delegating("/finance", f"{FINANCE}/finance"))
        backend = {"name": "hidden", "namespace": "tenant-vault", "port": 80}
        add_vertex(world, FINANCE, "finance", {**serving("/finance"), "backendRefs": [backend]})
        add_grant(world, FINANCE)
        async with world.running():
            pass
        assert "tenant-vault/hidden" in accepted(world, FINANCE, "finance", "www")[2]
        found = str(world.get(HTTPROUTES, ROOT, "www")["status"]) + str(world.gateway_status(ROOT))
        assert "OutsideDelegation" in found
        assert "vault" not in found

    run_in_world(main)


def test_a_vertex_that_delegates_further_hears_of_its_own_vertices() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        add_tenant(world, "tenant-team")
        rules = [serving("/finance"), delegating("/finance/team", "tenant-team/team")]
        await world.edit(HTTPROUTES, FINANCE, "finance", {"spec": {"rules": rules}})
        add_vertex(world, "tenant-team", "team", serving("/elsewhere"), parents=(f"{FINANCE}/finance",))
        add_grant(world, "tenant-team", guest=FINANCE, routes=("team",))
        async with world.running():
            pass
        assert reasons(world, FINANCE, "finance")["www", "Delegated"] == ("False", "OutsideDelegation")
        assert ("cozystack", "Delegated") not in reasons(world, ROOT, "www")

    run_in_world(main)


@pytest.mark.parametrize("group", [{}, {"group": "gateway.networking.k8s.io"}], ids=["omitted", "filled in"])
def test_a_root_whose_parent_has_the_wrong_group_is_told_so(group: dict[str, Any]) -> None:
    """Without a group, a parentRef refers to one of Gateway API (ParentReference)."""

    async def main(world: World) -> None:
        add_finance_story(world)
        right = world.get(HTTPROUTES, ROOT, "www")["spec"]["parentRefs"]
        async with world.running():
            parents = [{**group, "kind": "TenantGateway", "name": "cozystack"}]
            await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"parentRefs": parents}})
            await world.settle()
            message = (
                "group gateway.networking.k8s.io, the default of a parentRef, has no kind TenantGateway: "
                "set its group to gateway.cozystack.io"
            )
            assert told(world, ROOT, "www") == {
                ("cozystack", "Accepted"): ("False", "NoMatchingParent", message),
            }
            assert await flat_routes(world) == {}
            await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"parentRefs": right}})
            await world.settle()
            assert accepted(world, ROOT, "www", "cozystack")[0] == "True"

    run_in_world(main)

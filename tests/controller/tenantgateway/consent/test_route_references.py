"""Routes are told which of their references nobody consented to, and what a change of a grant costs."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Object
from controller.tenantgateway.model import RouteId
from registry.cluster.interface import SERVICES, ClusterResource
from tests.controller.tenantgateway.gateway_world import (
    GATEWAY_API,
    GRANTS,
    HTTPROUTES,
    OURS,
    World,
    api_error,
    run_in_world,
    run_until_settled,
)

WEB = {"name": "web", "namespace": "shop"}
REFUSED, RESOLVED = ("False", "RefNotPermitted"), ("True", "ResolvedRefs")


def service(world: World, namespace: str = "shop", name: str = "web") -> None:
    world.cluster.add(SERVICES, {"metadata": {"namespace": namespace, "name": name}})


def grant(world: World, namespace: str = "shop", guest: str = "tenant-foo", name: str = "grant") -> None:
    referrer = {"group": GATEWAY_API, "kind": "HTTPRoute", "namespace": guest}
    spec = {"from": [referrer], "to": [{"group": "", "kind": "Service"}]}
    world.cluster.add(GRANTS, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})


async def referring_route(world: World, name: str = "app", *backends: Object, namespace: str = "tenant-foo") -> None:
    world.route(namespace, name, f"{name}.foo.example.com")
    await world.edit(HTTPROUTES, namespace, name, {"spec": {"rules": [{"backendRefs": [*(backends or (WEB,))]}]}})


def conditions(world: World, name: str = "app", namespace: str = "tenant-foo") -> dict[str, tuple[str, str]]:
    """(status, reason) of our conditions on a route by type."""
    parents = (world.get(HTTPROUTES, namespace, name).get("status") or {}).get("parents") or []
    ours = [condition for each in parents if each["controllerName"] == OURS for condition in each["conditions"]]
    return {each["type"]: (each["status"], each["reason"]) for each in ours}


def test_a_route_is_told_of_references_without_consent_while_it_is_served() -> None:
    """R-366: the hostname keeps its listener, and our entry has no Accepted, which is the data plane's."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        service(world)
        await referring_route(world)
        async with world.running():
            assert conditions(world) == {"ResolvedRefs": REFUSED}
            assert world.listeners() == ["app.foo.example.com"]
            assert ("HTTPRoute", "app", "Warning", "RefNotPermitted") in world.recorder.events
            grant(world)
            await world.settle()
            assert conditions(world) == {"ResolvedRefs": RESOLVED}
        world.cluster.clear_writes()
        await run_until_settled(world)
        assert world.cluster.writes == []
        await world.cluster.delete(GRANTS, "shop", "grant")
        await run_until_settled(world)
        assert conditions(world) == {"ResolvedRefs": REFUSED}

    run_in_world(main)


def test_a_route_that_does_not_count_is_told_nothing_about_references() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.namespace("aaa")
        await referring_route(world, namespace="aaa")
        await run_until_settled(world)
        assert conditions(world, namespace="aaa") == {"Accepted": ("False", "NotAllowedByListeners")}

    run_in_world(main)


@pytest.mark.parametrize(
    ("backends", "expected"),
    [
        pytest.param([WEB], {"ResolvedRefs": RESOLVED}, id="everything exists"),
        pytest.param([{**WEB, "name": "missing"}], {}, id="no such Service"),
        pytest.param([WEB, {"name": "missing"}], {}, id="no such Service of the own namespace"),
        pytest.param([WEB, {"name": "x", "kind": "ServiceImport", "group": "x.example"}], {}, id="another kind"),
        pytest.param([{**WEB, "name": "a/../b"}], {}, id="a name that cannot be part of a path"),
        pytest.param([WEB, *({"name": f"s{number}"} for number in range(16))], {}, id="one of many exists"),
    ],
)
def test_resolved_is_only_told_of_backends_that_were_looked_at(backends: list[Object], expected: object) -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        service(world)
        await referring_route(world, "app", *backends)
        async with world.running():
            assert conditions(world) == {"ResolvedRefs": REFUSED}
            grant(world)
        assert conditions(world) == expected

    run_in_world(main)


@pytest.mark.parametrize(
    "namespace", [pytest.param("shop", id="of the other"), pytest.param("tenant-foo", id="its own")]
)
def test_a_service_that_goes_is_told(namespace: str) -> None:
    """The rest is for the data plane to tell: our condition is removed, and set again with the next refusal."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        service(world)
        service(world, "tenant-foo", "own")
        await referring_route(world, "app", WEB, {"name": "own"})
        async with world.running():
            grant(world)
            await world.settle()
            assert conditions(world) == {"ResolvedRefs": RESOLVED}
            await world.cluster.delete(SERVICES, namespace, "web" if namespace == "shop" else "own")
            await world.settle()
            assert conditions(world) == {}

    run_in_world(main)


def test_services_are_not_read_one_by_one() -> None:
    """They are listed once, however many routes refer to them."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        service(world)
        await referring_route(world)
        async with world.running():
            grant(world)
        assert conditions(world) == {"ResolvedRefs": RESOLVED}
        assert [each for each in world.calls if each[:2] == ("get", "services")] == []

    run_in_world(main)


def test_a_route_without_foreign_references_gets_no_condition() -> None:
    """Also in place of an earlier one: the backends of its own namespace are for the data plane to judge."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        await referring_route(world)
        async with world.running():
            assert conditions(world) == {"ResolvedRefs": REFUSED}
            rules = {"rules": [{"backendRefs": [{"name": "web"}]}]}
            await world.edit(HTTPROUTES, "tenant-foo", "app", {"spec": rules})
        assert conditions(world) == {}

    run_in_world(main)


def test_a_grant_enqueues_only_the_routes_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    """GW-19: not those of other namespaces, nor those that refer elsewhere."""
    judged: list[str] = []

    async def main(world: World) -> None:
        world.add_tenantgateway()
        service(world)
        for name, backend in (("app", WEB), ("elsewhere", {**WEB, "namespace": "other"}), ("local", {"name": "web"})):
            await referring_route(world, name, backend)
        await referring_route(world, "heir", namespace="tenant-bar")
        async with world.running() as controllers:
            reconciler = controllers._route_statuses._reconciler
            reconcile = reconciler.reconcile

            async def counting(key: RouteId) -> None:
                judged.append(key.name)
                await reconcile(key)

            monkeypatch.setattr(reconciler, "reconcile", counting)
            grant(world)
            await world.settle()
        # once for the grant, and once for the write of the status
        assert set(judged) == {"app"}
        assert len(judged) <= 2

    run_in_world(main)


@pytest.mark.parametrize("error", [pytest.param(404, id="not served"), pytest.param(403, id="not permitted")])
def test_without_reference_grants_everything_else_works(error: int) -> None:
    """Nothing is told about references then."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        await referring_route(world)
        refused, counting = True, world.cluster.before
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: object) -> None:
            await counting(verb, res, key)  # type: ignore[arg-type]
            if refused and res.plural == "referencegrants":
                raise api_error(error, "not here")

        world.cluster.before = refusing
        async with world.running():
            assert world.listeners() == ["app.foo.example.com"]
            assert world.ready()[1] == "GatewayNotAccepted"
            assert conditions(world) == {}
            refused = False
            await world.settle()
            await world.settle()
        assert conditions(world) == {"ResolvedRefs": REFUSED}

    run_in_world(main)

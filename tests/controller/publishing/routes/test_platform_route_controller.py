"""The controller of the platform's routes on a fake cluster: it follows settings, Services, Ingresses and routes."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.meta.resource import Object
from controller.publishing.services import SERVICES
from registry.cluster.interface import SERVICES as SERVICE_KIND
from tests.controller.publishing.routes.platform_routes_world import LISTED, PlatformRoutesWorld
from tests.controller.tenantgateway.gateway_world import HTTPROUTES, MERGE, TLSROUTES
from tests.virtual_time import virtual

ALL = list(SERVICES)


@virtual
async def test_seven_routes_are_written_once() -> None:
    world = PlatformRoutesWorld()
    async with world.routes_running():
        pass
    assert world.platform_routes() == ALL
    assert sorted(world.writes()) == sorted(("create", each.route) for each in SERVICES.values())
    world.cluster.clear_writes()
    later = PlatformRoutesWorld(world.cluster)
    async with later.routes_running():
        pass
    assert later.writes() == []


@virtual
async def test_by_default_none_is_written() -> None:
    world = PlatformRoutesWorld(platformRoutes=False)
    async with world.routes_running():
        pass
    assert world.writes() == []


@virtual
async def test_the_list_and_the_flag_decide_while_it_runs() -> None:
    world = PlatformRoutesWorld(enabled=False)
    async with world.routes_running():
        assert world.platform_routes() == []
        world.configure()
        await asyncio.sleep(2)
        assert world.platform_routes() == ALL
        world.configure(["dashboard"])
        await asyncio.sleep(2)
        assert world.platform_routes() == ["dashboard", "keycloak", "grafana", "alerta"]


@virtual
async def test_on_rollback_a_route_stays_until_its_ingress_is_back_or_for_ten_minutes() -> None:
    """R-302."""
    world = PlatformRoutesWorld()
    async with world.routes_running():
        world.configure(enabled=False)
        await asyncio.sleep(60)
        assert world.platform_routes() == ALL
        world.add_ingress("dashboard")
        await asyncio.sleep(1)
        assert world.platform_routes() == ALL[1:]
        await asyncio.sleep(530)
        assert world.platform_routes() == ALL[1:]
        await asyncio.sleep(20)
        assert world.platform_routes() == []


@virtual
async def test_the_timeout_of_a_rollback_is_a_setting() -> None:
    world = PlatformRoutesWorld()
    async with world.routes_running():
        world.configure(enabled=False, rollbackTimeout="30s")
        await asyncio.sleep(25)
        assert world.platform_routes() == ALL
        await asyncio.sleep(10)
        assert world.platform_routes() == []


@virtual
async def test_a_restart_during_a_rollback_does_not_begin_the_wait_anew() -> None:
    world = PlatformRoutesWorld()
    async with world.routes_running():
        world.configure(enabled=False)
        await asyncio.sleep(400)
    later = PlatformRoutesWorld(world.cluster, enabled=False)
    async with later.routes_running():
        assert later.platform_routes() == ALL
        await asyncio.sleep(150)
        assert later.platform_routes() == []


@virtual
async def test_a_rollback_that_is_taken_back_leaves_the_routes_as_they_were() -> None:
    world = PlatformRoutesWorld()
    async with world.routes_running():
        before = _content(world)
        world.configure(enabled=False)
        await asyncio.sleep(60)
        assert _content(world) != before
        world.configure()
        await asyncio.sleep(700)
        assert _content(world) == before


def _content(world: PlatformRoutesWorld) -> list[object]:
    found = (world.platform_route(each) for each in ALL)
    return [
        (each["metadata"]["labels"], each["metadata"].get("annotations") or {}, each["spec"]) for each in found if each
    ]


@virtual
async def test_a_route_comes_and_stays_with_its_service() -> None:
    world = PlatformRoutesWorld()
    await world.cluster.delete(SERVICE_KIND, "cozy-dashboard", "incloud-web-gatekeeper")
    async with world.routes_running():
        assert "dashboard" not in world.platform_routes()
        world.add_service("cozy-dashboard", "incloud-web-gatekeeper", 8000)
        await asyncio.sleep(2)
        assert world.platform_routes() == ALL
        await world.cluster.delete(SERVICE_KIND, "cozy-dashboard", "incloud-web-gatekeeper")
        await asyncio.sleep(500)
        assert world.platform_routes() == ALL
        await asyncio.sleep(120)
        assert "dashboard" not in world.platform_routes()


@virtual
async def test_an_edited_or_deleted_route_is_restored() -> None:
    world = PlatformRoutesWorld()
    async with world.routes_running():
        before = _content(world)
        body: Object = {"spec": {"hostnames": ["evil.example.org"], "rules": [{"filters": [{"type": "x"}]}]}}
        await world.cluster.patch(HTTPROUTES, "cozy-dashboard", "dashboard", body, content_type=MERGE)
        await world.cluster.delete(TLSROUTES, "default", "kubernetes-api")
        await asyncio.sleep(2)
        assert _content(world) == before


@pytest.mark.parametrize("labels", [{"app.kubernetes.io/managed-by": "Helm"}, {}])
def test_a_route_of_others_is_left_and_named(labels: dict[str, str]) -> None:
    @virtual
    async def run() -> None:
        world = PlatformRoutesWorld()
        metadata = {"namespace": "cozy-dashboard", "name": "dashboard", "labels": labels}
        world.cluster.add(HTTPROUTES, {"metadata": metadata, "spec": {"hostnames": ["other.example.org"]}})
        before = world.platform_route("dashboard")
        async with world.routes_running():
            assert world.guard is not None
            left = [each.left for each in world.guard.verdicts() if each.left]
            owner = "Helm" if labels else "another client"
            assert left == [f"HTTPRoute cozy-dashboard/dashboard of {owner}"]
            world.configure(enabled=False, rollbackTimeout="1s")
            await asyncio.sleep(10)
        assert world.platform_route("dashboard") == before
        assert world.platform_routes() == ["dashboard"]

    run()


@virtual
async def test_routes_are_handed_back_to_the_charts() -> None:
    """Helm adopts what has the marks of its release; what it has adopted is its own from then on."""
    world = PlatformRoutesWorld()
    async with world.routes_running():
        world.configure(platformRoutes=False)
        await asyncio.sleep(10)
        assert world.platform_routes() == ALL
        adopted = {"metadata": {"labels": {"helm.toolkit.fluxcd.io/name": "dashboard"}}}
        await world.cluster.patch(HTTPROUTES, "cozy-dashboard", "dashboard", adopted, content_type=MERGE)
        await asyncio.sleep(700)
        assert world.platform_routes() == ["dashboard"]


@virtual
async def test_routes_that_no_chart_has_adopted_yet_are_taken_back() -> None:
    world = PlatformRoutesWorld()
    async with world.routes_running():
        before = _content(world)
        world.configure(platformRoutes=False)
        await asyncio.sleep(10)
        world.configure()
        await asyncio.sleep(700)
        assert _content(world) == before


@virtual
async def test_tlsroutes_have_the_version_that_the_cluster_serves() -> None:
    """R-286."""
    world = PlatformRoutesWorld()
    world.unserved_versions = {"v1", "v1alpha3"}
    async with world.routes_running():
        pass
    made = [each.resource.version for each in world.cluster.writes if each.resource.kind == "TLSRoute"]
    assert made == ["v1alpha2"] * 3


@virtual
async def test_without_tlsroutes_the_others_are_written_until_the_kind_is_served() -> None:
    world = PlatformRoutesWorld()
    world.unserved_versions = {"v1", "v1alpha2", "v1alpha3"}
    async with world.routes_running():
        assert world.platform_routes() == ["dashboard", "keycloak", "grafana", "alerta"]
        world.unserved_versions = {"v1alpha2", "v1alpha3"}
        await world.settle()
        assert world.platform_routes() == ALL
    assert set(LISTED) <= set(world.platform_routes())

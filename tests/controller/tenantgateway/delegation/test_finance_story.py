"""The domain owner gives a part of its hostname away, and takes it back: flat routes and statuses (seed 003)."""

from __future__ import annotations

import pytest

from registry.cluster.interface import NAMESPACES
from registry.tenantgateway.types import TENANTGATEWAYS
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
    parent_refs,
    reasons,
    serving,
    told,
)
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GRANTS,
    HTTPROUTES,
    MERGE,
    World,
    run_in_world,
    run_until_settled,
)

ACCEPTED, ORPHANED = ("True", "Accepted"), ("False", "Orphaned")
OUTSIDE, CYCLE = ("False", "OutsideDelegation"), ("False", "DelegationCycle")


def test_three_objects_publish_a_path_of_a_hostname() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            pass
        ((name, spec),) = (await flat_routes(world)).items()
        assert name == "www-e6d92c58"
        assert spec["hostnames"] == [HOST]
        (parent,) = spec["parentRefs"]
        assert (parent["kind"], parent["namespace"], parent["name"], parent["port"]) == (
            "Gateway",
            ROOT,
            "cozystack",
            443,
        )
        assert spec["rules"][0]["backendRefs"] == [{"name": "web", "namespace": FINANCE, "port": 80}]
        assert world.listeners(ROOT) == [HOST]
        assert len(await world.names(CERTIFICATES, ROOT)) == 1
        assert told(world, FINANCE, "finance") == {
            ("www", "Accepted"): (
                "True",
                "Accepted",
                f"{HOST}/finance, delegated by HTTPRoute {ROOT}/www; not yet confirmed by the Gateway's controller",
            )
        }
        assert reasons(world, ROOT, "www") == {
            ("cozystack", "Accepted"): ACCEPTED,
            ("cozystack", "ResolvedRefs"): ("True", "ResolvedRefs"),
        }
        status = world.get(TENANTGATEWAYS, ROOT, "cozystack")["status"]
        assert status["delegations"] == {"states": [{"state": "Connected", "count": 1}], "problems": []}

    run_in_world(main)


def test_a_restart_writes_nothing() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        await run_until_settled(world)
        await run_until_settled(world)
        assert world.writer.writes == 0

    run_in_world(main)


@pytest.mark.parametrize("taken", ["grant", "rule", "parent", "hostname", "root", "vertex", "gateway", "label"])
def test_what_one_of_them_takes_back_is_not_served_any_more(taken: str) -> None:
    """R-360 to R-362: each of the three objects is needed, and the hostname and the Gateway beside."""

    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            assert len(await flat_routes(world)) == 1
            since = world.get(HTTPROUTES, FINANCE, "finance")["status"]["parents"][0]["parentRef"]
            match taken:
                case "grant":
                    await world.cluster.delete(GRANTS, FINANCE, "www")
                case "rule":
                    await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"rules": []}})
                case "parent":
                    spec = {"parentRefs": parent_refs(f"{ROOT}/other")}
                    await world.edit(HTTPROUTES, FINANCE, "finance", {"spec": spec})
                case "hostname":
                    await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"hostnames": ["www.example.com"]}})
                case "root":
                    await world.cluster.delete(HTTPROUTES, ROOT, "www")
                case "vertex":
                    await world.cluster.delete(HTTPROUTES, FINANCE, "finance")
                case "gateway":
                    await world.cluster.delete(TENANTGATEWAYS, ROOT, "cozystack")
                case "label":
                    labels = {"namespace.cozystack.io/host": "example.net"}
                    await world.edit(NAMESPACES, "", ROOT, {"metadata": {"labels": labels}})
            await world.settle()
            assert await flat_routes(world) == {}
            if taken == "vertex":
                return
            (entry,) = world.get(HTTPROUTES, FINANCE, "finance")["status"]["parents"]
            if taken != "parent":
                assert entry["parentRef"] == since, "the last parent stays known"
            assert [each["reason"] for each in entry["conditions"] if each["type"] == "Accepted"] == ["Orphaned"]

    run_in_world(main)


def test_a_root_hears_who_does_not_consent_and_a_vertex_nothing_of_it() -> None:
    """The seed's dave: his root names gmail without a grant (R-360)."""

    async def main(world: World) -> None:
        add_platform(world)
        add_tenant(world, "tenant-gmail")
        add_tenant(world, "tenant-dave")
        add_root(world, delegating("/mail", "tenant-gmail/gmail"), name="google", hosts=("google.example.org",))
        add_vertex(world, "tenant-gmail", "gmail", serving("/mail"), parents=(f"{ROOT}/google",))
        add_grant(world, "tenant-gmail", routes=("gmail",))
        async with world.running():
            before = world.get(HTTPROUTES, "tenant-gmail", "gmail")
            add_root(
                world,
                delegating("/mail", "tenant-gmail/gmail"),
                namespace="tenant-dave",
                name="dave",
                hosts=("dave.example.org",),
            )
            await world.settle()
            assert await flat_routes(world, "tenant-dave") == {}
            assert reasons(world, "tenant-dave", "dave")["cozystack", "ResolvedRefs"] == ("False", "RefNotPermitted")
            assert world.get(HTTPROUTES, "tenant-gmail", "gmail") == before
            assert len(await flat_routes(world)) == 1

    run_in_world(main)


def test_a_root_is_told_although_nothing_of_it_is_served() -> None:
    """Also one that was there before its Gateway."""

    async def main(world: World) -> None:
        add_tenant(world, ROOT, host="example.org")
        add_root(world, delegating("/finance", f"{FINANCE}/finance"))
        async with world.running():
            assert reasons(world, ROOT, "www") == {("cozystack", "Accepted"): ORPHANED}
            world.add_tenantgateway(ROOT, apex="example.org")
            await world.settle()
            assert reasons(world, ROOT, "www") == {
                ("cozystack", "Accepted"): ACCEPTED,
                ("cozystack", "Delegated"): ("False", "RefNotPermitted"),
                ("cozystack", "ResolvedRefs"): ("False", "RefNotPermitted"),
            }

    run_in_world(main)


def test_one_match_outside_refuses_the_whole_vertex() -> None:
    """R-349, R-350: /static gives no right to /css."""

    async def main(world: World) -> None:
        add_platform(world)
        add_root(world, delegating("/static", f"{FINANCE}/finance"))
        add_vertex(world, FINANCE, "finance", serving("/static"), serving("/css"))
        add_grant(world, FINANCE)
        async with world.running():
            pass
        assert await flat_routes(world) == {}
        message = '"/css" is not below "/static"'
        assert told(world, FINANCE, "finance") == {("www", "Accepted"): (*OUTSIDE, message)}
        status = world.get(TENANTGATEWAYS, ROOT, "cozystack")["status"]["delegations"]
        problem = {"route": "www", "to": f"{FINANCE}/finance", "reason": "OutsideDelegation", "message": message}
        assert status == {"states": [{"state": "OutsideDelegation", "count": 1}], "problems": [problem]}

    run_in_world(main)


def test_a_cycle_is_refused_where_it_closes() -> None:
    async def main(world: World) -> None:
        add_platform(world)
        add_root(world, delegating("/finance", f"{FINANCE}/a"))
        add_vertex(
            world,
            FINANCE,
            "a",
            serving("/finance"),
            delegating("/finance", f"{FINANCE}/b"),
            parents=(f"{ROOT}/www", f"{FINANCE}/b"),
        )
        add_vertex(
            world, FINANCE, "b", serving("/finance"), delegating("/finance", f"{FINANCE}/a"), parents=(f"{FINANCE}/a",)
        )
        add_grant(world, FINANCE, routes=("a", "b"))
        async with world.running():
            pass
        assert len(await flat_routes(world)) == 2
        assert reasons(world, FINANCE, "a")["www", "Accepted"] == ACCEPTED
        assert reasons(world, FINANCE, "a")["b", "Accepted"] == CYCLE
        assert reasons(world, FINANCE, "b")["a", "Accepted"] == ACCEPTED

    run_in_world(main)


def test_a_cycle_that_nothing_is_delegated_to_is_told_too() -> None:
    async def main(world: World) -> None:
        add_platform(world)
        add_vertex(world, FINANCE, "a", delegating("/x", f"{FINANCE}/b"), parents=(f"{FINANCE}/b",))
        add_vertex(world, FINANCE, "b", delegating("/x", f"{FINANCE}/a"), parents=(f"{FINANCE}/a",))
        async with world.running():
            pass
        assert await flat_routes(world) == {}
        assert reasons(world, FINANCE, "a") == {("b", "Accepted"): CYCLE}

    run_in_world(main)


def test_the_rules_of_a_root_are_served_beside_those_that_it_delegates() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        rules = [serving("/", service="home"), delegating("/finance", f"{FINANCE}/finance")]
        await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"rules": rules}})
        async with world.running():
            found = await flat_routes(world)
            (own,) = [name for name in found if "-own-" in name]
            assert found[own]["rules"][0]["backendRefs"] == [{"name": "home", "namespace": ROOT, "port": 80}]
            assert len(found) == 2
            assert world.listeners(ROOT) == [HOST]
            await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"rules": rules[1:]}})
            await world.settle()
            assert own not in await flat_routes(world)

    run_in_world(main)


def test_services_without_a_grant_and_grants_for_all_services_are_told() -> None:
    async def main(world: World) -> None:
        add_platform(world)
        add_root(world, delegating("/finance", f"{FINANCE}/finance"))
        add_vertex(world, FINANCE, "finance", serving("/finance"))
        add_grant(world, FINANCE, services=())
        async with world.running():
            assert reasons(world, FINANCE, "finance")["www", "ResolvedRefs"] == ("False", "RefNotPermitted")
            add_grant(world, FINANCE, name="all", routes=(), services=("",))
            await world.settle()
            assert ("www", "ResolvedRefs") not in reasons(world, FINANCE, "finance")
            _, _, message = told(world, FINANCE, "finance")["www", "Accepted"]
            assert message.endswith(
                f"ReferenceGrants open every Service of namespace {FINANCE} to HTTPRoutes of {ROOT}: name the Services"
            )

    run_in_world(main)


def test_what_the_gateways_controller_says_reaches_the_vertex() -> None:
    """Its people may not read the flat route, which is in the namespace of its root."""

    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            ((name, spec),) = (await flat_routes(world)).items()
            condition = {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound", "message": "secret"}
            entry = {
                "parentRef": spec["parentRefs"][0],
                "controllerName": "io.cilium/gateway",
                "conditions": [condition],
            }
            await world.edit(HTTPROUTES, ROOT, name, {"status": {"parents": [entry]}}, "status")
            await world.settle()
            message = "io.cilium/gateway reports BackendNotFound for a backend of this route"
            assert told(world, FINANCE, "finance")["www", "ResolvedRefs"] == ("False", "BackendNotFound", message)

    run_in_world(main)


def test_a_hostname_that_another_namespace_has_is_not_served_for_the_vertex_either() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        world.namespace("cozy-web", gateway=ROOT)
        world.route("cozy-web", "app", HOST, to=f"{ROOT}/cozystack", port=443)
        async with world.running():
            pass
        status, reason, message = told(world, FINANCE, "finance")["www", "Accepted"]
        assert (status, reason) == ("False", "DelegationConflict")
        assert "cozy-web" not in message
        assert reasons(world, ROOT, "www")["cozystack", "Accepted"] == ("False", "HostnameConflict")

    run_in_world(main)


def test_two_roots_compete_for_a_path_and_the_first_name_wins() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        add_tenant(world, "tenant-other")
        add_vertex(world, "tenant-other", "finance", serving("/finance"), parents=(f"{ROOT}/aaa",))
        add_grant(world, "tenant-other")
        async with world.running():
            add_root(world, delegating("/finance", "tenant-other/finance"), name="aaa")
            await world.settle()
            message = f'"/finance" is delegated to another route by HTTPRoute {ROOT}/aaa'
            assert told(world, FINANCE, "finance")["www", "Accepted"] == ("False", "DelegationConflict", message)
            assert reasons(world, "tenant-other", "finance")["aaa", "Accepted"] == ACCEPTED
            (name,) = await flat_routes(world)
            assert name.startswith("aaa-")
            await world.cluster.delete(GRANTS, "tenant-other", "www")
            await world.settle()
            assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ACCEPTED
            (name,) = await flat_routes(world)
            assert name.startswith("www-")

    run_in_world(main)


def test_a_vertex_without_parents_keeps_the_last_one() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            await world.cluster.patch(
                HTTPROUTES, FINANCE, "finance", {"spec": {"parentRefs": None}}, content_type=MERGE
            )
            await world.settle()
            message = f"the route has no parentRef: it was last attached to HTTPRoute {ROOT}/www"
            assert told(world, FINANCE, "finance") == {("www", "Accepted"): (*ORPHANED, message)}
            assert await flat_routes(world) == {}

    run_in_world(main)

"""The rows of the table of conditions in docs/delegation.md that no other test has."""

from __future__ import annotations

import pytest

from controller.tenantgateway.certificate_budget import QUOTA
from registry.cluster.interface import HELMRELEASES
from tests.controller.tenantgateway.delegation.delegation_world import (
    FINANCE,
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
from tests.controller.tenantgateway.delegation.test_flat_routes_on_sets import add_others
from tests.controller.tenantgateway.gateway_world import HTTPROUTES, World, api_error, run_in_world
from tests.tenant_objects import release

NOT_FOUND, REFUSED = ("False", "BackendNotFound"), ("False", "RefNotPermitted")


@pytest.mark.parametrize("exists", [False, True], ids=["there is no such vertex", "it names another parent"])
def test_with_a_grant_the_root_hears_that_a_vertex_is_missing(exists: bool) -> None:
    async def main(world: World) -> None:
        add_platform(world)
        add_root(world, delegating("/finance", f"{FINANCE}/finance"))
        if exists:
            add_vertex(world, FINANCE, "finance", serving("/finance"), parents=(f"{ROOT}/other",))
        add_grant(world, FINANCE)
        async with world.running():
            pass
        found = reasons(world, ROOT, "www")
        assert (found["cozystack", "ResolvedRefs"], found["cozystack", "Delegated"]) == (NOT_FOUND, NOT_FOUND)
        message = f"HTTPRoute {FINANCE}/finance does not exist, or does not name HTTPRoute {ROOT}/www as a parent"
        assert told(world, ROOT, "www")["cozystack", "ResolvedRefs"][2] == message

    run_in_world(main)


@pytest.mark.parametrize("permitted", [False, True], ids=["without a grant", "with a grant"])
def test_a_vertex_hears_what_a_further_route_lacks(permitted: bool) -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        rules = [serving("/finance"), delegating("/finance/team", "tenant-team/team")]
        await world.edit(HTTPROUTES, FINANCE, "finance", {"spec": {"rules": rules}})
        if permitted:
            add_grant(world, "tenant-team", guest=FINANCE, routes=("team",))
        async with world.running():
            pass
        expected = NOT_FOUND if permitted else REFUSED
        assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ("True", "Accepted")
        assert reasons(world, FINANCE, "finance")["www", "ResolvedRefs"] == expected

    run_in_world(main)


def test_the_ninth_delegation_is_one_too_many() -> None:
    async def main(world: World) -> None:
        add_platform(world)
        add_root(world, delegating("/finance", f"{FINANCE}/r1"))
        add_grant(world, FINANCE, routes=("r1",))
        for number in range(1, 10):
            parent = f"{FINANCE}/r{number - 1}" if number > 1 else f"{ROOT}/www"
            rules = [serving("/finance"), delegating("/finance", f"{FINANCE}/r{number + 1}")]
            add_vertex(world, FINANCE, f"r{number}", *rules, parents=(parent,))
        async with world.running():
            pass
        assert len(await flat_routes(world)) == 8
        assert reasons(world, FINANCE, "r8")["r7", "Accepted"] == ("True", "Accepted")
        message = "more than 8 delegations lead to this route"
        assert told(world, FINANCE, "r9")["r8", "Accepted"] == ("False", "OutsideDelegation", message)

    run_in_world(main)


def test_the_root_hears_that_a_flat_route_cannot_be_written() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        async with world.running():
            (name,) = await flat_routes(world)
        await world.cluster.delete(HTTPROUTES, ROOT, name)
        world.failing_calls["create", "httproutes", name] = api_error()
        async with world.running():
            message = f"httproute {ROOT}/{name}: denied by a policy"
            assert told(world, ROOT, "www")["cozystack", "Accepted"] == ("False", "ReconcileError", message)
            world.failing_calls.clear()

    run_in_world(main)


def test_the_vertex_hears_that_the_gateway_is_full() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        add_others(world, 63)
        async with world.running():
            pass
        assert reasons(world, ROOT, "www")["cozystack", "Accepted"] == ("False", "ListenersTruncated")
        assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ("False", "ListenersTruncated")

    run_in_world(main)


def test_root_and_vertex_hear_that_the_owner_has_no_certificates_left() -> None:
    """With a quota for one hostname, the second root gets no listener; a higher quota serves it."""

    async def main(world: World) -> None:
        add_platform(world)
        add_tenant(world, "tenant-dave")
        await world.cluster.create(HELMRELEASES, release("root", ROOT))
        await world.cluster.create(HELMRELEASES, release("dave", ROOT, spec={"resourceQuotas": {QUOTA: "1"}}))
        for name in ("first", "second"):
            hosts = (f"{name}.dave.example.org",)
            rule = delegating("/finance", f"{FINANCE}/{name}")
            add_root(world, rule, namespace="tenant-dave", name=name, hosts=hosts)
            add_vertex(world, FINANCE, name, serving("/finance"), parents=(f"tenant-dave/{name}",))
        add_grant(world, FINANCE, guest="tenant-dave", routes=("first", "second"))
        exceeded = ("False", "QuotaExceeded")
        async with world.running():
            assert reasons(world, "tenant-dave", "first")["cozystack", "Accepted"] == ("True", "Accepted")
            assert reasons(world, FINANCE, "first")["first", "Accepted"] == ("True", "Accepted")
            assert reasons(world, "tenant-dave", "second")["cozystack", "Accepted"] == exceeded
            assert reasons(world, FINANCE, "second")["second", "Accepted"] == exceeded
            assert "tenant-dave" not in told(world, FINANCE, "second")["second", "Accepted"][2]
            assert world.listeners(ROOT) == ["first.dave.example.org"]
            more = release("dave", ROOT, spec={"resourceQuotas": {QUOTA: "2"}})["spec"]
            await world.edit(HELMRELEASES, ROOT, "tenant-dave", {"spec": more})
            await world.settle()
            assert world.listeners(ROOT) == ["first.dave.example.org", "second.dave.example.org"]
            assert reasons(world, FINANCE, "second")["second", "Accepted"] == ("True", "Accepted")

    run_in_world(main)


def test_a_vertex_hears_that_the_first_rule_has_its_match() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        add_vertex(world, FINANCE, "second", serving("/finance"))
        add_grant(world, FINANCE, name="second", routes=("second",))
        rules = [delegating("/finance", f"{FINANCE}/finance"), delegating("/finance", f"{FINANCE}/second")]
        await world.edit(HTTPROUTES, ROOT, "www", {"spec": {"rules": rules}})
        async with world.running():
            pass
        assert reasons(world, FINANCE, "finance")["www", "Accepted"] == ("True", "Accepted")
        assert reasons(world, FINANCE, "second")["www", "Accepted"] == ("False", "DelegationConflict")

    run_in_world(main)


def test_a_tenantgateway_counts_all_delegations_and_names_fifty_problems_of_its_own_namespace() -> None:
    async def main(world: World) -> None:
        add_finance_story(world)
        add_tenant(world, "tenant-dave")
        targets = [f"{FINANCE}/r{number:02}" for number in range(60)]
        add_root(world, delegating("/many", *targets), name="many", hosts=("many.example.org",))
        target = "tenant-secret/hidden"
        add_root(world, delegating("/x", target), namespace="tenant-dave", name="dave", hosts=("dave.example.org",))
        async with world.running():
            pass
        found = world.gateway_status(ROOT)["delegations"]
        assert found["states"] == [{"state": "Connected", "count": 1}, {"state": "RefNotPermitted", "count": 61}]
        assert len(found["problems"]) == 50
        assert {each["route"] for each in found["problems"]} == {"many"}
        assert "hidden" not in str(found)

    run_in_world(main)

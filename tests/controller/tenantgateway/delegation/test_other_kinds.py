"""GRPCRoutes delegate services and methods, TLSRoutes whole hostnames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.meta.resource import Object
from controller.tenantgateway.delegation.model import Participant
from controller.tenantgateway.delegation.roots import reject_root
from controller.tenantgateway.model import RouteId, RouteNamespace
from registry.cluster.interface import ClusterResource
from registry.tenantgateway.types import GROUP
from tests.controller.tenantgateway.delegation.delegation_world import (
    FINANCE,
    ROOT,
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
from tests.controller.tenantgateway.gateway_builders import gateway
from tests.controller.tenantgateway.gateway_world import (
    GATEWAY_API,
    GRANTS,
    GRPCROUTES,
    TLSROUTES,
    World,
    run_in_world,
    run_until_settled,
)

EXAMPLES = Path(__file__).parents[4] / "examples" / "delegation"
ACCEPTED, RESOLVED = ("True", "Accepted"), ("True", "ResolvedRefs")
ORPHANED, OUTSIDE = ("False", "Orphaned"), ("False", "OutsideDelegation")
ADMITTED: dict[str, Any] = {"gateway": {"attachedNamespaces": [], "grpcRoutes": True}}
TENANTGATEWAY = {"group": GROUP, "kind": "TenantGateway", "namespace": ROOT, "name": "cozystack"}
UNCONFIRMED = "not yet confirmed by the Gateway's controller"
GRPC_HOST, API, PROXY = "grpc.example.org", "api.example.org", "proxy.example.org"


def to_routes(res: ClusterResource, *targets: str) -> list[Object]:
    named = [each.partition("/") for each in targets]
    return [
        {"group": GATEWAY_API, "kind": res.kind, "namespace": namespace, "name": name} for namespace, _, name in named
    ]


def calls(*methods: str, backends: list[Object] | None = None) -> Object:
    """A rule about methods, each given as service/method, or about a whole service."""
    split = [each.partition("/") for each in methods]
    matches = [{"method": {"service": service, **({"method": name} if name else {})}} for service, _, name in split]
    return {"matches": matches, "backendRefs": backends or [{"name": "web", "port": 80}]}


def add(world: World, res: ClusterResource, namespace: str, name: str, **spec: Any) -> None:
    world.cluster.add(res, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})


def grant(world: World, res: ClusterResource, namespace: str, guest: str = ROOT) -> None:
    """Lets routes of a kind of the namespace `guest` refer to those of `namespace`, and to its Service web."""
    to = [{"group": GATEWAY_API, "kind": res.kind}, {"group": "", "kind": "Service", "name": "web"}]
    spec = {"from": [{"group": GATEWAY_API, "kind": res.kind, "namespace": guest}], "to": to}
    world.cluster.add(GRANTS, {"metadata": {"namespace": namespace, "name": res.plural}, "spec": spec})


def add_grpc_story(world: World, *rules: Object) -> None:
    add_platform(world)
    delegated = calls("shop.Orders", backends=to_routes(GRPCROUTES, f"{FINANCE}/orders"))
    add(world, GRPCROUTES, ROOT, "grpc", hostnames=[GRPC_HOST], parentRefs=[TENANTGATEWAY], rules=[delegated])
    parents = to_routes(GRPCROUTES, f"{ROOT}/grpc")
    add(world, GRPCROUTES, FINANCE, "orders", parentRefs=parents, rules=[*(rules or (calls("shop.Orders/Get"),))])
    grant(world, GRPCROUTES, FINANCE)


def add_tls_story(world: World, **vertices: list[str]) -> None:
    """A root with two hostnames, and vertices by name that ask for some."""
    add_tenant(world, ROOT, host="example.org")
    world.add_tenantgateway(ROOT, apex="example.org", tlsPassthroughServices=["api", "proxy"])
    add_tenant(world, FINANCE)
    rule = {"backendRefs": to_routes(TLSROUTES, *(f"{FINANCE}/{each}" for each in vertices))}
    add(world, TLSROUTES, ROOT, "tls", hostnames=[API, PROXY], parentRefs=[TENANTGATEWAY], rules=[rule])
    for name, hostnames in vertices.items():
        serving_tls = {"backendRefs": [{"name": "web", "port": 443}]}
        parents = to_routes(TLSROUTES, f"{ROOT}/tls")
        add(world, TLSROUTES, FINANCE, name, hostnames=hostnames, parentRefs=parents, rules=[serving_tls])
    grant(world, TLSROUTES, FINANCE)


def test_a_service_of_grpc_is_delegated_where_the_settings_admit_grpcroutes() -> None:
    async def main(world: World) -> None:
        add_grpc_story(world)
        async with world.running():
            pass
        ((name, spec),) = (await flat_routes(world, res=GRPCROUTES)).items()
        assert name.startswith("grpc-")
        assert spec["hostnames"] == [GRPC_HOST]
        assert spec["rules"][0]["matches"] == [{"method": {"service": "shop.Orders", "method": "Get"}}]
        assert spec["rules"][0]["backendRefs"] == [{"name": "web", "namespace": FINANCE, "port": 80}]
        assert world.listeners(ROOT) == [GRPC_HOST]
        message = f"{GRPC_HOST}/shop.Orders, delegated by GRPCRoute {ROOT}/grpc; {UNCONFIRMED}"
        assert told(world, FINANCE, "orders", GRPCROUTES) == {("grpc", "Accepted"): (*ACCEPTED, message)}
        assert reasons(world, ROOT, "grpc", GRPCROUTES) == {
            ("cozystack", "Accepted"): ACCEPTED,
            ("cozystack", "ResolvedRefs"): RESOLVED,
        }
        await run_until_settled(world)
        assert world.writer.writes == 0, "a restart writes nothing"

    run_in_world(main, settings=ADMITTED)


def test_the_example_of_a_delegated_service_is_served() -> None:
    """examples/delegation/grpc.yaml."""

    async def main(world: World) -> None:
        add_platform(world)
        resources = {each.kind: each for each in (GRPCROUTES, GRANTS)}
        for obj in yaml.load_all((EXAMPLES / "grpc.yaml").read_text(), Loader=yaml.CSafeLoader):
            world.cluster.add(resources[obj["kind"]], obj)
        async with world.running():
            pass
        ((_, spec),) = (await flat_routes(world, res=GRPCROUTES)).items()
        backends = [each["backendRefs"][0] for each in spec["rules"]]
        assert [(each["namespace"], each["name"]) for each in backends] == [
            (FINANCE, "accounts"),
            (FINANCE, "transfers"),
        ]
        assert reasons(world, FINANCE, "accounts", GRPCROUTES)["grpc", "Accepted"] == ACCEPTED
        assert reasons(world, ROOT, "grpc", GRPCROUTES)["cozystack", "ResolvedRefs"] == RESOLVED

    run_in_world(main, settings=ADMITTED)


def test_without_the_setting_a_grpcroute_is_told_what_to_set_and_the_setting_takes_effect_at_once() -> None:
    async def main(world: World) -> None:
        add_grpc_story(world)
        async with world.running():
            _, reason, message = told(world, ROOT, "grpc", GRPCROUTES)["cozystack", "Accepted"]
            assert (reason, "gateway.grpcRoutes" in message) == ("NotAllowedByListeners", True)
            assert reasons(world, FINANCE, "orders", GRPCROUTES) == {("grpc", "Accepted"): ORPHANED}
            assert (await flat_routes(world, res=GRPCROUTES), world.listeners(ROOT)) == ({}, [])
            world.change_settings(ADMITTED)
            await world.settle()
            assert len(await flat_routes(world, res=GRPCROUTES)) == 1
            assert reasons(world, FINANCE, "orders", GRPCROUTES) == {("grpc", "Accepted"): ACCEPTED}
            world.change_settings({"gateway": {"attachedNamespaces": []}})
            await world.settle()
            assert (await flat_routes(world, res=GRPCROUTES), world.listeners(ROOT)) == ({}, [])
            assert reasons(world, FINANCE, "orders", GRPCROUTES) == {("grpc", "Accepted"): ORPHANED}

    run_in_world(main)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(calls("shop.Orders"), ACCEPTED, id="the service"),
        pytest.param(calls("shop.Orders/Get", "shop.Orders/List"), ACCEPTED, id="two of its methods"),
        pytest.param(calls("shop.OrdersAdmin"), OUTSIDE, id="a service whose name begins so"),
        pytest.param(calls("shop.Orders", "shop.Carts"), OUTSIDE, id="one service of two"),
        pytest.param({"backendRefs": [{"name": "web", "port": 80}]}, OUTSIDE, id="everything"),
        pytest.param({"matches": [{"method": {"method": "Get"}}]}, OUTSIDE, id="a method of any service"),
        pytest.param(
            {"matches": [{"method": {"type": "RegularExpression", "service": "shop.Orders"}}]}, OUTSIDE, id="a pattern"
        ),
    ],
)
def test_a_grpcroute_keeps_within_the_services_and_methods_that_it_has_got(
    rule: Object, expected: tuple[str, str]
) -> None:
    """R-350."""

    async def main(world: World) -> None:
        add_grpc_story(world, rule)
        await run_until_settled(world)
        assert reasons(world, FINANCE, "orders", GRPCROUTES) == {("grpc", "Accepted"): expected}
        assert len(await flat_routes(world, res=GRPCROUTES)) == (expected == ACCEPTED)

    run_in_world(main, settings=ADMITTED)


def test_routes_of_several_kinds_with_one_name_do_not_disturb_each_other() -> None:
    async def main(world: World) -> None:
        add_grpc_story(world)
        add_root(world, delegating("/orders", f"{FINANCE}/orders"), name="grpc")
        add_vertex(world, FINANCE, "orders", serving("/orders"), parents=(f"{ROOT}/grpc",))
        add_grant(world, FINANCE, routes=("orders",))
        async with world.running():
            both = [await flat_routes(world), await flat_routes(world, res=GRPCROUTES)]
            assert [len(each) for each in both] == [1, 1]
            await world.cluster.delete(GRPCROUTES, FINANCE, "orders")
            await world.settle()
            assert [await flat_routes(world), await flat_routes(world, res=GRPCROUTES)] == [both[0], {}]

    run_in_world(main, settings=ADMITTED)


def test_a_route_delegates_to_routes_of_its_own_kind_only() -> None:
    async def main(world: World) -> None:
        add_platform(world)
        add_vertex(world, FINANCE, "finance", serving("/finance"))
        add_grant(world, FINANCE)
        rule = calls("shop.Orders", backends=delegating("/", f"{FINANCE}/finance")["backendRefs"])
        add(world, GRPCROUTES, ROOT, "www", hostnames=[GRPC_HOST], parentRefs=[TENANTGATEWAY], rules=[rule])
        await run_until_settled(world)
        assert (await flat_routes(world), await flat_routes(world, res=GRPCROUTES)) == ({}, {})
        _, reason, message = told(world, ROOT, "www", GRPCROUTES)["cozystack", "Accepted"]
        assert (reason, message) == (
            "UnsupportedValue",
            "rule 1 names an HTTPRoute: a GRPCRoute delegates to GRPCRoutes",
        )

    run_in_world(main, settings=ADMITTED)


def test_a_whole_hostname_is_delegated_to_a_tlsroute() -> None:
    async def main(world: World) -> None:
        add_tls_story(world, api=[API])
        async with world.running():
            pass
        ((name, spec),) = (await flat_routes(world, res=TLSROUTES)).items()
        assert name.startswith("tls-")
        assert spec["hostnames"] == [API]
        assert spec["rules"] == [{"backendRefs": [{"name": "web", "namespace": FINANCE, "port": 443}]}]
        message = f"{API}, delegated by TLSRoute {ROOT}/tls; {UNCONFIRMED}"
        assert told(world, FINANCE, "api", TLSROUTES) == {("tls", "Accepted"): (*ACCEPTED, message)}
        assert reasons(world, ROOT, "tls", TLSROUTES)["cozystack", "Accepted"] == ACCEPTED
        await run_until_settled(world)
        assert world.writer.writes == 0, "a restart writes nothing"

    run_in_world(main)


def test_each_hostname_goes_to_the_tlsroute_that_lists_it_and_to_the_first_of_two() -> None:
    async def main(world: World) -> None:
        add_tls_story(world, first=[API], second=[PROXY], third=[API])
        async with world.running():
            served = [each["hostnames"] for each in (await flat_routes(world, res=TLSROUTES)).values()]
            assert sorted(served) == [[API], [PROXY]]
            conflict = ("False", "DelegationConflict")
            assert reasons(world, FINANCE, "third", TLSROUTES) == {("tls", "Accepted"): conflict}
            await world.edit(TLSROUTES, FINANCE, "first", {"spec": {"hostnames": [PROXY]}})
            await world.settle()
            assert reasons(world, FINANCE, "third", TLSROUTES) == {("tls", "Accepted"): ACCEPTED}
            assert reasons(world, FINANCE, "first", TLSROUTES) == {("tls", "Accepted"): ACCEPTED}
            assert reasons(world, FINANCE, "second", TLSROUTES) == {("tls", "Accepted"): conflict}

    run_in_world(main)


@pytest.mark.parametrize(
    "hostnames",
    [
        pytest.param(["other.example.org"], id="a hostname that the root lacks"),
        pytest.param([API, "other.example.org"], id="one of two"),
        pytest.param(["*.example.org"], id="a wildcard above"),
        pytest.param(["x.api.example.org"], id="a name below"),
        pytest.param([], id="none"),
    ],
)
def test_a_tlsroute_that_lists_anything_else_is_not_served(hostnames: list[str]) -> None:
    """R-349: layer 5 admits such a route, because it attaches to no Gateway."""

    async def main(world: World) -> None:
        add_tls_story(world, api=hostnames)
        await run_until_settled(world)
        assert reasons(world, FINANCE, "api", TLSROUTES) == {("tls", "Accepted"): OUTSIDE}
        assert await flat_routes(world, res=TLSROUTES) == {}

    run_in_world(main)


def test_a_hostname_without_a_passthrough_listener_is_not_delegated() -> None:
    async def main(world: World) -> None:
        add_tls_story(world, api=[API])
        async with world.running():
            assert len(await flat_routes(world, res=TLSROUTES)) == 1
            await world.edit_spec(ROOT, tlsPassthroughServices=["api"])
            await world.settle()
            assert await flat_routes(world, res=TLSROUTES) == {}
            _, reason, message = told(world, ROOT, "tls", TLSROUTES)["cozystack", "Accepted"]
            assert reason == "NoMatchingListenerHostname"
            assert f'"{PROXY}"' in message
            assert message.endswith(
                "an administrator can add the name before example.org to gateway.tlsPassthroughServices"
            )
            await world.edit_spec(ROOT, tlsPassthroughServices=["api", "proxy"])
            await world.settle()
            assert len(await flat_routes(world, res=TLSROUTES)) == 1

    run_in_world(main)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [pytest.param("edge", "cozystack", id="of no tenant"), pytest.param(ROOT, "other", id="named otherwise")],
)
def test_a_tenantgateway_that_no_controller_writes_is_edited_itself(namespace: str, name: str) -> None:
    found = gateway(name=name, namespace=namespace)
    root = Participant(id=RouteId(namespace, "db", "TLSRoute"), uid="1", hostnames=("db.foo.example.com",))
    rejection = reject_root(root, found.key, found, RouteNamespace(namespace, host="foo.example.com"))
    assert rejection is not None
    remedy = "list the name before foo.example.com in spec.tlsPassthroughServices of the TenantGateway"
    assert rejection.message.endswith(remedy)


def test_a_tlsroute_delegates_or_serves_because_its_rules_have_no_matches() -> None:
    async def main(world: World) -> None:
        add_tls_story(world, api=[API])
        both = [
            {"backendRefs": to_routes(TLSROUTES, f"{FINANCE}/api")},
            {"backendRefs": [{"name": "web", "port": 443}]},
        ]
        async with world.running():
            await world.edit(TLSROUTES, ROOT, "tls", {"spec": {"rules": both}})
            await world.settle()
            assert await flat_routes(world, res=TLSROUTES) == {}
            assert reasons(world, ROOT, "tls", TLSROUTES)["cozystack", "Accepted"] == ("False", "UnsupportedValue")

    run_in_world(main)

"""`gateway.sharedHostnames: platform`: namespaces of the platform share a hostname by disjoint paths."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from controller.platform.settings import PlatformSettings
from controller.tenantgateway.hostname_ownership import resolve_ownership
from controller.tenantgateway.model import PathMatch, Route, RouteKind
from tests.controller.tenantgateway import gateway_builders
from tests.controller.tenantgateway.gateway_world import HTTPROUTES, World, run_in_world

HOST = "www.foo.example.com"


def route(namespace: str, *paths: str, name: str = "app", host: str = HOST, kind: RouteKind = "HTTPRoute") -> Route:
    made = gateway_builders.route(namespace, name, host, kind=kind)
    return replace(made, paths=tuple(PathMatch("PathPrefix", each) for each in paths or ("/",)))


def losers(*routes: Route, shared: bool = True) -> dict[str, tuple[str, str]]:
    """The winner and the path that it has, by the route that loses."""
    conflicts = resolve_ownership(routes, shared=shared).conflicts
    return {str(loser): (str(lost[0].winner), lost[0].path) for loser, lost in conflicts.items()}


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        pytest.param([route("cozy-a", "/a"), route("cozy-b", "/b")], {}, id="disjoint paths"),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-b", "/b"), route("cozy-c", "/c", "/b/x")],
            {"cozy-c/app": ("cozy-b/app", "/b")},
            id="the third overlaps the second",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-b", "/a/b"), route("cozy-c", "/a/b")],
            {"cozy-b/app": ("cozy-a/app", "/a"), "cozy-c/app": ("cozy-a/app", "/a")},
            id="R-200: the smallest wins an overlap",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-b", "/a", "/b"), route("cozy-c", "/b")],
            {"cozy-b/app": ("cozy-a/app", "/a")},
            id="a refused route blocks no other",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-a", "/a/b", name="more"), route("cozy-b", "/b")],
            {},
            id="R-207: routes of one namespace overlap as they like",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-b", "/b"), route("cozy-b", "/a/x", name="more")],
            {"cozy-b/more": ("cozy-a/app", "/a")},
            id="each route of a namespace is compared with those of the others",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("tenant-b", "/b")],
            {"tenant-b/app": ("cozy-a/app", "")},
            id="R-199: a tenant shares nothing with the platform",
        ),
        pytest.param(
            [route("tenant-a", "/a"), route("tenant-b", "/b")],
            {"tenant-b/app": ("tenant-a/app", "")},
            id="nor tenants with each other",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-b", "/b", kind="TLSRoute")],
            {"cozy-b/app": ("cozy-a/app", "")},
            id="a TLSRoute has the whole hostname",
        ),
        pytest.param(
            [route("cozy-a", "/a"), route("cozy-a", kind="TLSRoute", name="tls"), route("cozy-b", "/b")],
            {"cozy-b/app": ("cozy-a/tls", "")},
            id="also beside an HTTPRoute of its namespace",
        ),
        pytest.param(
            [route("cozy-a", "/a", host="*.foo.example.com"), route("cozy-b", "/b")],
            {"cozy-b/app": ("cozy-a/app", "")},
            id="a wildcard and a hostname that it covers are not the same hostname",
        ),
    ],
)
def test_namespaces_of_the_platform_share_a_hostname(routes: list[Route], expected: dict[str, tuple[str, str]]) -> None:
    """In any order of events (R-201)."""
    for order in permutations(routes):
        assert losers(*order) == expected


def test_by_default_nothing_is_shared() -> None:
    assert losers(route("cozy-a", "/a"), route("cozy-b", "/b"), shared=False) == {"cozy-b/app": ("cozy-a/app", "")}


def test_the_setting_takes_effect_without_a_restart() -> None:
    """One listener and one Certificate, however many namespaces share the hostname. A loser is told which path."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        for namespace, path in (("cozy-a", "/a"), ("cozy-b", "/b"), ("cozy-c", "/b/c")):
            world.route(namespace, "app", HOST)
            rules = [{"matches": [{"path": {"type": "PathPrefix", "value": path}}]}]
            await world.edit(HTTPROUTES, namespace, "app", {"spec": {"rules": rules}})
        async with world.running():
            for namespace in ("cozy-b", "cozy-c"):
                assert world.accepted_conditions(namespace, "app")["tenant-foo"][1] == "HostnameConflict"
            shared = {"gateway": {"attachedNamespaces": [], "sharedHostnames": "platform"}}
            world.settings.replace(PlatformSettings.model_validate(shared))
            await world.settle()
            assert world.accepted_conditions("cozy-b", "app")["tenant-foo"][0] == "True"
            assert world.listeners() == [HOST]
            message = f'"{HOST}" with the path /b belongs to HTTPRoute cozy-b/app: choose other paths'
            assert world.accepted_conditions("cozy-c", "app")["tenant-foo"] == ("False", "HostnameConflict", message)
            rules = [{"matches": [{"path": {"type": "PathPrefix", "value": "/c"}}]}]
            await world.edit(HTTPROUTES, "cozy-c", "app", {"spec": {"rules": rules}})
            await world.settle()
            assert world.accepted_conditions("cozy-c", "app")["tenant-foo"][0] == "True"

    run_in_world(main)


@pytest.mark.parametrize(("value", "expected"), [("platform", "platform"), ("off", "off"), (False, "off")])
def test_off_is_a_word_in_the_settings(value: object, expected: str) -> None:
    settings = PlatformSettings.model_validate({"gateway": {"sharedHostnames": value}})
    assert settings.gateway.shared_hostnames == expected

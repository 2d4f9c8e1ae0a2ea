"""The routes that count for a Gateway, judged from the labels of their namespaces."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.tenantgateway.model import ParentRef, Route, RouteKind, RouteNamespace, TenantGateway
from controller.tenantgateway.names import child_listener_name, listener_name
from controller.tenantgateway.route_admission import admit, reject_parent
from tests.controller.tenantgateway.gateway_builders import gateway, planned, route

ALICE = RouteNamespace("tenant-alice", "tenant-foo", "alice.foo.example.com")
PLATFORM = RouteNamespace("cozy-harbor", "tenant-foo")
ANY_PORT = ParentRef()


def claimed(
    hostnames: Iterable[str],
    *,
    of: RouteNamespace = ALICE,
    on: TenantGateway | None = None,
    parents: tuple[ParentRef, ...] = (ANY_PORT,),
    kind: RouteKind = "HTTPRoute",
) -> tuple[str, ...] | None:
    """The hostnames that count of a route in namespace `of`; None if nothing of it does."""
    found = admit(on or gateway(), route(of.name, "web", *hostnames, kind=kind, parents=parents), of)
    return found.route.hostnames if found is not None else None


@pytest.mark.parametrize(
    ("namespace", "counts"),
    [
        pytest.param(RouteNamespace("tenant-foo", "tenant-foo", "foo.example.com"), True, id="the owner's"),
        pytest.param(RouteNamespace("tenant-foo", "", "foo.example.com"), True, id="the owner's before it is labelled"),
        pytest.param(ALICE, True, id="an heir's"),
        pytest.param(PLATFORM, True, id="an attached one"),
        pytest.param(RouteNamespace("aaa"), False, id="one without a label"),
        pytest.param(RouteNamespace("cozy-x", "tenant-bar"), False, id="one attached to another Gateway"),
        pytest.param(
            RouteNamespace("tenant-kid", "tenant-kid", "kid.foo.example.com"), False, id="a child's with its own"
        ),
    ],
)
def test_routes_count_where_the_listeners_admit_their_namespace(namespace: RouteNamespace, counts: bool) -> None:
    """R-131, R-345, R-362."""
    hostname = f"x.{namespace.host or 'foo.example.com'}"
    assert claimed([hostname], of=namespace) == ((hostname,) if counts else None)


@pytest.mark.parametrize(
    ("hostname", "namespace", "counts"),
    [
        pytest.param("alice.foo.example.com", ALICE, True, id="the host itself"),
        pytest.param("a.b.alice.foo.example.com", ALICE, True, id="below it"),
        pytest.param("*.alice.foo.example.com", ALICE, True, id="a wildcard below it"),
        pytest.param("X.Alice.Foo.Example.Com", ALICE, True, id="in capitals"),
        pytest.param("foo.example.com", ALICE, False, id="the parent's host"),
        pytest.param("*.foo.example.com", ALICE, False, id="a wildcard that covers it"),
        pytest.param("bob.foo.example.com", ALICE, False, id="a sibling's"),
        pytest.param("evilalice.foo.example.com", ALICE, False, id="one that ends alike"),
        pytest.param(
            "x.foo.example.com", RouteNamespace("tenant-new", "tenant-foo"), False, id="before there is a host"
        ),
        pytest.param("x.foo.example.com", PLATFORM, True, id="anything, of the platform"),
    ],
)
def test_a_tenants_routes_count_below_the_host_of_their_namespace(
    hostname: str, namespace: RouteNamespace, counts: bool
) -> None:
    found = admit(gateway(), route(namespace.name, "web", hostname, parents=(ANY_PORT,)), namespace)
    assert found is not None
    assert bool(found.rejections) is not counts
    assert claimed([hostname], of=namespace) == ((hostname.lower(),) if counts else ())


def test_a_hostname_that_does_not_count_does_not_take_the_others_with_it() -> None:
    written = route("tenant-alice", "web", "a.alice.foo.example.com", "b.foo.example.com", parents=(ANY_PORT,))
    found = admit(gateway(), written, ALICE)
    assert found is not None
    assert found.route.hostnames == ("a.alice.foo.example.com",)
    (rejection,) = found.rejections
    assert rejection.reason == "NoMatchingListenerHostname"
    assert rejection.message == (
        '"b.foo.example.com" is not of this namespace: the host of namespace tenant-alice is '
        '"alice.foo.example.com"; choose alice.foo.example.com or a name below it'
    )


ONE = "one.alice.foo.example.com"
DNS01 = gateway(cert_mode="dns01")


@pytest.mark.parametrize(
    ("tenantgateway", "parent", "reason"),
    [
        pytest.param(gateway(), ParentRef(port=443), "", id="port 443"),
        pytest.param(gateway(), ParentRef(port=8443), "NoMatchingParent", id="another port"),
        pytest.param(gateway(), ParentRef(section=listener_name(ONE)), "", id="the listener of the hostname"),
        pytest.param(gateway(), ParentRef(section=listener_name("x.y")), "NoMatchingParent", id="that of another"),
        pytest.param(gateway(), ParentRef(section="https"), "NoMatchingParent", id="http01 has no wildcard"),
        pytest.param(DNS01, ParentRef(section="https"), "", id="the wildcard listener"),
        pytest.param(DNS01, ParentRef(section="https-apex"), "NoMatchingParent", id="the apex's"),
        pytest.param(
            DNS01, ParentRef(section=child_listener_name("alice.foo.example.com")), "", id="the listener of its host"
        ),
        pytest.param(
            DNS01, ParentRef(section=child_listener_name("bob.foo.example.com")), "NoMatchingParent", id="a sibling's"
        ),
        pytest.param(gateway(), ParentRef(section="http"), "NotAllowedByListeners", id="port 80 by section"),
        pytest.param(gateway(), ParentRef(port=80), "NotAllowedByListeners", id="port 80"),
    ],
)
def test_a_parentref_selects_a_listener_that_fits(tenantgateway: TenantGateway, parent: ParentRef, reason: str) -> None:
    rejection = reject_parent(tenantgateway, parent, "HTTPRoute", [ONE], ALICE)
    assert (rejection.reason if rejection is not None else "") == reason
    assert claimed([ONE], on=tenantgateway, parents=(parent,)) == ((ONE,) if not reason else None)


@pytest.mark.parametrize("name", ["tenant-foo", "cozy-cert-manager"])
def test_port_80_admits_the_owner_and_cert_manager_without_a_claim(name: str) -> None:
    """R-132, FACT-3: neither the redirect nor a solver takes a hostname."""
    namespace = RouteNamespace(name, host="foo.example.com" if name == "tenant-foo" else "")
    for parent in (ParentRef(section="http"), ParentRef(port=80)):
        assert reject_parent(gateway(), parent, "HTTPRoute", [ONE], namespace) is None
        assert reject_parent(gateway(), parent, "TLSRoute", [ONE], namespace) is not None
        assert claimed([ONE], of=namespace, parents=(parent,)) == ()


def test_a_solver_that_names_no_port_is_served_on_port_80_only() -> None:
    """cert-manager's namespace needs no label for that (GW-12)."""
    assert claimed([ONE], of=RouteNamespace("cozy-cert-manager")) == ()


def test_a_tlsroute_attaches_to_its_passthrough_listener() -> None:
    kubernetes = RouteNamespace("default", "tenant-foo")
    api = "api.foo.example.com"
    for parent in (ANY_PORT, ParentRef(section="tls-api"), ParentRef(port=443)):
        assert claimed([api], of=kubernetes, parents=(parent,), kind="TLSRoute") == (api,)
    assert claimed([api], of=kubernetes, parents=(ParentRef(section="tls-vm"),), kind="TLSRoute") is None


_namespaces = st.builds(
    RouteNamespace,
    st.sampled_from(["tenant-foo", "tenant-a", "tenant-b", "cozy-x", "default", "aaa"]),
    st.sampled_from(["", "tenant-foo", "tenant-a"]),
    st.sampled_from(["", "foo.example.com", "a.foo.example.com", "b.foo.example.com"]),
)
_hostnames = st.lists(
    st.sampled_from(["foo.example.com", "a.foo.example.com", "x.a.foo.example.com", "*.b.foo.example.com", "z.org"]),
    max_size=3,
)
_parents = st.lists(
    st.builds(ParentRef, st.sampled_from(["", "http", "https"]), st.sampled_from([None, 80, 443])),
    min_size=1,
    max_size=2,
).map(tuple)


@given(st.lists(st.tuples(_namespaces, _hostnames, _parents), max_size=6), st.booleans())
def test_routes_that_do_not_count_never_change_a_plan(
    written: list[tuple[RouteNamespace, list[str], tuple[ParentRef, ...]]], dns01: bool
) -> None:
    """The plan has the hostnames of admitted namespaces only, and each is of its namespace."""
    tenantgateway = DNS01 if dns01 else gateway()
    counted: list[Route] = []
    allowed = set()
    for number, (namespace, hostnames, parents) in enumerate(written):
        found = admit(tenantgateway, route(namespace.name, f"r{number}", *hostnames, parents=parents), namespace)
        if found is None:
            continue
        counted.append(found.route)
        if found.route.hostnames:
            assert "tenant-foo" in (namespace.name, namespace.gateway)
        for hostname in found.route.hostnames:
            allowed.add(hostname)
            if namespace.name.startswith("tenant-"):
                assert hostname.removeprefix("*.").endswith(namespace.host)
    assert planned(tenantgateway, *counted).ownership.owners.keys() <= allowed

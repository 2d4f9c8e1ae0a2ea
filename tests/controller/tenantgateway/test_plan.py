"""Planned listeners and certificates, and omitted hostnames."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.tenantgateway.model import InheritingNamespace, ParentRef, PlannedListener, RouteId, TenantGateway
from controller.tenantgateway.names import certificate_name, child_listener_name, listener_name
from tests.controller.tenantgateway.gateway_builders import (
    EVERY_MODE,
    WILDCARD_MODES,
    existing_gateway,
    gateway,
    hostnames,
    inheriting,
    omitted,
    planned,
    route,
)

HARBOR = "harbor.foo.example.com"


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        pytest.param("harbor.foo.example.com", "harbor-760d5a8a", id="R-110"),
        pytest.param("harbor.alice.example.com", "harbor-c31cf8bc", id="R-111: same first label, another name"),
        pytest.param("harbor.alice.example.org", "harbor-45348fe9", id="R-155"),
        pytest.param("dashboard.example.org", "dashboard-dfe8b0e4", id="R-280"),
        pytest.param("alice.example.org", "alice-cf290f3a", id="R-115"),
    ],
)
def test_names_contain_the_first_label_and_a_hash(hostname: str, name: str) -> None:
    """R-110 to R-112, R-115, R-152, PEER-24."""
    assert listener_name(hostname) == f"https-{name}"
    assert child_listener_name(hostname) == f"https-child-{name}"
    assert certificate_name("cozystack", hostname) == f"cozystack-{name}-tls"


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_every_gateway_has_one_http_listener(tenantgateway: TenantGateway) -> None:
    """R-108."""
    plan = planned(tenantgateway, route("tenant-foo", "app", HARBOR), inheriting=inheriting("alice.foo.example.com"))
    assert [each for each in plan.listeners if each.port == 80] == [
        PlannedListener(name="http", protocol="HTTP", port=80)
    ]


def test_http01_has_one_listener_and_certificate_for_each_hostname() -> None:
    """R-109, R-112, R-113, R-151, R-312."""
    plan = planned(
        gateway(),
        route("tenant-foo", "main", HARBOR, "b.foo.example.com"),
        route("tenant-foo", "canary", HARBOR),
        route("tenant-foo", "other", "c.foo.example.com"),
    )
    assert hostnames(plan) == ["b.foo.example.com", "c.foo.example.com", HARBOR]
    assert [(each.dns_names, each.per_listener) for each in plan.certificates] == [
        (("b.foo.example.com",), True),
        (("c.foo.example.com",), True),
        ((HARBOR,), True),
    ]
    assert {each.certificate for each in plan.listeners if each.protocol == "HTTPS"} == {
        each.name for each in plan.certificates
    }


def test_the_owner_serves_hostnames_of_its_children() -> None:
    """R-107, R-155, R-182: children without routes add nothing in HTTP-01."""
    tenantgateway = gateway("tenant-root", apex="example.org")
    plan = planned(
        tenantgateway,
        route("tenant-alice", "h", "harbor.alice.example.org"),
        inheriting=inheriting("alice.example.org"),
    )
    assert [each.name for each in plan.listeners] == ["http", "https-harbor-45348fe9"]
    assert [each.name for each in plan.certificates] == ["cozystack-harbor-45348fe9-tls"]


def test_a_removed_route_loses_its_listener_and_certificate() -> None:
    """R-101."""
    before = planned(gateway(), route("tenant-foo", "app", HARBOR))
    after = planned(gateway(), current=existing_gateway(gateway(), before))
    assert [each.name for each in after.listeners] == ["http"]
    assert after.certificates == ()


@pytest.mark.parametrize("tenantgateway", WILDCARD_MODES)
def test_wildcard_modes_have_listeners_for_the_apex_and_its_children(tenantgateway: TenantGateway) -> None:
    """R-114 to R-116, R-123, R-172: there is no listener for a single route."""
    plan = planned(tenantgateway, route("tenant-foo", "app", HARBOR), inheriting=inheriting("alice.foo.example.com"))
    assert [(each.name, each.hostname) for each in plan.listeners] == [
        ("http", ""),
        ("https", "*.foo.example.com"),
        ("https-apex", "foo.example.com"),
        ("https-child-alice-f2dcb550", "*.alice.foo.example.com"),
    ]
    assert plan.omitted == ()


def test_dns01_has_one_certificate_for_all_names() -> None:
    """R-159, R-174, R-176, R-308."""
    children = inheriting("bob.alice.foo.example.com", "alice.foo.example.com")
    (certificate,) = planned(gateway(cert_mode="dns01"), inheriting=children).certificates
    assert certificate.name == "cozystack-gateway-tls"
    assert not certificate.per_listener
    assert certificate.dns_names == (
        "foo.example.com",
        "*.foo.example.com",
        "alice.foo.example.com",
        "*.alice.foo.example.com",
        "bob.alice.foo.example.com",
        "*.bob.alice.foo.example.com",
    )


@pytest.mark.parametrize(
    ("hostname", "told"),
    [
        ("foo.example.com", False),
        ("a.foo.example.com", False),
        ("*.foo.example.com", False),
        ("a.b.foo.example.com", True),
        ("*.b.foo.example.com", True),
        ("a.alice.foo.example.com", False),
        ("a.b.alice.foo.example.com", True),
    ],
)
def test_a_route_is_told_that_the_certificate_does_not_have_its_hostname(hostname: str, told: bool) -> None:
    """The wildcard listener matches any number of labels, the wildcard in the certificate one."""
    children, claimed = inheriting("alice.foo.example.com"), route("tenant-foo", "deep", hostname)
    plan = planned(gateway(cert_mode="dns01"), claimed, inheriting=children)
    assert [(each.hostname, each.reason, each.route) for each in plan.omitted] == (
        [(hostname, "NotInCertificate", claimed.id)] if told else []
    )
    existing_secret = gateway(cert_mode="existingSecret", wildcard_secret="ours")
    assert planned(existing_secret, claimed, inheriting=children).omitted == ()


def test_another_child_does_not_reorder_the_dns_names() -> None:
    before = planned(gateway(cert_mode="dns01"), inheriting=inheriting("d.foo.example.com", "b.foo.example.com"))
    children = inheriting("c.foo.example.com", "b.foo.example.com", "d.foo.example.com")
    after = planned(gateway(cert_mode="dns01"), inheriting=children)
    others = [each for each in after.certificates[0].dns_names if "c.foo.example.com" not in each]
    assert others == list(before.certificates[0].dns_names)
    current = existing_gateway(gateway(cert_mode="dns01"), before)
    assert planned(gateway(cert_mode="dns01"), inheriting=children, current=current) == after


def test_existing_secret_has_no_certificate_of_ours() -> None:
    """PEER-03."""
    plan = planned(gateway(cert_mode="existingSecret", wildcard_secret="ours"))
    assert plan.certificates == ()
    assert {each.certificate for each in plan.listeners if each.protocol == "HTTPS"} == {"ours"}


SHARED = gateway(
    cert_mode="existingSecret", wildcard_secret="ours", wildcard_secret_namespace="vault", passthrough=("api",)
)


def test_the_secret_may_be_in_another_namespace() -> None:
    plan = planned(SHARED, inheriting=inheriting("alice.foo.example.com"))
    https = [each for each in plan.listeners if each.protocol == "HTTPS"]
    assert {(each.certificate_namespace, each.certificate) for each in https} == {("vault", "ours")}
    references = [each["tls"]["certificateRefs"] for each in existing_gateway(SHARED, plan)["spec"]["listeners"]
                  if each["protocol"] == "HTTPS"]  # fmt: skip
    assert {each["namespace"] for found in references for each in found} == {"vault"}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(gateway(), id="HTTP-01"),
        pytest.param(gateway(cert_mode="dns01"), id="DNS-01"),
        pytest.param(replace(SHARED, wildcard_secret_namespace="", wildcard_secret="own"), id="a Secret of its own"),
        pytest.param(SHARED, id="the same one, before its revocation"),
    ],
)
def test_without_consent_certificates_stay_as_they_are(before: TenantGateway) -> None:
    """Passthrough listeners, which need none, change nevertheless, as do the claims of routes."""
    app = route("tenant-foo", "app", "app.foo.example.com")
    served = planned(before, app)
    plan = planned(SHARED, app, current=existing_gateway(before, served), permitted=False)
    assert [each for each in plan.listeners if each.protocol == "HTTPS"] == [
        each for each in served.listeners if each.protocol == "HTTPS"
    ]
    assert [each.name for each in plan.listeners if each.protocol == "TLS"] == ["tls-api"]
    assert plan.ownership.owners == {"app.foo.example.com": app.id}
    assert planned(SHARED, app, current=existing_gateway(SHARED, plan), permitted=False) == plan


def test_without_consent_a_hostname_that_nobody_claims_any_more_goes() -> None:
    app, old = route("tenant-foo", "app", "app.foo.example.com"), route("tenant-foo", "old", "old.foo.example.com")
    current = existing_gateway(gateway(), planned(gateway(), app, old))
    assert hostnames(planned(SHARED, app, current=current, permitted=False)) == ["app.foo.example.com"]
    assert hostnames(planned(replace(SHARED, apex="bar.example.com"), app, current=current, permitted=False)) == []


def test_without_consent_a_new_gateway_has_only_http_and_passthrough() -> None:
    assert [each.name for each in planned(SHARED, permitted=False).listeners] == ["http", "tls-api"]


def test_existing_secret_without_a_secret_has_only_http_and_passthrough() -> None:
    tenantgateway = gateway(cert_mode="existingSecret", passthrough=("api",))
    plan = planned(tenantgateway, inheriting=inheriting("alice.foo.example.com"))
    assert [each.name for each in plan.listeners] == ["http", "tls-api"]
    assert omitted(plan) == {"foo.example.com": "SecretMissing"}


@pytest.mark.parametrize("tenantgateway", WILDCARD_MODES)
@pytest.mark.parametrize(
    "children",
    [
        pytest.param((InheritingNamespace("tenant-x", "foo.example.com"),), id="R-178: the same host as the owner"),
        pytest.param((InheritingNamespace("cozy-dashboard", ""),), id="a system namespace without a host"),
        pytest.param((), id="none"),
    ],
)
def test_inheriting_namespaces_without_a_host_of_their_own_add_nothing(
    tenantgateway: TenantGateway, children: tuple[InheritingNamespace, ...]
) -> None:
    assert planned(tenantgateway, inheriting=children) == planned(tenantgateway)


@pytest.mark.parametrize("tenantgateway", WILDCARD_MODES)
def test_two_inheriting_namespaces_with_one_host_add_it_once(tenantgateway: TenantGateway) -> None:
    """R-178."""
    one, other = (
        InheritingNamespace("tenant-a", "a.foo.example.com"),
        InheritingNamespace("tenant-b", "A.foo.example.com"),
    )
    assert planned(tenantgateway, inheriting=(one, other)) == planned(tenantgateway, inheriting=(one,))


@pytest.mark.parametrize("tenantgateway", WILDCARD_MODES)
@pytest.mark.parametrize(
    ("host", "reason"),
    [
        pytest.param("customer1.example", "NoMatchingListenerHostname", id="PEER-22: another domain"),
        pytest.param("evilfoo.example.com", "NoMatchingListenerHostname", id="a domain with the same suffix"),
        pytest.param("bad_host.foo.example.com", "UnsupportedValue", id="not a domain"),
        pytest.param("-a.foo.example.com", "UnsupportedValue", id="a label that begins with a dash"),
    ],
)
def test_an_inheriting_namespace_with_an_invalid_host_is_omitted(
    tenantgateway: TenantGateway, host: str, reason: str
) -> None:
    """PEER-22, FACT-2, GW-18."""
    good = inheriting("alice.foo.example.com")
    plan = planned(tenantgateway, inheriting=(InheritingNamespace("tenant-bad", host), *good))
    assert (plan.listeners, plan.certificates) == (
        planned(tenantgateway, inheriting=good).listeners,
        planned(tenantgateway, inheriting=good).certificates,
    )
    assert [(each.hostname, each.reason, each.namespace) for each in plan.omitted] == [(host, reason, "tenant-bad")]
    assert host in plan.omitted[0].message


def test_an_upper_case_host_is_served_in_lower_case() -> None:
    """FACT-5."""
    plan = planned(
        gateway(cert_mode="dns01", apex="Foo.Example.com"),
        inheriting=(InheritingNamespace("a", "Alice.FOO.example.com"),),
    )
    assert hostnames(plan) == ["*.foo.example.com", "foo.example.com", "*.alice.foo.example.com"]
    assert plan.omitted == ()


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
@pytest.mark.parametrize(
    ("hostname", "reason"),
    [
        pytest.param("app.customer1.example", "NoMatchingListenerHostname", id="FACT-2: outside the apex"),
        pytest.param("app.evilfoo.example.com", "NoMatchingListenerHostname", id="a domain with the same suffix"),
        pytest.param("example.com", "NoMatchingListenerHostname", id="above the apex"),
        pytest.param("bad_name.foo.example.com", "UnsupportedValue", id="an underscore"),
        pytest.param("-a.foo.example.com", "UnsupportedValue", id="a label that begins with a dash"),
        pytest.param(f"{'a' * 64}.foo.example.com", "UnsupportedValue", id="a label of 64 characters"),
        pytest.param(f"{'a.' * 130}foo.example.com", "UnsupportedValue", id="more than 253 characters"),
        pytest.param("*", "UnsupportedValue", id="the wildcard of all domains"),
        pytest.param("a.*.foo.example.com", "UnsupportedValue", id="a wildcard in the middle"),
    ],
)
def test_an_invalid_hostname_is_omitted_and_the_others_stay(
    tenantgateway: TenantGateway, hostname: str, reason: str
) -> None:
    """FACT-2, GW-5, VAP-6: even on the same route."""
    good = route("tenant-b", "good", "a.foo.example.com")
    mixed = route("tenant-a", "mixed", hostname, HARBOR)
    plan, without = (
        planned(tenantgateway, good, mixed),
        planned(tenantgateway, good, route("tenant-a", "mixed", HARBOR)),
    )
    assert (plan.listeners, plan.certificates, plan.ownership) == (
        without.listeners,
        without.certificates,
        without.ownership,
    )
    assert [(each.hostname, each.reason, each.route) for each in plan.omitted] == [(hostname, reason, mixed.id)]
    assert hostname in plan.omitted[0].message


def test_http01_rejects_wildcards() -> None:
    """R-117, FACT-4, GW-5."""
    wildcard = route("cozy-a", "all", "*.foo.example.com")
    plan = planned(gateway(), wildcard, route("tenant-foo", "app", HARBOR))
    assert hostnames(plan) == [HARBOR]
    assert omitted(plan) == {"*.foo.example.com": "UnsupportedValue"}
    assert plan.ownership.conflicts == {}


@pytest.mark.parametrize("tenantgateway", WILDCARD_MODES)
def test_wildcard_modes_let_routes_claim_wildcards(tenantgateway: TenantGateway) -> None:
    """R-209, PEER-07, GW-7, GW-9."""
    lost = route("tenant-foo", "app", HARBOR)
    plan = planned(tenantgateway, route("cozy-a", "all", "*.foo.example.com"), lost)
    assert list(plan.ownership.conflicts) == [lost.id]
    assert plan.omitted == ()


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_conflicts_are_detected_in_every_mode(tenantgateway: TenantGateway) -> None:
    """R-205, R-209, PEER-07, GW-6, GW-7: the loser has no listener and no Certificate."""
    lost = route("tenant-foo", "shadow", HARBOR)
    plan = planned(tenantgateway, lost, route("cozy-harbor", "harbor", HARBOR))
    assert plan.ownership.owners == {HARBOR: RouteId("cozy-harbor", "harbor", "HTTPRoute")}
    assert list(plan.ownership.conflicts) == [lost.id]
    assert hostnames(plan).count(HARBOR) == (1 if tenantgateway.cert_mode == "http01" else 0)


def test_an_invalid_apex_leaves_only_the_http_listener() -> None:
    plan = planned(gateway(apex="bad_apex", passthrough=("api",)), route("a", "b", "x.bad_apex"))
    assert [each.name for each in plan.listeners] == ["http"]
    assert plan.certificates == ()
    assert "bad_apex" in omitted(plan)


@pytest.mark.parametrize(
    ("namespace", "parents", "plaintext"),
    [
        pytest.param("tenant-foo", (ParentRef(),), True, id="owner, no section and no port"),
        pytest.param("tenant-foo", (ParentRef(port=443),), False, id="owner, port 443"),
        pytest.param("tenant-foo", (ParentRef(section="https"),), False, id="owner, section https"),
        pytest.param("tenant-foo", (ParentRef(section="http"),), False, id="owner, section http on purpose"),
        pytest.param("tenant-foo-bar", (ParentRef(),), False, id="a namespace that port 80 does not admit"),
        pytest.param("cozy-cert-manager", (ParentRef(),), True, id="of cert-manager's namespace"),
    ],
)
def test_routes_that_port_80_serves_without_tls_are_listed(
    namespace: str, parents: tuple[ParentRef, ...], plaintext: bool
) -> None:
    """GW-12."""
    app = route(namespace, "app", HARBOR, parents=parents)
    assert planned(gateway(), app).plaintext == ((app.id,) if plaintext else ())


def test_a_new_route_alone_adds_a_listener_and_a_certificate() -> None:
    """R-156, R-157: other listeners do not change, and without a route there is none."""
    before = planned(gateway(), route("tenant-foo", "a", "a.foo.example.com"))
    after = planned(gateway(), route("tenant-foo", "a", "a.foo.example.com"), route("tenant-foo", "b", HARBOR))
    assert set(after.listeners) > set(before.listeners)
    assert set(after.certificates) > set(before.certificates)
    assert [each.name for each in planned(gateway()).listeners] == ["http"]


@pytest.mark.parametrize("tenantgateway", WILDCARD_MODES)
def test_a_removed_child_loses_its_listener_and_dns_names(tenantgateway: TenantGateway) -> None:
    """R-175, R-177, R-179: also a child that gets its own gateway, and although the existing Gateway serves it."""
    before = planned(tenantgateway, inheriting=inheriting("alice.foo.example.com", "bob.foo.example.com"))
    after = planned(
        tenantgateway, inheriting=inheriting("bob.foo.example.com"), current=existing_gateway(tenantgateway, before)
    )
    assert after == planned(tenantgateway, inheriting=inheriting("bob.foo.example.com"))
    assert "*.alice.foo.example.com" not in hostnames(after)


def test_one_hostname_on_two_gateways_is_no_conflict() -> None:
    """R-149, R-210: a plan covers only the routes of its own gateway."""
    root, alice = gateway("tenant-root", apex="example.com"), gateway("tenant-alice")
    for tenantgateway, namespace in ((root, "cozy-a"), (alice, "tenant-alice")):
        plan = planned(tenantgateway, route(namespace, "app", HARBOR))
        assert plan.ownership.conflicts == {}
        assert hostnames(plan) == [HARBOR]


def test_a_plan_after_a_change_of_mode_is_that_of_the_new_mode() -> None:
    """R-154, R-158."""
    http01, dns01 = gateway(), gateway(cert_mode="dns01")
    app = route("tenant-foo", "app", HARBOR)
    there = existing_gateway(http01, planned(http01, app))
    assert planned(dns01, app, current=there) == planned(dns01, app)
    back = existing_gateway(dns01, planned(dns01, app))
    assert planned(http01, app, current=back) == planned(http01, app)
    assert [each.name for each in planned(dns01, app).certificates] == ["cozystack-gateway-tls"]

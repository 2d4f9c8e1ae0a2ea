"""Changes of TenantGateways: certificate modes, child namespaces, attached namespaces and deletion."""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, Gateways

HARBOR = "cozystack-harbor-760d5a8a-tls"
APEX = "foo.example.com"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.create_owner()


def test_switching_the_certificate_mode_leaves_nothing_behind(gateways: Gateways, foo: str) -> None:
    """From HTTP-01 to DNS-01, to an existing Secret and back.

    R-114, R-116, R-117, R-154, R-158, R-159, R-172, R-182, R-184.
    """
    child = gateways.create_namespace("kid", labels={LABEL: foo, HOST_LABEL: f"kid.{APEX}"})
    gateways.create_tenantgateway(foo, APEX)
    gateways.create_route(child, "harbor", f"harbor.kid.{APEX}", to=foo)
    gateways.wait_until(
        "the HTTP-01 listener exists", lambda: gateways.listener_hostnames(foo) == [f"harbor.kid.{APEX}"]
    )
    gateways.wait_until("its certificate exists", lambda: len(gateways.names("certificates", foo)) == 1)
    [certificate] = gateways.names("certificates", foo)
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.wait_until(
        "there is only the wildcard certificate",
        lambda: gateways.names("certificates", foo) == ["cozystack-gateway-tls"],
    )
    assert gateways.listener_hostnames(foo) == sorted([APEX, f"*.{APEX}", f"*.kid.{APEX}"])
    assert gateways.get("certificates", foo, "cozystack-gateway-tls")["spec"]["dnsNames"] == [
        APEX,
        f"*.{APEX}",
        f"kid.{APEX}",
        f"*.kid.{APEX}",
    ]
    assert "cloudflare" in gateways.get("issuers", foo, "cozystack-gateway")["spec"]["acme"]["solvers"][0]["dns01"]
    existing_secret = {"certMode": "existingSecret", "dns01": None, "wildcardSecretRef": {"name": "existing-secret"}}
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": existing_secret})
    gateways.wait_until("there is no issuer", lambda: gateways.names("issuers", foo) == [])
    gateways.wait_until("there is no certificate", lambda: gateways.names("certificates", foo) == [])
    assert "cozystack-http-redirect" in gateways.names("httproutes", foo)
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": {"certMode": "http01", "wildcardSecretRef": None}})
    gateways.wait_until(
        "the HTTP-01 certificate exists again", lambda: gateways.names("certificates", foo) == [certificate]
    )
    solver = gateways.get("issuers", foo, "cozystack-gateway")["spec"]["acme"]["solvers"][0]
    assert solver.keys() == {"http01"}


def test_a_hostname_keeps_the_secret_of_before_until_its_own_certificate_is_issued(
    gateways: Gateways, foo: str
) -> None:
    """From an existing Secret to HTTP-01: a listener whose Secret is still to be issued would serve nothing."""
    own = {"certMode": "existingSecret", "wildcardSecretRef": {"name": "bought"}}
    gateways.create_tenantgateway(foo, APEX, **own)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.wait_until("the wildcard is served", lambda: gateways.has_listeners(foo, f"*.{APEX}"))
    gateways.mark_gateway_programmed(foo)
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": {"certMode": "http01", "wildcardSecretRef": None}})
    gateways.wait_until("the certificate is ordered", lambda: len(gateways.names("certificates", foo)) == 1)
    (certificate,) = gateways.names("certificates", foo)

    def served() -> dict[str, str]:
        listeners = gateways.get("gateways", foo)["spec"]["listeners"]
        return {each["hostname"]: each["tls"]["certificateRefs"][0]["name"] for each in listeners if "tls" in each}

    assert served() == {f"harbor.{APEX}": "bought"}
    gateways.wait_until(
        "it is told what it waits for",
        lambda: gateways.conditions(foo).get("CertificatesReady", {}).get("reason") == "CertificatesPending",
    )
    gateways.mark_certificates_ready(foo, certificate)
    gateways.wait_until("its own Secret is used", lambda: served() == {f"harbor.{APEX}": certificate})
    gateways.wait_until("nothing is pending", lambda: "CertificatesReady" not in gateways.conditions(foo))


def test_child_namespaces_join_and_leave_by_their_labels(gateways: Gateways, foo: str) -> None:
    """The labels of a Namespace say which Gateway serves it and under which domain.

    R-104, R-105, R-115, R-174, R-175, R-176, R-177, R-178, R-179, R-181, PEER-12, PEER-22, GW-1, GW-18.
    """
    gateways.create_tenantgateway(foo, APEX, **DNS01)
    gateways.wait_until("the wildcard listeners exist", lambda: gateways.listener_hostnames(foo) == [f"*.{APEX}", APEX])
    alice = gateways.create_namespace("alice")
    gateways.patch_labels(alice, {LABEL: foo, HOST_LABEL: f"alice.{APEX}"})
    gateways.wait_until("the listener of the child exists", lambda: gateways.has_listeners(foo, f"*.alice.{APEX}"))
    bob = gateways.create_namespace("bob", labels={LABEL: foo, HOST_LABEL: f"bob.alice.{APEX}"})
    gateways.create_namespace("foreign", labels={LABEL: foo, HOST_LABEL: "customer1.example"})
    gateways.wait_until(
        "the listener of the grandchild exists", lambda: gateways.has_listeners(foo, f"*.bob.alice.{APEX}")
    )
    gateways.wait_until(
        "the namespace with a foreign host is reported", lambda: "HostnamesLeftOut" in gateways.conditions(foo)
    )
    assert '"customer1.example"' in gateways.conditions(foo)["HostnamesLeftOut"]["message"]
    certificate = partial(gateways.get, "certificates", foo, "cozystack-gateway-tls")
    assert len(certificate()["spec"]["dnsNames"]) == 6
    gateways.patch_labels(alice, {LABEL: alice})
    gateways.wait_until(
        "the child with a Gateway of its own has no listener",
        lambda: not gateways.has_listeners(foo, f"*.alice.{APEX}"),
    )
    gateways.patch_labels(bob, {LABEL: None})
    gateways.wait_until(
        "the certificate has only the names of the owner", lambda: len(certificate()["spec"]["dnsNames"]) == 2
    )


def test_namespaces_are_attached_and_detached(gateways: Gateways, foo: str) -> None:
    """`attachedNamespaces` attaches Namespaces without an owner, also ones that are created later.

    R-188 to R-196, R-216, PEER-05, GW-13, GW-14.
    """
    harbor, monitoring, alice = (
        gateways.create_namespace(name) for name in ("cozy-harbor", "cozy-monitoring", "tenant-x")
    )
    gateways.patch_labels(alice, {LABEL: "tenant-root"})
    later = f"{harbor}-later"
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor, monitoring, alice, later])
    gateways.wait_until(
        "both namespaces are attached",
        lambda: gateways.attachment(harbor) == gateways.attachment(monitoring) == (foo, foo),
    )
    assert gateways.attachment(alice) == ("tenant-root", None)
    gateways.wait_until(
        "the namespace of another owner is reported", lambda: "AttachedElsewhere" in gateways.conditions(foo)
    )
    gateways.wait_until("the Gateway is not accepted yet", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted")
    gateways.create_named_namespace(later)
    gateways.wait_until(
        "a namespace that is created later is attached", lambda: gateways.attachment(later) == (foo, foo)
    )
    second = gateways.create_owner("tenant-second", "second.example")
    gateways.create_tenantgateway(second, "second.example", attachedNamespaces=[harbor])
    gateways.wait_until(
        "the condition of the second TenantGateway reports the conflict",
        lambda: "AttachedElsewhere" in gateways.conditions(second),
    )
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": {"attachedNamespaces": [monitoring]}})
    gateways.wait_until(
        "the second TenantGateway has the namespace", lambda: gateways.attachment(harbor) == (second, second)
    )
    gateways.wait_until("the namespace is detached", lambda: gateways.attachment(later) == (None, None))
    assert gateways.attachment(monitoring) == (foo, foo)
    for namespace in (foo, second):
        gateways.delete("tenantgateways", namespace)
    gateways.wait_until(
        "both namespaces are detached",
        lambda: gateways.attachment(harbor) == gateways.attachment(monitoring) == (None, None),
    )
    assert gateways.attachment(alice) == ("tenant-root", None)


@pytest.mark.controller_manager
def test_a_deleted_tenantgateway_leaves_nothing_behind(gateways: Gateways, foo: str) -> None:
    """Objects and labels are removed, and routes are told that they are orphans (R-098, R-347, GW-14)."""
    harbor = gateways.create_namespace("cozy-harbor")
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor])
    gateways.create_route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.create_route(foo, "loser", f"harbor.{APEX}", to=foo, port=443)
    gateways.wait_until("the losing route has the conflict in its status", lambda: gateways.has_conflict(foo, "loser"))
    gateways.wait_until("the certificate exists", lambda: gateways.names("certificates", foo) == [HARBOR])
    gateways.delete("tenantgateways", foo)
    for plural in ("gateways", "issuers", "certificates"):
        gateways.wait_until(f"the {plural} are deleted", partial(_is_empty, gateways, plural, foo))
    gateways.wait_until("the redirect is deleted", lambda: gateways.names("httproutes", foo) == ["loser"])
    gateways.wait_until(
        "the route is told that its Gateway is deleted", lambda: gateways.rejection_reason(foo, "loser") == "Orphaned"
    )
    gateways.wait_until("the label is removed", lambda: gateways.attachment(harbor) == (None, None))


def _is_empty(gateways: Gateways, plural: str, namespace: str) -> bool:
    return gateways.names(plural, namespace) == []

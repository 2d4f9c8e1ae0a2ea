"""TenantGateways that change on a real host: modes, children, attached namespaces, and their end."""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, Gateways

HARBOR = "cozystack-harbor-760d5a8a-tls"
APEX = "foo.example.com"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.create_namespace("m-foo")


def test_switching_the_certificate_mode_leaves_nothing_behind(gateways: Gateways, foo: str) -> None:
    """R-114, R-116, R-117, R-154, R-158, R-159, R-172, R-182, R-184."""
    kid = gateways.create_namespace("kid", labels={LABEL: foo, HOST_LABEL: f"kid.{APEX}"})
    gateways.create_tenantgateway(foo, APEX)
    gateways.create_route(kid, "harbor", f"harbor.kid.{APEX}", to=foo)
    gateways.wait_until("HTTP-01", lambda: gateways.listener_hostnames(foo) == [f"harbor.kid.{APEX}"])
    [certificate] = gateways.names("certificates", foo)
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.wait_until("DNS-01", lambda: gateways.names("certificates", foo) == ["cozystack-gateway-tls"])
    assert gateways.listener_hostnames(foo) == sorted([APEX, f"*.{APEX}", f"*.kid.{APEX}"])
    assert gateways.get("certificates", foo, "cozystack-gateway-tls")["spec"]["dnsNames"] == [
        APEX,
        f"*.{APEX}",
        f"kid.{APEX}",
        f"*.kid.{APEX}",
    ]
    assert "cloudflare" in gateways.get("issuers", foo, "cozystack-gateway")["spec"]["acme"]["solvers"][0]["dns01"]
    bought = {"certMode": "existingSecret", "dns01": None, "wildcardSecretRef": {"name": "bought"}}
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": bought})
    gateways.wait_until("no issuer", lambda: gateways.names("issuers", foo) == [])
    gateways.wait_until("no certificate", lambda: gateways.names("certificates", foo) == [])
    assert "cozystack-http-redirect" in gateways.names("httproutes", foo)
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": {"certMode": "http01", "wildcardSecretRef": None}})
    gateways.wait_until("back again", lambda: gateways.names("certificates", foo) == [certificate])
    solver = gateways.get("issuers", foo, "cozystack-gateway")["spec"]["acme"]["solvers"][0]
    assert solver.keys() == {"http01"}


def test_child_namespaces_join_and_leave_by_their_labels(gateways: Gateways, foo: str) -> None:
    """R-104, R-105, R-115, R-174, R-175, R-176, R-177, R-178, R-179, R-181, PEER-12, PEER-22, GW-1, GW-18."""
    gateways.create_tenantgateway(foo, APEX, **DNS01)
    gateways.wait_until("it is there", lambda: gateways.listener_hostnames(foo) == [f"*.{APEX}", APEX])
    alice = gateways.create_namespace("alice")
    gateways.patch_labels(alice, {LABEL: foo, HOST_LABEL: f"alice.{APEX}"})
    gateways.wait_until("the child's listener", lambda: gateways.has_listeners(foo, f"*.alice.{APEX}"))
    bob = gateways.create_namespace("bob", labels={LABEL: foo, HOST_LABEL: f"bob.alice.{APEX}"})
    gateways.create_namespace("stranger", labels={LABEL: foo, HOST_LABEL: "customer1.example"})
    gateways.wait_until("the grandchild's", lambda: gateways.has_listeners(foo, f"*.bob.alice.{APEX}"))
    gateways.wait_until("the stranger is named", lambda: "HostnamesLeftOut" in gateways.conditions(foo))
    assert '"customer1.example"' in gateways.conditions(foo)["HostnamesLeftOut"]["message"]
    certificate = partial(gateways.get, "certificates", foo, "cozystack-gateway-tls")
    assert len(certificate()["spec"]["dnsNames"]) == 6
    gateways.patch_labels(alice, {LABEL: alice})
    gateways.wait_until("an owner is no heir", lambda: not gateways.has_listeners(foo, f"*.alice.{APEX}"))
    gateways.patch_labels(bob, {LABEL: None})
    gateways.wait_until("nor who left", lambda: len(certificate()["spec"]["dnsNames"]) == 2)


def test_namespaces_are_attached_and_detached(gateways: Gateways, foo: str) -> None:
    """R-188 to R-196, R-216, PEER-05, GW-13, GW-14."""
    harbor, monitoring, alice = (
        gateways.create_namespace(name) for name in ("cozy-harbor", "cozy-monitoring", "tenant-x")
    )
    gateways.patch_labels(alice, {LABEL: "tenant-root"})
    later = f"{harbor}-later"
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor, monitoring, alice, later])
    gateways.wait_until(
        "both are attached", lambda: gateways.attachment(harbor) == gateways.attachment(monitoring) == (foo, foo)
    )
    assert gateways.attachment(alice) == ("tenant-root", None)
    gateways.wait_until("the other owner is named", lambda: "AttachedElsewhere" in gateways.conditions(foo))
    assert gateways.ready_reason(foo) == "GatewayNotAccepted"
    gateways.create_named_namespace(later)
    gateways.wait_until("a late one as well", lambda: gateways.attachment(later) == (foo, foo))
    rival = gateways.create_namespace("z-rival")
    gateways.create_tenantgateway(rival, "rival.example", attachedNamespaces=[harbor])
    gateways.wait_until("the rival is told", lambda: "AttachedElsewhere" in gateways.conditions(rival))
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": {"attachedNamespaces": [monitoring]}})
    gateways.wait_until("the rival has it", lambda: gateways.attachment(harbor) == (rival, rival))
    gateways.wait_until("nobody has it", lambda: gateways.attachment(later) == (None, None))
    assert gateways.attachment(monitoring) == (foo, foo)
    for namespace in (foo, rival):
        gateways.delete("tenantgateways", namespace)
    gateways.wait_until(
        "all are let go", lambda: gateways.attachment(harbor) == gateways.attachment(monitoring) == (None, None)
    )
    assert gateways.attachment(alice) == ("tenant-root", None)


@pytest.mark.controller_manager
def test_a_deleted_tenantgateway_leaves_nothing_behind(gateways: Gateways, foo: str) -> None:
    """R-098, GW-14."""
    harbor = gateways.create_namespace("cozy-harbor")
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor])
    gateways.create_route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.create_route(foo, "loser", f"harbor.{APEX}", to=foo, port=443)
    gateways.wait_until("the loser is told", lambda: gateways.conflict_message(foo, "loser"))
    gateways.wait_until("the certificate", lambda: gateways.names("certificates", foo) == [HARBOR])
    gateways.delete("tenantgateways", foo)
    for plural in ("gateways", "issuers", "certificates"):
        gateways.wait_until(f"no {plural}", partial(_has_none, gateways, plural, foo))
    gateways.wait_until("no redirect", lambda: gateways.names("httproutes", foo) == ["loser"])
    gateways.wait_until("nothing is said of it", lambda: gateways.parent_statuses(foo, "loser") == [])
    gateways.wait_until("the label is gone", lambda: gateways.attachment(harbor) == (None, None))


def _has_none(gateways: Gateways, plural: str, namespace: str) -> bool:
    return gateways.names(plural, namespace) == []

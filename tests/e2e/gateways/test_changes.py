"""TenantGateways that change on a real host: modes, children, attached namespaces, and their end."""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, Gateways

HARBOR = "cozystack-harbor-760d5a8a-tls"
APEX = "foo.example.com"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.namespace("m-foo")


def test_modes_are_switched_and_leave_nothing(gateways: Gateways, foo: str) -> None:
    """R-114, R-116, R-117, R-154, R-158, R-159, R-172, R-182, R-184."""
    kid = gateways.namespace("kid", labels={LABEL: foo, HOST_LABEL: f"kid.{APEX}"})
    gateways.ask(foo, APEX)
    gateways.route(kid, "harbor", f"harbor.kid.{APEX}", to=foo)
    gateways.until("HTTP-01", lambda: gateways.listeners(foo) == [f"harbor.kid.{APEX}"])
    [certificate] = gateways.names("certificates", foo)
    gateways.edit("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.until("DNS-01", lambda: gateways.names("certificates", foo) == ["cozystack-gateway-tls"])
    assert gateways.listeners(foo) == sorted([APEX, f"*.{APEX}", f"*.kid.{APEX}"])
    assert gateways.get("certificates", foo, "cozystack-gateway-tls")["spec"]["dnsNames"] == [
        APEX,
        f"*.{APEX}",
        f"kid.{APEX}",
        f"*.kid.{APEX}",
    ]
    assert "cloudflare" in gateways.get("issuers", foo, "cozystack-gateway")["spec"]["acme"]["solvers"][0]["dns01"]
    bought = {"certMode": "existingSecret", "dns01": None, "wildcardSecretRef": {"name": "bought"}}
    gateways.edit("tenantgateways", foo, "cozystack", {"spec": bought})
    gateways.until("no issuer", lambda: gateways.names("issuers", foo) == [])
    gateways.until("no certificate", lambda: gateways.names("certificates", foo) == [])
    assert "cozystack-http-redirect" in gateways.names("httproutes", foo)
    gateways.edit("tenantgateways", foo, "cozystack", {"spec": {"certMode": "http01", "wildcardSecretRef": None}})
    gateways.until("back again", lambda: gateways.names("certificates", foo) == [certificate])
    solver = gateways.get("issuers", foo, "cozystack-gateway")["spec"]["acme"]["solvers"][0]
    assert solver.keys() == {"http01"}


def test_children_come_and_go_by_their_labels(gateways: Gateways, foo: str) -> None:
    """R-104, R-105, R-115, R-174, R-175, R-176, R-177, R-178, R-179, R-181, PEER-12, PEER-22, GW-1, GW-18."""
    gateways.ask(foo, APEX, **DNS01)
    gateways.until("it is there", lambda: gateways.listeners(foo) == [f"*.{APEX}", APEX])
    alice = gateways.namespace("alice")
    gateways.label(alice, {LABEL: foo, HOST_LABEL: f"alice.{APEX}"})
    gateways.until("the child's listener", lambda: gateways.serves(foo, f"*.alice.{APEX}"))
    bob = gateways.namespace("bob", labels={LABEL: foo, HOST_LABEL: f"bob.alice.{APEX}"})
    gateways.namespace("stranger", labels={LABEL: foo, HOST_LABEL: "customer1.example"})
    gateways.until("the grandchild's", lambda: gateways.serves(foo, f"*.bob.alice.{APEX}"))
    gateways.until("the stranger is named", lambda: "HostnamesLeftOut" in gateways.conditions(foo))
    assert '"customer1.example"' in gateways.conditions(foo)["HostnamesLeftOut"]["message"]
    certificate = partial(gateways.get, "certificates", foo, "cozystack-gateway-tls")
    assert len(certificate()["spec"]["dnsNames"]) == 6
    gateways.label(alice, {LABEL: alice})
    gateways.until("an owner is no heir", lambda: not gateways.serves(foo, f"*.alice.{APEX}"))
    gateways.label(bob, {LABEL: None})
    gateways.until("nor who left", lambda: len(certificate()["spec"]["dnsNames"]) == 2)


def test_namespaces_are_attached_and_let_go(gateways: Gateways, foo: str) -> None:
    """R-188 to R-196, R-216, PEER-05, GW-13, GW-14."""
    harbor, monitoring, alice = (gateways.namespace(name) for name in ("cozy-harbor", "cozy-monitoring", "tenant-x"))
    gateways.label(alice, {LABEL: "tenant-root"})
    later = f"{harbor}-later"
    gateways.ask(foo, APEX, attachedNamespaces=[harbor, monitoring, alice, later])
    gateways.until("both are attached", lambda: gateways.mark(harbor) == gateways.mark(monitoring) == (foo, foo))
    assert gateways.mark(alice) == ("tenant-root", None)
    gateways.until("the other owner is named", lambda: "AttachedElsewhere" in gateways.conditions(foo))
    assert gateways.reason(foo) == "GatewayNotAccepted"
    gateways.make_namespace(later)
    gateways.until("a late one as well", lambda: gateways.mark(later) == (foo, foo))
    rival = gateways.namespace("z-rival")
    gateways.ask(rival, "rival.example", attachedNamespaces=[harbor])
    gateways.until("the rival is told", lambda: "AttachedElsewhere" in gateways.conditions(rival))
    gateways.edit("tenantgateways", foo, "cozystack", {"spec": {"attachedNamespaces": [monitoring]}})
    gateways.until("the rival has it", lambda: gateways.mark(harbor) == (rival, rival))
    gateways.until("nobody has it", lambda: gateways.mark(later) == (None, None))
    assert gateways.mark(monitoring) == (foo, foo)
    for namespace in (foo, rival):
        gateways.delete("tenantgateways", namespace)
    gateways.until("all are let go", lambda: gateways.mark(harbor) == gateways.mark(monitoring) == (None, None))
    assert gateways.mark(alice) == ("tenant-root", None)


@pytest.mark.controller_manager
def test_a_tenantgateway_that_goes_leaves_nothing(gateways: Gateways, foo: str) -> None:
    """R-098, GW-14."""
    harbor = gateways.namespace("cozy-harbor")
    gateways.ask(foo, APEX, attachedNamespaces=[harbor])
    gateways.route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.route(foo, "loser", f"harbor.{APEX}", to=foo, port=443)
    gateways.until("the loser is told", lambda: gateways.lost(foo, "loser"))
    gateways.until("the certificate", lambda: gateways.names("certificates", foo) == [HARBOR])
    gateways.delete("tenantgateways", foo)
    for plural in ("gateways", "issuers", "certificates"):
        gateways.until(f"no {plural}", partial(_has_none, gateways, plural, foo))
    gateways.until("no redirect", lambda: gateways.names("httproutes", foo) == ["loser"])
    gateways.until("nothing is said of it", lambda: gateways.verdicts(foo, "loser") == [])
    gateways.until("the label is gone", lambda: gateways.mark(harbor) == (None, None))


def _has_none(gateways: Gateways, plural: str, namespace: str) -> bool:
    return gateways.names(plural, namespace) == []

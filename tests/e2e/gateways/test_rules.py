"""TenantGateways: existing objects, contested hostnames, hostnames left out, and status."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.gateways import ANNOTATION, CILIUM, DNS01, GATEWAY_API, LABEL, OURS, Gateways, Object, path

HARBOR = "cozystack-harbor-760d5a8a-tls"
APEX = "foo.example.com"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    """A namespace whose name sorts after the prefix a- and before the prefix z-."""
    return gateways.create_owner()


FOREIGN = [
    pytest.param(
        "gateways",
        "cozystack",
        {"gatewayClassName": "mine", "listeners": [{"name": "x", "port": 80, "protocol": "HTTP"}]},
        {},
        id="R-211",
    ),
    pytest.param("httproutes", "cozystack-http-redirect", {"hostnames": ["a.example"]}, {}, id="R-212"),
    pytest.param("issuers", "cozystack-gateway", {"selfSigned": {}}, {}, id="R-213"),
    pytest.param(
        "certificates",
        "cozystack-gateway-tls",
        {"secretName": "x", "dnsNames": ["x.example"], "issuerRef": {"name": "mine"}},
        DNS01,
        id="R-214",
    ),
    pytest.param(
        "certificates",
        HARBOR,
        {"secretName": "x", "dnsNames": ["x.example"], "issuerRef": {"name": "mine"}},
        {},
        id="R-215",
    ),
]


@pytest.mark.parametrize(("plural", "name", "spec", "mode"), FOREIGN)
def test_existing_objects_are_not_adopted(
    gateways: Gateways, foo: str, plural: str, name: str, spec: Object, mode: Object
) -> None:
    """A foreign object is reported; it is used once it has our ownerReference or has been deleted.

    R-211 to R-215, R-217, R-218, R-219, R-220, R-222, R-224, R-225, R-226.
    """
    gateways.create(plural, foo, name, spec)
    foreign = gateways.get(plural, foo, name)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    owner = gateways.create_tenantgateway(foo, APEX, **mode)
    gateways.wait_until("the foreign object is reported", lambda: gateways.ready_reason(foo) == "ReconcileError")
    kind = foreign["kind"].lower()
    message = f"{kind} {foo}/{name} exists but is not owned by TenantGateway {foo}/cozystack: rename or delete it, or "
    assert message in gateways.conditions(foo)["Ready"]["message"]
    gateways.wait_until("the issuer exists", lambda: "cozystack-gateway" in gateways.names("issuers", foo))
    gateways.wait_until("the redirect exists", lambda: "cozystack-http-redirect" in gateways.names("httproutes", foo))
    assert gateways.get(plural, foo, name) == foreign

    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    gateways.patch(plural, foo, name, {"metadata": {"ownerReferences": [reference]}})
    gateways.wait_until("the object is used", lambda: gateways.get(plural, foo, name)["spec"] != foreign["spec"])
    gateways.wait_until("the error is resolved", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted")
    uid = foreign["metadata"]["uid"]
    gateways.delete(plural, foo, name)
    gateways.wait_until("the object is created again", lambda: name in gateways.names(plural, foo))
    assert gateways.get(plural, foo, name)["metadata"]["uid"] != uid


@pytest.mark.parametrize("mode", [pytest.param({}, id="http01"), pytest.param(DNS01, id="dns01")])
def test_the_order_of_namespaces_decides_a_contested_hostname(gateways: Gateways, foo: str, mode: Object) -> None:
    """Admission allows conflicting routes within a domain; the controller gives the hostname to one namespace.

    `cozy-*` namespaces come first, then the others by name.
    R-199, R-200, R-202 to R-209, R-268, GW-6, GW-7, GW-16.
    """
    early, cozy = (gateways.create_namespace(name, labels={LABEL: foo}) for name in ("a-team", "cozy-z"))
    gateways.create_tenantgateway(foo, APEX, **mode)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.create_route(foo, "canary", f"harbor.{APEX}", to=foo, port=443)
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": foo, "name": "cozystack"}
    accepted = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 1}
    cilium = {
        "parentRef": {**parent, "port": 443},
        "controllerName": CILIUM,
        "conditions": [{**accepted, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    gateways.patch("httproutes", foo, "harbor", {"status": {"parents": [cilium]}}, "status")
    gateways.create_route(early, "harbor", f"harbor.{APEX}", to=foo)
    gateways.wait_until("the namespace that sorts first wins", lambda: gateways.has_conflict(foo, "harbor"))
    message = gateways.conflict_message(foo, "harbor")
    assert message == f'"harbor.{APEX}" belongs to HTTPRoute {early}/harbor'
    gateways.create_route(cozy, "harbor", f"harbor.{APEX}", to=foo)
    for namespace, name in ((early, "harbor"), (foo, "harbor"), (foo, "canary")):
        gateways.wait_until(
            "the platform namespace wins", partial(_names_winner, gateways, namespace, name, f"HTTPRoute {cozy}/harbor")
        )
        assert f'"harbor.{APEX}"' in gateways.conflict_message(namespace, name)
    assert gateways.conflict_message(cozy, "harbor") == ""
    assert gateways.get("httproutes", foo, "harbor")["status"]["parents"][0] == cilium
    gateways.create_route(early, "tls", f"harbor.{APEX}", to=foo, plural="tlsroutes")
    gateways.wait_until("the TLSRoute loses, too", lambda: gateways.has_conflict(early, "tls", "tlsroutes"))
    hostnames = [each for each in gateways.listener_hostnames(foo) if each.startswith("harbor.")]
    assert hostnames == ([] if mode else [f"harbor.{APEX}"])

    gateways.patch("httproutes", early, "harbor", {"spec": {"hostnames": [f"mine.{APEX}"]}})
    gateways.wait_until("the changed route is accepted", lambda: not gateways.conflict_message(early, "harbor"))
    [entry] = gateways.parent_statuses(early, "harbor")
    assert (entry["conditions"][0]["type"], entry["conditions"][0]["status"]) == ("Accepted", "True")
    gateways.delete("tlsroutes", early, "tls")
    gateways.delete("httproutes", cozy, "harbor")
    gateways.wait_until("the next namespace wins", lambda: not gateways.conflict_message(foo, "harbor"))
    gateways.wait_until("its second route is accepted, too", lambda: not gateways.conflict_message(foo, "canary"))


def _names_winner(gateways: Gateways, namespace: str, name: str, winner: str) -> bool:
    return winner in gateways.conflict_message(namespace, name)


def test_the_same_hostname_at_two_gateways_is_no_conflict(gateways: Gateways, foo: str) -> None:
    """Hostnames are compared only among the routes of one Gateway (R-149, R-210)."""
    bar = gateways.create_owner("tenant-bar")
    for namespace in (foo, bar):
        gateways.create_tenantgateway(namespace, APEX)
        gateways.create_route(namespace, "harbor", f"harbor.{APEX}", to=namespace, port=443)
    for namespace in (foo, bar):
        gateways.wait_until("the listener exists", partial(gateways.has_listeners, namespace, f"harbor.{APEX}"))
        gateways.wait_until("the certificate exists", partial(_has_certificate, gateways, namespace, HARBOR))
        assert gateways.parent_statuses(namespace, "harbor") == []


def _has_certificate(gateways: Gateways, namespace: str, name: str) -> bool:
    return gateways.names("certificates", namespace) == [name]


def test_an_acme_solver_route_claims_no_hostname(gateways: Gateways, foo: str) -> None:
    """cert-manager creates such a route for a challenge at every renewal (FACT-3, GW-10)."""
    app = gateways.create_namespace("z-app", labels={LABEL: foo})
    gateways.create_tenantgateway(foo, APEX)
    gateways.create_route(app, "harbor", f"harbor.{APEX}", to=foo)
    gateways.create_route(foo, "cm-acme-http-solver-x", f"harbor.{APEX}", to=foo, sectionName="http")
    gateways.create_route(foo, "later", f"later.{APEX}", to=foo, port=443)
    gateways.wait_until("both listeners exist", lambda: gateways.has_listeners(foo, f"later.{APEX}", f"harbor.{APEX}"))
    assert gateways.parent_statuses(app, "harbor") == gateways.parent_statuses(foo, "cm-acme-http-solver-x") == []


def test_hostnames_that_cannot_be_served_do_not_affect_others(gateways: Gateways, foo: str) -> None:
    """A wildcard, a foreign domain and a TLSRoute exist beside a valid hostname.

    FACT-2, FACT-4, PEER-08, GW-2, GW-5, and R-349 as in issue 3.
    """
    gateways.create_tenantgateway(foo, APEX, tlsPassthroughServices=["api"])
    app = gateways.create_namespace("z-app", labels={LABEL: foo})
    gateways.create_route(foo, "all", f"*.{APEX}", f"good.{APEX}", to=foo, port=443)
    gateways.create_route(app, "evil", "harbor.evilfoo.example.com", to=foo, port=443)
    gateways.create_route(foo, "api", f"api.{APEX}", to=foo, plural="tlsroutes", sectionName="tls-api")
    gateways.create_route(foo, "stream", f"stream.{APEX}", to=foo, plural="tlsroutes")
    gateways.wait_until("the valid hostname is served", lambda: gateways.has_listeners(foo, f"good.{APEX}"))
    left_out = (f'"*.{APEX}"', '"harbor.evilfoo.example.com"', f"HTTPRoute {foo}/all")
    gateways.wait_until(
        "the other hostnames are reported", lambda: all(each in _left_out(gateways, foo) for each in left_out)
    )
    assert gateways.listener_hostnames(foo) == [f"api.{APEX}", f"good.{APEX}"]
    gateways.mark_gateway_programmed(foo)
    gateways.mark_certificates_ready(foo)
    gateways.wait_until("the Gateway is ready nevertheless", lambda: gateways.ready_reason(foo) == "Reconciled")
    assert gateways.names("certificates", foo) == [
        gateways.get("gateways", foo)["spec"]["listeners"][1]["name"].replace("https-", "cozystack-") + "-tls"
    ]


def _left_out(gateways: Gateways, namespace: str) -> str:
    message: str = gateways.conditions(namespace).get("HostnamesLeftOut", {}).get("message", "")
    return message


def test_hostnames_beyond_64_listeners_are_left_out_and_reported(gateways: Gateways, foo: str) -> None:
    """The CRD of Gateway rejects more than 64 listeners (R-122 as in the issue, R-123, FACT-7, GW-4)."""
    gateways.create_tenantgateway(foo, APEX)
    for first in range(0, 60, 15):
        hostnames = [f"m{number}.{APEX}" for number in range(first, first + 15)]
        gateways.create_route(foo, f"first-{first}", *hostnames, to=foo, port=443)
    gateways.wait_until("60 hostnames are served", lambda: len(gateways.listener_hostnames(foo)) == 60)
    served = gateways.listener_hostnames(foo)
    gateways.create_route(foo, "a-late", *(f"a{number}.{APEX}" for number in range(5)), to=foo, port=443)
    gateways.wait_until("hostnames are left out", lambda: "ListenersTruncated" in gateways.conditions(foo))
    listeners = gateways.listener_hostnames(foo)
    assert len(listeners) == 63
    assert set(served) < set(listeners)
    [message] = [gateways.conditions(foo)["ListenersTruncated"]["message"]]
    missing = {f"a{number}.{APEX}" for number in range(5)} - set(listeners)
    assert len(missing) == 2
    assert all(hostname in message for hostname in missing)
    assert gateways.ready_reason(foo) == "GatewayNotAccepted"
    gateways.delete("httproutes", foo, "first-0")
    gateways.wait_until("the missing hostnames are served", lambda: missing <= set(gateways.listener_hostnames(foo)))
    gateways.wait_until("no hostname is left out", lambda: "ListenersTruncated" not in gateways.conditions(foo))
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.wait_until(
        "the wildcard listener replaces all others", lambda: gateways.listener_hostnames(foo) == [f"*.{APEX}", APEX]
    )


def test_hostnames_beyond_64_listeners_go_to_listener_sets(gateways: Gateways, foo: str, unique: str) -> None:
    """Where the GatewayClass supports them. A route names the set, and is served once that is programmed."""
    gateways.create_gateway_class(unique, "HTTPRoute", "ListenerSet")
    for first in range(0, 63, 16):
        hostnames = [f"m{number}.{APEX}" for number in range(first, min(first + 16, 63))]
        gateways.create_route(foo, f"first-{first}", *hostnames, to=foo, port=443)
    gateways.create_tenantgateway(foo, APEX, gatewayClassName=unique)
    gateways.wait_until("the Gateway is full", lambda: len(gateways.listener_hostnames(foo)) == 63)
    gateways.create_route(foo, "late", f"late.{APEX}", to=foo, port=443)
    gateways.wait_until("there is a ListenerSet", lambda: gateways.names("listenersets", foo) == ["cozystack-1"])
    gateways.wait_until("the Certificate exists", lambda: len(gateways.names("certificates", foo)) == 64)
    told = partial(gateways.rejection_reason, foo, "late")
    gateways.wait_until("the route is told to name the set", lambda: told() == "NoMatchingParent")
    refs = [{"kind": "ListenerSet", "namespace": foo, "name": "cozystack-1"}]
    gateways.patch("httproutes", foo, "late", {"spec": {"parentRefs": refs}})
    gateways.wait_until("it does", lambda: told() == "")
    gateways.mark_gateway_programmed(foo)
    gateways.mark_certificates_ready(foo)
    gateways.wait_until("the set is not programmed", lambda: gateways.ready_reason(foo) == "ListenersNotReady")
    gateways.mark_set_programmed(foo, "cozystack-1")
    gateways.wait_until("everything is ready", lambda: gateways.ready_reason(foo) == "Reconciled")
    assert gateways.get("tenantgateways", foo)["status"]["listenersReady"] == 65
    gateways.delete("httproutes", foo, "late")
    gateways.wait_until("the set is removed", lambda: gateways.names("listenersets", foo) == [])


def test_a_tenantgateway_outside_of_tenants_namespaces_is_not_served(gateways: Gateways) -> None:
    """R-363: no policy binds hostnames there: the operator has to name such a namespace in the settings."""
    shop = gateways.create_namespace("shop")
    gateways.create_route(shop, "harbor", f"harbor.{APEX}", to=shop, port=443)
    gateways.create_tenantgateway(shop, APEX)
    gateways.wait_until("the refusal is told", lambda: gateways.ready_reason(shop) == "NamespaceNotAllowed")
    assert "gateway.ownerNamespaces" in gateways.conditions(shop)["Ready"]["message"]
    gateways.wait_until("the route is told, too", lambda: gateways.rejection_reason(shop, "harbor") == "Orphaned")
    for plural in ("gateways", "issuers", "certificates"):
        assert gateways.names(plural, shop) == []
    assert gateways.names("httproutes", shop) == ["harbor"]


def test_fields_that_operators_set_on_a_gateway_are_preserved(gateways: Gateways, foo: str) -> None:
    """The Service of the load balancer belongs to Cilium or to an operator who created it before.

    R-125, R-126, R-127, R-129, GW-20.
    """
    services, port = f"/api/v1/namespaces/{foo}/services", {"port": 443}
    service = {"metadata": {"name": "cilium-gateway-cozystack"}, "spec": {"type": "LoadBalancer", "ports": [port]}}
    pinned = gateways.client.request("POST", services, service).expect(201)
    gateways.create_tenantgateway(foo, APEX, gatewayClassName="tpyo")
    gateways.wait_until("the Gateway exists", lambda: not gateways.is_gone("gateways", foo))
    addresses = [{"type": "IPAddress", "value": "192.0.2.1"}]
    body = {"spec": {"addresses": addresses}, "metadata": {"labels": {"a": "b"}}}
    gateways.patch("gateways", foo, "cozystack", body)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.wait_until("the new listener exists", lambda: gateways.listener_hostnames(foo) == [f"harbor.{APEX}"])
    found = gateways.get("gateways", foo)
    assert (found["spec"]["addresses"], found["metadata"]["labels"]["a"]) == (addresses, "b")
    assert found["spec"]["gatewayClassName"] == "tpyo"
    gateways.wait_until("the status is written", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted")
    assert gateways.client.get(f"{services}/cilium-gateway-cozystack").expect(200) == pinned


def test_the_status_follows_the_gateway_and_each_certificate(gateways: Gateways, foo: str) -> None:
    """The reason of Ready names the first problem: Gateway, listener, certificate (R-223, R-230, GW-17)."""
    gateways.create_tenantgateway(foo, APEX)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.wait_until("the listener exists", lambda: gateways.listener_hostnames(foo) == [f"harbor.{APEX}"])
    gateways.wait_until("the Gateway is not accepted yet", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted")
    gateways.mark_gateway_programmed(foo)
    gateways.wait_until("the Gateway is programmed", lambda: gateways.ready_reason(foo) == "Reconciled")
    assert _listener(gateways, foo) == (False, "CertificateNotReady")
    gateways.mark_certificates_ready(foo, HARBOR)
    gateways.wait_until("the listener is ready", lambda: _listener(gateways, foo) == (True, None))
    status = gateways.get("tenantgateways", foo)["status"]
    assert status["observedGeneration"] == 1
    assert [each["name"] for each in status["listeners"]] == ["http", "https-harbor-760d5a8a"]
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.wait_until(
        "the wildcard certificate is not ready", lambda: gateways.ready_reason(foo) == "CertificatesNotReady"
    )
    gateways.mark_certificates_ready(foo, "cozystack-gateway-tls")
    gateways.wait_until(
        "the new listeners are not ready",
        lambda: gateways.ready_reason(foo) in ("GatewayNotAccepted", "ListenersNotReady"),
    )
    gateways.mark_gateway_programmed(foo)
    gateways.wait_until("the TenantGateway is ready", lambda: gateways.ready_reason(foo) == "Reconciled")


def _listener(gateways: Gateways, namespace: str) -> tuple[bool, str | None]:
    listeners: list[dict[str, Any]] = gateways.get("tenantgateways", namespace)["status"]["listeners"]
    [found] = [each for each in listeners if each.get("hostname", "").startswith("harbor.")]
    return found["ready"], found.get("reason")


def test_a_losing_route_has_a_status_for_each_parent_ref(gateways: Gateways, foo: str, cluster: E2eCluster) -> None:
    """Each entry has the conditions and the observedGeneration that Gateway API requires (R-202, GW-15)."""
    gateways.create_tenantgateway(foo, APEX)
    early = gateways.create_namespace("a-team", labels={LABEL: foo})
    gateways.create_route(early, "harbor", f"harbor.{APEX}", to=foo)
    gateways.wait_until("the winner is served", lambda: gateways.has_listeners(foo, f"harbor.{APEX}"))
    [listener] = [each for each in gateways.get("gateways", foo)["spec"]["listeners"] if each["port"] == 443]
    refs = [{"namespace": foo, "name": "cozystack", "sectionName": each} for each in (listener["name"], "other")]
    gateways.create("httproutes", foo, "loser", {"parentRefs": refs, "hostnames": [f"harbor.{APEX}"]})
    gateways.wait_until("both parents have an entry", lambda: len(gateways.parent_statuses(foo, "loser")) == 2)
    reasons = {listener["name"]: "HostnameConflict", "other": "NoMatchingParent"}
    for entry in gateways.parent_statuses(foo, "loser"):
        assert entry["controllerName"] == OURS
        reason = reasons.pop(entry["parentRef"]["sectionName"])
        (accepted,) = entry["conditions"]
        assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "False", reason)
        assert accepted["observedGeneration"] == 1
    assert ANNOTATION not in gateways.get("httproutes", foo, "loser")["metadata"].get("annotations", {})
    listed = cluster.client().get(path("httproutes", foo, "loser")).expect(200)
    assert listed["apiVersion"] == GATEWAY_API

"""TenantGateways on a real host: what is made, told, left out, attached and taken away again."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.e2e.support.clusters import E2eCluster
from tests.e2e.support.gateways import ANNOTATION, CILIUM, DNS01, GATEWAY_API, OURS, Gateways, Object, path

HARBOR = "cozystack-harbor-760d5a8a-tls"
APEX = "foo.example.com"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    """A namespace whose name sorts after those of the prefix a-, and before those of z-."""
    return gateways.namespace("m-foo")


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
def test_nothing_that_was_there_before_is_taken_over(
    gateways: Gateways, foo: str, plural: str, name: str, spec: Object, mode: Object
) -> None:
    """R-211 to R-215, R-217, R-218, R-219, R-220, R-222, R-224, R-225, R-226: refused, handed over, and deleted."""
    gateways.create(plural, foo, name, spec)
    foreign = gateways.get(plural, foo, name)
    gateways.route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    owner = gateways.ask(foo, APEX, **mode)
    gateways.until("it is refused", lambda: gateways.reason(foo) == "ReconcileError")
    kind = foreign["kind"].lower()
    said = f"{kind} {foo}/{name} exists but is not owned by TenantGateway {foo}/cozystack: rename or delete it, or "
    assert said in gateways.conditions(foo)["Ready"]["message"]
    gateways.until("the rest is made", lambda: "cozystack-gateway" in gateways.names("issuers", foo))
    gateways.until("the redirect", lambda: "cozystack-http-redirect" in gateways.names("httproutes", foo))
    assert gateways.get(plural, foo, name) == foreign

    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    gateways.edit(plural, foo, name, {"metadata": {"ownerReferences": [reference]}})
    gateways.until("it is ours", lambda: gateways.get(plural, foo, name)["spec"] != foreign["spec"])
    gateways.until("that is said", lambda: gateways.reason(foo) == "GatewayNotAccepted")
    uid = foreign["metadata"]["uid"]
    gateways.delete(plural, foo, name)
    gateways.until("it is made anew", lambda: name in gateways.names(plural, foo))
    assert gateways.get(plural, foo, name)["metadata"]["uid"] != uid


@pytest.mark.parametrize("mode", [pytest.param({}, id="http01"), pytest.param(DNS01, id="dns01")])
def test_whose_a_hostname_is(gateways: Gateways, foo: str, mode: Object) -> None:
    """R-199, R-200, R-202 to R-209, R-268, GW-6, GW-7, GW-16: what clashes inside a domain is admitted, and judged
    here."""
    early, cozy = gateways.namespace("a-team"), gateways.namespace("cozy-z")
    gateways.ask(foo, APEX, **mode)
    gateways.route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.route(foo, "canary", f"harbor.{APEX}", to=foo, port=443)
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": foo, "name": "cozystack"}
    word = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 1}
    cilium = {
        "parentRef": {**parent, "port": 443},
        "controllerName": CILIUM,
        "conditions": [{**word, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    gateways.edit("httproutes", foo, "harbor", {"status": {"parents": [cilium]}}, "status")
    gateways.route(early, "harbor", f"harbor.{APEX}", to=foo)
    gateways.until("the smaller namespace has it", lambda: gateways.lost(foo, "harbor"))
    assert f"HTTPRoute {early}/harbor" in gateways.lost(foo, "harbor")
    gateways.route(cozy, "harbor", f"harbor.{APEX}", to=foo)
    for namespace, name in ((early, "harbor"), (foo, "harbor"), (foo, "canary")):
        gateways.until(
            "the platform has it", partial(_names_winner, gateways, namespace, name, f"HTTPRoute {cozy}/harbor")
        )
        assert f'"harbor.{APEX}"' in gateways.lost(namespace, name)
    assert gateways.lost(cozy, "harbor") == ""
    assert gateways.get("httproutes", foo, "harbor")["status"]["parents"][0] == cilium
    gateways.route(early, "tls", f"harbor.{APEX}", to=foo, plural="tlsroutes")
    gateways.until("a TLSRoute loses, too", lambda: gateways.lost(early, "tls", "tlsroutes"))
    hostnames = [each for each in gateways.listeners(foo) if each.startswith("harbor.")]
    assert hostnames == ([] if mode else [f"harbor.{APEX}"])

    gateways.edit("httproutes", early, "harbor", {"spec": {"hostnames": [f"mine.{APEX}"]}})
    gateways.until("it recovers", lambda: not gateways.lost(early, "harbor"))
    [entry] = gateways.verdicts(early, "harbor")
    assert (entry["conditions"][0]["type"], entry["conditions"][0]["status"]) == ("Accepted", "True")
    gateways.delete("tlsroutes", early, "tls")
    gateways.delete("httproutes", cozy, "harbor")
    gateways.until("the next in turn has it", lambda: not gateways.lost(foo, "harbor"))
    gateways.until("with its canary", lambda: not gateways.lost(foo, "canary"))


def _names_winner(gateways: Gateways, namespace: str, name: str, winner: str) -> bool:
    return winner in gateways.lost(namespace, name)


def test_the_same_hostname_at_two_gateways_is_no_conflict(gateways: Gateways, foo: str) -> None:
    """R-149, R-210."""
    bar = gateways.namespace("m-bar")
    for namespace in (foo, bar):
        gateways.ask(namespace, APEX)
        gateways.route(namespace, "harbor", f"harbor.{APEX}", to=namespace, port=443)
    for namespace in (foo, bar):
        gateways.until("it has its listener", partial(gateways.serves, namespace, f"harbor.{APEX}"))
        assert gateways.verdicts(namespace, "harbor") == []
        assert gateways.names("certificates", namespace) == [HARBOR]


def test_a_solvers_route_claims_nothing(gateways: Gateways, foo: str) -> None:
    """FACT-3, GW-10: cert-manager's own for a challenge, at every renewal."""
    app = gateways.namespace("z-app")
    gateways.ask(foo, APEX)
    gateways.route(app, "harbor", f"harbor.{APEX}", to=foo)
    gateways.route(foo, "cm-acme-http-solver-x", f"harbor.{APEX}", to=foo, sectionName="http")
    gateways.route(foo, "later", f"later.{APEX}", to=foo, port=443)
    gateways.until("all are seen", lambda: gateways.serves(foo, f"later.{APEX}", f"harbor.{APEX}"))
    assert gateways.verdicts(app, "harbor") == gateways.verdicts(foo, "cm-acme-http-solver-x") == []


def test_what_cannot_be_served_stops_nothing_else(gateways: Gateways, foo: str) -> None:
    """FACT-2, FACT-4, PEER-08, GW-2, GW-5, and R-349 as issue 3 has it: a wildcard, a foreign domain and a TLSRoute
    beside a hostname that is as it should be."""
    gateways.ask(foo, APEX, tlsPassthroughServices=["api"])
    gateways.route(foo, "all", f"*.{APEX}", f"good.{APEX}", "harbor.evilfoo.example.com", to=foo, port=443)
    gateways.route(foo, "api", f"api.{APEX}", to=foo, plural="tlsroutes", sectionName="tls-api")
    gateways.route(foo, "stream", f"stream.{APEX}", to=foo, plural="tlsroutes")
    gateways.until("what can be is served", lambda: gateways.serves(foo, f"good.{APEX}"))
    gateways.until("the rest is named", lambda: "HostnamesLeftOut" in gateways.conditions(foo))
    assert gateways.listeners(foo) == [f"api.{APEX}", f"good.{APEX}"]
    told = gateways.conditions(foo)["HostnamesLeftOut"]["message"]
    assert f'"*.{APEX}"' in told
    assert '"harbor.evilfoo.example.com"' in told
    assert f"HTTPRoute {foo}/all" in told
    gateways.be_cilium(foo)
    gateways.be_cert_manager(foo)
    gateways.until("the gateway is ready all the same", lambda: gateways.reason(foo) == "Reconciled")
    assert gateways.names("certificates", foo) == [
        gateways.get("gateways", foo)["spec"]["listeners"][1]["name"].replace("https-", "cozystack-") + "-tls"
    ]


def test_beyond_64_listeners_what_works_stays_and_the_rest_is_named(gateways: Gateways, foo: str) -> None:
    """R-122 as the issue has it, R-123, FACT-7, GW-4: the CRD of a real host refuses the 65th."""
    gateways.ask(foo, APEX)
    for first in range(0, 60, 15):
        hostnames = [f"m{number}.{APEX}" for number in range(first, first + 15)]
        gateways.route(foo, f"first-{first}", *hostnames, to=foo, port=443)
    gateways.until("60 are served", lambda: len(gateways.listeners(foo)) == 60)
    served = gateways.listeners(foo)
    gateways.route(foo, "a-late", *(f"a{number}.{APEX}" for number in range(5)), to=foo, port=443)
    gateways.until("two are left out", lambda: "ListenersTruncated" in gateways.conditions(foo))
    listeners = gateways.listeners(foo)
    assert len(listeners) == 63
    assert set(served) < set(listeners)
    [message] = [gateways.conditions(foo)["ListenersTruncated"]["message"]]
    missing = {f"a{number}.{APEX}" for number in range(5)} - set(listeners)
    assert len(missing) == 2
    assert all(hostname in message for hostname in missing)
    assert gateways.reason(foo) == "GatewayNotAccepted"
    gateways.delete("httproutes", foo, "first-0")
    gateways.until("there is room", lambda: missing <= set(gateways.listeners(foo)))
    gateways.until("nothing is left out", lambda: "ListenersTruncated" not in gateways.conditions(foo))
    gateways.edit("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.until("a wildcard takes them all", lambda: gateways.listeners(foo) == [f"*.{APEX}", APEX])


def test_what_is_the_operators_on_a_gateway_stays(gateways: Gateways, foo: str) -> None:
    """R-125, R-126, R-127, R-129, GW-20: the LoadBalancer's Service is Cilium's, or made by hand beforehand."""
    services, port = f"/api/v1/namespaces/{foo}/services", {"port": 443}
    service = {"metadata": {"name": "cilium-gateway-cozystack"}, "spec": {"type": "LoadBalancer", "ports": [port]}}
    pinned = gateways.client.request("POST", services, service).expect(201)
    gateways.ask(foo, APEX, gatewayClassName="tpyo")
    gateways.until("the gateway is there", lambda: not gateways.gone("gateways", foo))
    addresses = [{"type": "IPAddress", "value": "192.0.2.1"}]
    body = {"spec": {"addresses": addresses}, "metadata": {"labels": {"a": "b"}}}
    gateways.edit("gateways", foo, "cozystack", body)
    gateways.route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.until("a listener more", lambda: gateways.listeners(foo) == [f"harbor.{APEX}"])
    found = gateways.get("gateways", foo)
    assert (found["spec"]["addresses"], found["metadata"]["labels"]["a"]) == (addresses, "b")
    assert found["spec"]["gatewayClassName"] == "tpyo"
    assert gateways.reason(foo) == "GatewayNotAccepted"
    assert gateways.client.get(f"{services}/cilium-gateway-cozystack").expect(200) == pinned


def test_the_status_follows_the_gateway_and_each_certificate(gateways: Gateways, foo: str) -> None:
    """R-223, R-230, GW-17: not accepted, not programmed, a listener, a certificate, all well."""
    gateways.ask(foo, APEX)
    gateways.route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.until("harbor", lambda: gateways.listeners(foo) == [f"harbor.{APEX}"])
    gateways.until("it waits", lambda: gateways.reason(foo) == "GatewayNotAccepted")
    gateways.be_cilium(foo)
    gateways.until("the gateway is programmed", lambda: gateways.reason(foo) == "Reconciled")
    assert _listener(gateways, foo) == (False, "CertificateNotReady")
    gateways.be_cert_manager(foo, HARBOR)
    gateways.until("the listener is ready", lambda: _listener(gateways, foo) == (True, None))
    status = gateways.get("tenantgateways", foo)["status"]
    assert status["observedGeneration"] == 1
    assert [each["name"] for each in status["listeners"]] == ["http", "https-harbor-760d5a8a"]
    gateways.edit("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.until("DNS-01 waits again", lambda: gateways.reason(foo) in ("GatewayNotAccepted", "ListenersNotReady"))
    gateways.be_cilium(foo)
    gateways.until("the wildcard is the whole gateway's", lambda: gateways.reason(foo) == "CertificatesNotReady")
    gateways.be_cert_manager(foo)
    gateways.until("all is well", lambda: gateways.reason(foo) == "Reconciled")


def _listener(gateways: Gateways, namespace: str) -> tuple[bool, str | None]:
    listeners: list[dict[str, Any]] = gateways.get("tenantgateways", namespace)["status"]["listeners"]
    [found] = [each for each in listeners if each.get("hostname", "").startswith("harbor.")]
    return found["ready"], found.get("reason")


def test_the_shape_of_what_a_route_is_told(gateways: Gateways, foo: str, cluster: E2eCluster) -> None:
    """R-202, GW-15: per parentRef, with observedGeneration, as Gateway API's schema has it."""
    gateways.ask(foo, APEX)
    early = gateways.namespace("a-team")
    gateways.route(early, "harbor", f"harbor.{APEX}", to=foo)
    refs = [{"namespace": foo, "name": "cozystack", "sectionName": section} for section in ("https", "other")]
    gateways.create("httproutes", foo, "loser", {"parentRefs": refs, "hostnames": [f"harbor.{APEX}"]})
    gateways.until("both parents are told", lambda: len(gateways.verdicts(foo, "loser")) == 2)
    for entry, parent in zip(gateways.verdicts(foo, "loser"), refs, strict=True):
        assert entry["controllerName"] == OURS
        assert entry["parentRef"]["sectionName"] == parent["sectionName"]
        accepted, resolved = sorted(entry["conditions"], key=lambda each: each["type"])
        assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "False", "HostnameConflict")
        assert (resolved["type"], accepted["observedGeneration"]) == ("ResolvedRefs", 1)
    assert ANNOTATION not in gateways.get("httproutes", foo, "loser")["metadata"].get("annotations", {})
    listed = cluster.session().get(path("httproutes", foo, "loser")).expect(200)
    assert listed["apiVersion"] == GATEWAY_API

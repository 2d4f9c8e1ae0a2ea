"""References to objects of other namespaces need their consent, a ReferenceGrant (seed 004)."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.gateways import CILIUM, LABEL, Gateways, Object
from tests.e2e.support.http.pace import Pace

EXAMPLES = Path(__file__).parents[3] / "examples"
APEX = "foo.example.com"
MAX_SECONDS = 1.0
REFUSED, RESOLVED, NOTHING = ("False", "RefNotPermitted"), ("True", "ResolvedRefs"), ("", "")


@pytest.fixture
def foo(gateways: Gateways) -> str:
    """The namespace of a Gateway."""
    namespace = gateways.create_owner("tenant-consent")
    gateways.create_tenantgateway(namespace, APEX)
    return namespace


@pytest.fixture
def guest(gateways: Gateways, foo: str) -> str:
    """A namespace whose routes the Gateway admits."""
    return gateways.create_namespace("guest", labels={LABEL: foo})


@pytest.fixture
def shop(gateways: Gateways) -> str:
    """A namespace that has nothing to do with the Gateway, with a Service `web`."""
    namespace = gateways.create_namespace("shop")
    gateways.create_service(namespace, "web")
    return namespace


def create_route(gateways: Gateways, guest: str, foo: str, *rules: Object, name: str = "app") -> None:
    parents = [{"namespace": foo, "name": "cozystack"}]
    spec = {"parentRefs": parents, "hostnames": [f"{name}.{APEX}"], "rules": list(rules)}
    gateways.create("httproutes", guest, name, spec)


def to(namespace: str, name: str = "web") -> Object:
    return {"name": name, "namespace": namespace, "port": 80}


def wait_for(gateways: Gateways, guest: str, expected: tuple[str, str], name: str = "app") -> float:
    """Waits for our condition ResolvedRefs, and returns the seconds that it took."""
    started = time.monotonic()
    gateways.wait_until(f"ResolvedRefs is {expected}", lambda: gateways.resolved_refs(guest, name) == expected)
    return time.monotonic() - started


def messages(gateways: Gateways, namespace: str, name: str) -> list[str]:
    conditions = [each for entry in gateways.parent_statuses(namespace, name) for each in entry["conditions"]]
    return [each["message"] for each in conditions if each["type"] == "ResolvedRefs"]


def test_a_backend_of_another_namespace_needs_a_grant_there(
    gateways: Gateways, foo: str, guest: str, shop: str
) -> None:
    """R-366, R-374, R-378: False without it, True with it, False again as soon as it is deleted. The hostname is served
    all the while, because its route counts."""
    pace = Pace(gateways.cluster.direct_client())
    create_route(gateways, guest, foo, {"backendRefs": [to(shop)]})
    wait_for(gateways, guest, REFUSED)
    (message,) = messages(gateways, guest, "app")
    assert message == (
        f"Service {shop}/web: namespace {shop} has no ReferenceGrant from HTTPRoute of namespace {guest} to Service web"
    )
    gateways.wait_until("the hostname has a listener", lambda: gateways.has_listeners(foo, f"app.{APEX}"))
    durations = []
    for _ in range(3):
        gateways.create_grant(shop, "guests", "HTTPRoute", guest, "Service", "web")
        wait_for(gateways, guest, RESOLVED)
        gateways.delete("referencegrants", shop, "guests")
        durations.append(wait_for(gateways, guest, REFUSED))
    assert sorted(durations)[1] < pace.limit(MAX_SECONDS), durations
    assert gateways.has_listeners(foo, f"app.{APEX}")


def test_a_mirror_needs_a_grant_too(gateways: Gateways, foo: str, guest: str, shop: str) -> None:
    """A filter that copies requests elsewhere is a reference as well."""
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": to(shop)}}
    gateways.create_service(guest, "own")
    create_route(gateways, guest, foo, {"filters": [mirror], "backendRefs": [{"name": "own", "port": 80}]})
    create_route(gateways, guest, foo, {"backendRefs": [{**to(guest, "own"), "filters": [mirror]}]}, name="inner")
    for name in ("app", "inner"):
        wait_for(gateways, guest, REFUSED, name)
    gateways.create_grant(shop, "guests", "HTTPRoute", guest, "Service")
    for name in ("app", "inner"):
        wait_for(gateways, guest, RESOLVED, name)


def test_a_tlsroute_needs_a_grant_for_tlsroutes(gateways: Gateways, foo: str, guest: str, shop: str) -> None:
    """R-368, R-373: that of another kind of route does not count."""
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": {"tlsPassthroughServices": ["api"]}})
    parents = [{"namespace": foo, "name": "cozystack", "sectionName": "tls-api"}]
    spec = {"parentRefs": parents, "hostnames": [f"api.{APEX}"], "rules": [{"backendRefs": [to(shop)]}]}
    gateways.create_grant(shop, "http", "HTTPRoute", guest, "Service")
    gateways.create("tlsroutes", guest, "api", spec)
    refused = partial(gateways.resolved_refs, guest, "api", "tlsroutes")
    gateways.wait_until("the reference is refused", lambda: refused() == REFUSED)
    gateways.create_grant(shop, "tls", "TLSRoute", guest, "Service")
    gateways.wait_until("the reference is permitted", lambda: refused() == RESOLVED)


def test_nothing_is_told_about_references_that_nobody_looked_at(
    gateways: Gateways, foo: str, guest: str, shop: str
) -> None:
    """A Service that does not exist is for the data plane to report: no ResolvedRefs of ours once there is a grant."""
    create_route(gateways, guest, foo, {"backendRefs": [to(shop, "missing")]})
    create_route(gateways, guest, foo, {"backendRefs": [{"name": "missing", "port": 80}]}, name="local")
    wait_for(gateways, guest, REFUSED)
    gateways.create_grant(shop, "guests", "HTTPRoute", guest, "Service")
    wait_for(gateways, guest, NOTHING)
    gateways.wait_until("the hostname has a listener", lambda: gateways.has_listeners(foo, f"local.{APEX}"))
    assert gateways.parent_statuses(guest, "app") == gateways.parent_statuses(guest, "local") == []


def test_our_condition_does_not_contradict_that_of_the_data_plane(
    gateways: Gateways, foo: str, guest: str, shop: str
) -> None:
    """R-203: its own False about a parentRef stands alone, and is not touched."""
    create_route(gateways, guest, foo, {"backendRefs": [to(shop)]})
    wait_for(gateways, guest, REFUSED)
    gateways.create_grant(shop, "guests", "HTTPRoute", guest, "Service")
    wait_for(gateways, guest, RESOLVED)
    theirs = _entry(foo, "False", "BackendNotFound")

    def is_written() -> bool:
        route = gateways.get("httproutes", guest, "app")
        ours = [each for each in route["status"]["parents"] if each["controllerName"] != CILIUM]
        body = {"metadata": {"resourceVersion": route["metadata"]["resourceVersion"]}}
        status = {"parents": [theirs, *ours]}
        path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{guest}/httproutes/app/status"
        answer = gateways.client.request(
            "PATCH", path, {**body, "status": status}, content_type="application/merge-patch+json"
        )
        return answer.status == 200

    gateways.wait_until("the data plane has written its condition", is_written)
    wait_for(gateways, guest, NOTHING)
    assert gateways.get("httproutes", guest, "app")["status"]["parents"] == [theirs]


def test_a_wildcard_secret_of_another_namespace_needs_a_grant_there(gateways: Gateways, foo: str) -> None:
    """One Secret for many tenants. Until there is a grant, the Certificates of before stay."""
    vault, hostname = gateways.create_namespace("vault"), f"app.{APEX}"
    gateways.create_route(foo, "app", hostname, to=foo, port=443)
    gateways.wait_until("there is a certificate", lambda: gateways.names("certificates", foo))
    certificates = gateways.names("certificates", foo)
    secret = {"certMode": "existingSecret", "wildcardSecretRef": {"name": "wildcard", "namespace": vault}}
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": secret})
    gateways.wait_until("the refusal is told", lambda: "CertificatesReady" in gateways.conditions(foo))
    condition = gateways.conditions(foo)["CertificatesReady"]
    assert (condition["status"], condition["reason"]) == REFUSED
    assert f"namespace {vault} has no ReferenceGrant from Gateway of namespace {foo} to Secret" in condition["message"]
    assert gateways.listener_hostnames(foo)[:1] == [hostname]
    assert gateways.names("certificates", foo) == certificates
    assert gateways.names("issuers", foo) == ["cozystack-gateway"]
    gateways.create_grant(vault, "gateways", "Gateway", foo, "Secret", "wildcard")
    gateways.wait_until("the wildcard is served", lambda: gateways.has_listeners(foo, f"*.{APEX}"))
    listeners = gateways.get("gateways", foo)["spec"]["listeners"]
    references = [each["tls"]["certificateRefs"][0] for each in listeners if each["protocol"] == "HTTPS"]
    assert {(each["namespace"], each["name"]) for each in references} == {(vault, "wildcard")}
    gateways.wait_until("the condition is removed", lambda: "CertificatesReady" not in gateways.conditions(foo))
    gateways.wait_until("the Certificates are removed", lambda: not gateways.names("certificates", foo))
    gateways.wait_until("the Issuer is removed", lambda: not gateways.names("issuers", foo))
    gateways.delete("referencegrants", vault, "gateways")
    gateways.wait_until("the revocation is told", lambda: gateways.ready_reason(foo) == "RefNotPermitted")


def test_the_example_of_a_wildcard_secret_is_served(gateways: Gateways) -> None:
    """examples/certificates/wildcard-secret.yaml, in namespaces of the test's own."""
    vault, owner = gateways.create_namespace("vault"), gateways.create_owner("tenant-wildcard", APEX)
    text = (EXAMPLES / "certificates" / "wildcard-secret.yaml").read_text().replace("example.org", APEX)
    text = text.replace("namespace: certificates", f"namespace: {vault}").replace("tenant-root", owner)
    gateways.cluster.kubectl("apply", "-f", "-", input=text)
    gateways.wait_until("the wildcard is served", lambda: gateways.has_listeners(owner, APEX, f"*.{APEX}"))
    listeners = gateways.get("gateways", owner)["spec"]["listeners"]
    references = [each["tls"]["certificateRefs"][0] for each in listeners if each["protocol"] == "HTTPS"]
    assert {(each["namespace"], each["name"]) for each in references} == {(vault, "wildcard")}
    assert gateways.names("issuers", owner) == []


def _entry(foo: str, status: str, reason: str) -> dict[str, Any]:
    condition = {
        "type": "ResolvedRefs",
        "status": status,
        "reason": reason,
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    accepted = {**condition, "type": "Accepted", "status": "True", "reason": "Accepted"}
    parent = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "namespace": foo,
        "name": "cozystack",
    }
    return {"parentRef": parent, "controllerName": CILIUM, "conditions": [accepted, condition]}

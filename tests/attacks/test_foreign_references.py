"""ATTACK-11: references to objects of other namespaces, attachment without consent, and revoked consent.

There is no delegation between parents and children that could be attacked.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.gateways import DNS01, HOST_LABEL, LABEL, Gateways, Object, path
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import Tenants

APEX = "foo.example.com"
MERGE = "application/merge-patch+json"
MAX_SECONDS = 1.0
ROUNDS = 3


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.create_owner()


def serves(gateways: Gateways, namespace: str, hostname: str) -> bool:
    return hostname in gateways.listener_hostnames(namespace)


def values_of_field(document: Any, field: str) -> Iterator[Any]:
    """Yields the values of a field at any depth."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == field:
                yield value
            yield from values_of_field(value, field)
    elif isinstance(document, list):
        for each in document:
            yield from values_of_field(each, field)


def foreign_secrets(gateways: Gateways, namespace: str) -> set[tuple[str, str]]:
    """Namespace and name of the Secrets of other namespaces that the listeners refer to."""
    listeners = gateways.get("gateways", namespace)["spec"]["listeners"]
    references = [each for found in values_of_field(listeners, "certificateRefs") for each in found or ()]
    return {(each["namespace"], each["name"]) for each in references if each.get("namespace", namespace) != namespace}


def test_a_gateway_uses_no_secret_of_a_namespace_that_has_not_consented(gateways: Gateways, foo: str) -> None:
    """Neither does a grant for another kind, Secret or namespace help. The former certificates of the Gateway stay."""
    bob = gateways.create_namespace("bob")
    secret = {"metadata": {"name": "bought"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}
    gateways.client.request("POST", f"/api/v1/namespaces/{bob}/secrets", secret).expect(201)
    gateways.create_tenantgateway(foo, APEX, certMode="existingSecret", wildcardSecretRef={"name": "own"})
    gateways.wait_until("the apex has a listener", partial(serves, gateways, foo, APEX))
    gateways.create_grant(bob, "routes", "HTTPRoute", foo, "Secret")
    gateways.create_grant(bob, "other", "Gateway", foo, "Secret", "other")
    gateways.create_grant(bob, "guests", "Gateway", bob, "Secret")
    gateways.create_grant(foo, "own", "Gateway", foo, "Secret")
    changed = {"spec": {"wildcardSecretRef": {"name": "bought", "namespace": bob}}}
    gateways.patch("tenantgateways", foo, "cozystack", changed)
    gateways.wait_until("the refusal is told", lambda: gateways.ready_reason(foo) == "RefNotPermitted")
    assert foreign_secrets(gateways, foo) == set()
    assert serves(gateways, foo, APEX)
    gateways.create_grant(bob, "bought", "Gateway", foo, "Secret", "bought")
    gateways.wait_until("the Secret is used", lambda: foreign_secrets(gateways, foo) == {(bob, "bought")})
    gateways.delete("referencegrants", bob, "bought")
    gateways.wait_until("the revocation is told", lambda: gateways.ready_reason(foo) == "RefNotPermitted")


def test_the_name_of_a_secret_is_no_path(gateways: Gateways, foo: str) -> None:
    bob = gateways.create_namespace("bob")
    gateways.create_tenantgateway(foo, APEX, certMode="existingSecret", wildcardSecretRef={"name": "own"})
    target = path("tenantgateways", foo, "cozystack")
    for bad in ({"name": f"{bob}/bought"}, {"name": f"../{bob}/bought"}, {"namespace": f"{bob}/secrets"}):
        answer = gateways.client.request("PATCH", target, {"spec": {"wildcardSecretRef": bad}}, content_type=MERGE)
        assert answer.status == 422, answer.body
    # a name with a dot is one name, in the Gateway's own namespace
    dotted = {"spec": {"wildcardSecretRef": {"name": f"bought.{bob}"}}}
    gateways.patch("tenantgateways", foo, "cozystack", dotted)
    gateways.wait_until("the change is observed", partial(_is_observed, gateways, foo))
    gateways.wait_until("the apex has a listener", partial(serves, gateways, foo, APEX))
    assert foreign_secrets(gateways, foo) == set()


def _is_observed(gateways: Gateways, namespace: str) -> bool:
    found = gateways.get("tenantgateways", namespace)
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


def test_an_issuer_refers_only_to_secrets_of_its_own_namespace(gateways: Gateways, foo: str) -> None:
    dns01: Object = {
        "provider": "cloudflare",
        "cloudflare": {"apiTokenSecretRef": {"name": "token", "key": "key", "namespace": "kube-system"}},
    }
    spec = {"apex": APEX, "certMode": "dns01", "dns01": dns01}
    body = {
        "apiVersion": "gateway.cozystack.io/v1alpha1",
        "kind": "TenantGateway",
        "metadata": {"name": "cozystack"},
        "spec": spec,
    }
    answer = gateways.client.request("POST", path("tenantgateways", foo), body)
    assert answer.status in (201, 400, 422), answer.body
    if answer.status != 201:
        gateways.create_tenantgateway(foo, APEX, **DNS01)
    gateways.wait_until("there is an issuer", lambda: gateways.names("issuers", foo))
    issuer = gateways.get("issuers", foo, "cozystack-gateway")
    assert list(values_of_field(issuer["spec"], "namespace")) == []
    # a namespaced issuer reads no Secrets of other namespaces
    assert issuer["kind"] == "Issuer"
    gateways.wait_until("there is a certificate", lambda: gateways.names("certificates", foo))
    certificate = gateways.get("certificates", foo, gateways.names("certificates", foo)[0])
    assert certificate["spec"]["issuerRef"]["kind"] == "Issuer"


def test_a_foreign_attachment_list_does_not_attach_a_namespace(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, gateways: Gateways, foo: str
) -> None:
    """R-360, R-375, R-377: neither does a ReferenceGrant, which is no consent to attachment, nor a route by itself."""
    tenants.patch(bob.tenant, {"spec": {"gateway": True}})
    gateways.wait_until(
        "bob's namespace has its own Gateway", lambda: gateways.attachment(bob.namespace)[0] == bob.namespace
    )
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[bob.namespace])
    gateways.wait_until("the conflict is reported", lambda: "AttachedElsewhere" in gateways.conditions(foo))
    assert gateways.attachment(bob.namespace) == (bob.namespace, None)
    # alice points a route at bob's Gateway, with a grant in her own namespace
    gateways.create_grant(alice.namespace, "all", "HTTPRoute", alice.namespace, "Service")
    host = tenants.wait_until_settled(bob.tenant)["status"]["host"]["value"]
    hostname = f"alice.{host}"
    before = gateways.attachment(alice.namespace)
    gateways.create_route(alice.namespace, "foreign", hostname, to=bob.namespace, port=443)
    own = f"own.{host}"
    gateways.create_route(bob.namespace, "own", own, to=bob.namespace, port=443)
    gateways.wait_until("bob's route has a listener", partial(serves, gateways, bob.namespace, own))
    selectors = [
        each["allowedRoutes"]["namespaces"] for each in gateways.get("gateways", bob.namespace)["spec"]["listeners"]
    ]
    assert {each["from"] for each in selectors} == {"Selector"}
    assert alice.namespace not in str(selectors)
    assert gateways.attachment(alice.namespace) == before


AttachmentChange = Callable[[Gateways, str, str, bool], None]
"""Attaches the second namespace to the Gateway of the first one, or revokes that."""


def _change_by_list(gateways: Gateways, owner: str, guest: str, attached: bool) -> None:
    listed = [guest] if attached else []
    gateways.patch("tenantgateways", owner, "cozystack", {"spec": {"attachedNamespaces": listed}})


def _change_by_route(gateways: Gateways, owner: str, guest: str, attached: bool) -> None:
    if attached:
        gateways.patch_labels(guest, {LABEL: owner})
    refs = [{"namespace": owner if attached else guest, "name": "cozystack"}]
    gateways.patch("httproutes", guest, "app", {"spec": {"parentRefs": refs}})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_change_by_list, id="entry of the list"),
        pytest.param(_change_by_route, id="reference of the route"),
    ],
)
def test_a_revoked_attachment_ends_within_a_second(gateways: Gateways, foo: str, change: AttachmentChange) -> None:
    """CVE-2024-42486: the label of the attached namespace, or the listener for its route, is removed. The median of
    some rounds counts."""
    guest, hostname = gateways.create_namespace("guest"), f"guest.{APEX}"
    gateways.create_tenantgateway(foo, APEX)
    gateways.wait_until("the Gateway exists", lambda: not gateways.is_gone("gateways", foo))
    gateways.create_route(guest, "app", hostname, to=foo)
    durations, pace = list[float](), Pace(gateways.cluster.direct_client())
    for _ in range(ROUNDS):
        change(gateways, foo, guest, True)
        gateways.wait_until("the namespace is attached", lambda: gateways.attachment(guest)[0] == foo)
        gateways.wait_until("the route has a listener", partial(serves, gateways, foo, hostname))
        started = time.monotonic()
        change(gateways, foo, guest, False)
        gateways.wait_until(
            "the revocation takes effect", partial(_is_detached, gateways, foo, guest, hostname, change)
        )
        durations.append(time.monotonic() - started)
    assert statistics.median(durations) < pace.limit(MAX_SECONDS), durations


def _is_detached(gateways: Gateways, owner: str, guest: str, hostname: str, change: AttachmentChange) -> bool:
    """Without the label no listener admits the namespace; without the reference its route has no listener."""
    if change is _change_by_route:
        return not serves(gateways, owner, hostname)
    return gateways.attachment(guest) == (None, None)


def test_the_listener_of_an_inheriting_namespace_is_removed_with_its_label(gateways: Gateways, foo: str) -> None:
    heir = gateways.create_namespace("heir", labels={LABEL: foo, HOST_LABEL: f"heir.{APEX}"})
    gateways.create_tenantgateway(foo, APEX, **DNS01)
    gateways.wait_until("the inheriting namespace has a listener", partial(serves, gateways, foo, f"*.heir.{APEX}"))
    gateways.patch_labels(heir, {LABEL: None})
    gateways.wait_until("its listener is removed", lambda: not serves(gateways, foo, f"*.heir.{APEX}"))
    certificate = "cozystack-gateway-tls"
    gateways.wait_until("there is a certificate", lambda: gateways.names("certificates", foo) == [certificate])
    gateways.wait_until(
        "its hostname is removed from the certificate",
        lambda: f"heir.{APEX}" not in gateways.get("certificates", foo, certificate)["spec"]["dnsNames"],
    )


@pytest.mark.controller_manager
def test_a_recreated_namespace_is_attached_only_by_the_list(gateways: Gateways, foo: str) -> None:
    """The list names the namespace, so it is attached again; an attachment by label alone ends with the namespace."""
    listed, labelled = gateways.create_namespace("listed"), gateways.create_namespace("labelled", labels={LABEL: foo})
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[listed])
    gateways.wait_until("the listed one is attached", lambda: gateways.attachment(listed) == (foo, foo))
    for guest in (listed, labelled):
        gateways.create_route(guest, "app", f"{guest}.{APEX}", to=foo)
        gateways.wait_until("its route has a listener", partial(serves, gateways, foo, f"{guest}.{APEX}"))
    for guest in (listed, labelled):
        gateways.client.request("DELETE", f"/api/v1/namespaces/{guest}").expect(200)
        gateways.wait_until("the namespace is deleted", partial(_is_gone, gateways, guest))
        gateways.wait_until("its route has no listener", partial(_is_not_served, gateways, foo, f"{guest}.{APEX}"))
        gateways.create_named_namespace(guest)
    gateways.wait_until("the listed one is attached again", lambda: gateways.attachment(listed) == (foo, foo))
    assert gateways.attachment(labelled) == (None, None)
    assert gateways.listener_hostnames(foo) == []


def _is_not_served(gateways: Gateways, namespace: str, hostname: str) -> bool:
    return not serves(gateways, namespace, hostname)


def _is_gone(gateways: Gateways, namespace: str) -> bool:
    return gateways.client.get(f"/api/v1/namespaces/{namespace}").status == 404

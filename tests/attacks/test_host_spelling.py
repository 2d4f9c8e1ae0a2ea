"""ATTACK-08: taking over a foreign host by another spelling, or by another way to set it.

The permission to set hosts is tested in tests/e2e/admission/test_host_policy.py, spellings of hostnames of listeners
and routes in the table of tests/policies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.gateways import GATEWAY_API, LABEL, Gateways, path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH, helmrelease_path
from tests.e2e.support.tenants import Object, Tenants, manifest

APPLY_QUERY = {"fieldManager": "attacker", "force": "true"}
# of victim.{}, where {} is a domain of the test
SPELLINGS = [
    pytest.param("Victim.{}", id="upper case"),
    pytest.param("VICTIM.{}", id="all upper case"),
    pytest.param("victim.{}.", id="trailing dot"),
    pytest.param("victim.{}..", id="two trailing dots"),
    pytest.param(".victim.{}", id="leading dot"),
    pytest.param("victim..{}", id="empty label"),
    pytest.param("*.victim.{}", id="wildcard"),
    pytest.param("*.{}", id="wildcard of the parent"),
    pytest.param("vic*.{}", id="wildcard in a label"),
    pytest.param("*", id="a star"),
    pytest.param("v\u0456ctim.{}", id="Cyrillic i"),
    pytest.param("\uff56ictim.{}", id="full width"),
    pytest.param("victim\u3002{}", id="ideographic dot"),
    pytest.param("vic\u00adtim.{}", id="soft hyphen"),
    pytest.param("vic\u200btim.{}", id="zero width space"),
    pytest.param("v\u0130ctim.{}", id="Turkish I"),
    pytest.param("stra\u00dfe.{}", id="sharp s"),
    pytest.param(" victim.{}", id="space before"),
    pytest.param("victim.{} ", id="space behind"),
    pytest.param("vic tim.{}", id="space"),
    pytest.param("victim.{}\t", id="tab"),
    pytest.param("victim.{}\n", id="line break"),
    pytest.param("victim.{}\0", id="NUL"),
    pytest.param("victim.{}\0.attacker.example", id="NUL in between"),
    pytest.param("vic%74im.{}", id="percent"),
    pytest.param("victim.{}:443", id="port"),
    pytest.param("https://victim.{}", id="URL"),
    pytest.param("victim.{}/x", id="path"),
    pytest.param("me@victim.{}", id="user"),
    pytest.param("victim.{},attacker.example", id="list"),
    pytest.param("-victim.{}", id="dash first"),
    pytest.param("victim-.{}", id="dash last"),
    pytest.param("vic_tim.{}", id="underscore"),
    pytest.param(f"{'v' * 64}.{{}}", id="label of 64"),
    pytest.param(f"{'.'.join(['v' * 61] * 4)}.{{}}", id="over 253"),
    pytest.param("192.0.2.1", id="IPv4 address"),
    pytest.param("[2001:db8::1]", id="IPv6 address"),
]


def update_host(client: Client, namespace: str, name: str, host: Any) -> Iterator[tuple[str, Response]]:
    """Sets the host of an existing Tenant in every possible way; yields each way with its response."""
    target = tenants_path(namespace, name)
    replaced = [{"op": "add", "path": "/spec/host", "value": host}]
    applied = configuration(name, spec={"host": host})
    yield "PUT", client.request("PUT", target, manifest(name, namespace, spec={"host": host}))
    yield "merge patch", client.request("PATCH", target, {"spec": {"host": host}}, content_type=MERGE)
    yield "JSON patch", client.request("PATCH", target, replaced, content_type=JSON_PATCH)
    yield "apply", client.request("PATCH", target, applied, query=APPLY_QUERY, content_type=APPLY)
    for subresource in ("status", "finalize"):
        path_of_subresource = tenants_path(namespace, name, subresource)
        yield subresource, client.request("PATCH", path_of_subresource, {"spec": {"host": host}}, content_type=MERGE)


def create_with_host(client: Client, tenants: Tenants, namespace: str, host: Any) -> Iterator[tuple[str, Response]]:
    """Creates a Tenant with the host in every possible way; yields each way with its response."""
    created, applied = tenants.new_name(namespace), tenants.new_name(namespace)
    yield "create", client.request("POST", tenants_path(namespace), manifest(created, namespace, spec={"host": host}))
    body = configuration(applied, spec={"host": host})
    target = tenants_path(namespace, applied)
    yield "create by apply", client.request("PATCH", target, body, query=APPLY_QUERY, content_type=APPLY)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings_of_a_host_are_rejected(
    cluster: E2eCluster, tenants: Tenants, unique: str, spelling: str
) -> None:
    """Even the administrator, who may set any host, gets an error for any but the canonical spelling."""
    written, name = spelling.replace("{}", f"{unique}.example"), tenants.create()["metadata"]["name"]
    client = cluster.client()
    answers = [*create_with_host(client, tenants, ROOT, written), *update_host(client, ROOT, name, written)]
    for how, answer in answers:
        expected = {403, 404, 405} if how in ("status", "finalize") else {422}
        assert answer.status in expected, (how, answer.body)
    assert tenants.get(name)["spec"]["host"] == ""
    assert client.get(helmrelease_path(name)).expect(200)["spec"]["values"].get("host", "") == ""


@pytest.mark.parametrize("wrong", [["victim.example"], {"a": "b"}, 5, True], ids=repr)
def test_a_host_must_be_a_string(cluster: E2eCluster, tenants: Tenants, wrong: Any) -> None:
    client = cluster.client()
    for how, answer in create_with_host(client, tenants, ROOT, wrong):
        assert answer.status in (400, 422), (how, answer.body)


def test_a_host_written_to_the_helmrelease_is_not_normalized(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """A write of the HelmRelease bypasses our admission: another spelling of a host never becomes a label value, but
    still keeps other Tenants from having the host."""
    client, name, written = cluster.client(), tenants.create()["metadata"]["name"], f"Victim.{unique}.Example."
    release = {"spec": {"values": {"host": written}}}
    client.request("PATCH", helmrelease_path(name), release, content_type=MERGE).expect(200)
    tenants.wait("the Tenant shows the host", lambda: tenants.get(name)["spec"]["host"] == written)
    namespace = tenants.wait_until_settled(name)["status"]["namespace"]
    label = "namespace.cozystack.io/host"

    def labels() -> Object:
        found: Object = client.get(f"/api/v1/namespaces/{namespace}").expect(200)["metadata"]["labels"]
        return found

    tenants.wait("the label has no other spelling", lambda: labels().get(label) in (None, written.lower().rstrip(".")))
    duplicate = manifest(tenants.new_name(), spec={"host": written.lower().rstrip(".")})
    assert client.request("POST", tenants_path(ROOT), duplicate).status == 422


def test_tenant_admins_cannot_set_change_or_clear_a_host(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, unique: str
) -> None:
    """An administrator of the tenant can neither set, change nor clear a host, whether it is empty or not."""
    theirs, own = f"bob.{unique}.example", f"alice.{unique}.example"
    tenants.patch(bob.child, {"spec": {"host": theirs}}, bob.namespace)
    for now in ("", own, ""):
        tenants.patch(alice.child, {"spec": {"host": now}}, alice.namespace)
        for wanted in (theirs, f"x.{theirs}", theirs.upper(), own, "", None):
            if wanted == now or (wanted is None and not now):
                continue
            for how, answer in update_host(alice.client, alice.namespace, alice.child, wanted):
                expected = (403, 404, 405) if how in ("status", "finalize") else (403, 422)
                assert answer.status in expected, (now, wanted, how, answer.body)
                assert tenants.get(alice.child, alice.namespace)["spec"]["host"] == now
    for wanted in (theirs, own, theirs.upper()):
        for how, answer in create_with_host(alice.client, tenants, alice.namespace, wanted):
            assert answer.status in (403, 422), (wanted, how, answer.body)


def test_no_two_tenants_have_the_same_host_explicit_or_inherited(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """A duplicate is rejected in a creation, an update, an update of the parent, and as an inherited host."""
    client, apex = cluster.client(), f"{unique}.example"
    parent = tenants.create(spec={"host": apex})
    namespace = parent["status"]["namespace"]
    tenants.wait_for_namespace(namespace)
    inherited, custom = tenants.new_name(namespace), f"custom.{apex}"
    client.request("POST", tenants_path(namespace), manifest(inherited, namespace)).expect(201)
    tenants.create(spec={"host": custom})
    other = tenants.create()["metadata"]["name"]
    for taken in (apex, f"{inherited}.{apex}", custom):
        for how, answer in (*create_with_host(client, tenants, ROOT, taken), *update_host(client, ROOT, other, taken)):
            expected = (404, 405) if how in ("status", "finalize") else (422,)
            assert answer.status in expected, (taken, how, answer.body)
    # a Tenant whose inherited host is taken
    by_name = client.request("POST", tenants_path(namespace), manifest("custom", namespace))
    assert by_name.status == 422, by_name.body
    # a new host of the parent that makes the inherited host of its child a duplicate
    elsewhere = tenants.create()
    inside = elsewhere["status"]["namespace"]
    tenants.wait_for_namespace(inside)
    client.request("POST", tenants_path(inside), manifest("custom2", inside)).expect(201)
    tenants.create(spec={"host": f"custom2.new.{apex}"})
    moved = {"spec": {"host": f"new.{apex}"}}
    answer = client.request("PATCH", tenants_path(ROOT, elsewhere["metadata"]["name"]), moved, content_type=MERGE)
    assert answer.status == 422, answer.body
    client.request("DELETE", tenants_path(inside, "custom2"))


def test_only_one_of_many_concurrent_creations_gets_a_host(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    client, wanted = cluster.client(), f"{unique}.example"
    bodies = [manifest(tenants.new_name(), spec={"host": wanted}) for _ in range(12)]
    with ThreadPoolExecutor(len(bodies)) as pool:
        statuses = Counter(pool.map(lambda body: client.request("POST", tenants_path(ROOT), body).status, bodies))
    assert statuses == {201: 1, 422: len(bodies) - 1}


def test_suffixes_of_hostnames_are_compared_by_label(gateways: Gateways, unique: str) -> None:
    """Suffixes end at a label: `evilvictim.example` is not below `victim.example`."""
    apex = f"{unique}.example"
    foo = gateways.create_owner(host=apex)
    app = gateways.create_namespace("app", labels={LABEL: foo})
    gateways.create_tenantgateway(foo, apex)
    bad = [f"evil{apex}", f"evil-{apex}", f"{apex}.evil.example", f"x.{apex}.evil.example", "example", "*.example"]
    for number, hostname in enumerate((*bad, f"{apex.upper()}.", f".{apex}", f"x.{apex}.")):
        spec = {"parentRefs": [{"namespace": foo, "name": "cozystack", "port": 443}], "hostnames": [hostname]}
        body = {"apiVersion": GATEWAY_API, "kind": "HTTPRoute", "metadata": {"name": f"bad-{number}"}, "spec": spec}
        answer = gateways.client.request("POST", path("httproutes", app), body)
        # the CRD of a real cluster rejects invalid hostnames
        assert answer.status in (201, 422), answer.body
    gateways.create_route(app, "good", f"x.{apex}", to=foo, port=443)
    gateways.wait_until("the good one has a listener", lambda: f"x.{apex}" in gateways.listener_hostnames(foo))
    gateways.wait_until("a condition names the others", lambda: "HostnamesLeftOut" in gateways.conditions(foo))
    # other spellings of a hostname below the domain are the same hostname
    assert set(gateways.listener_hostnames(foo)) <= {f"x.{apex}", apex}
    message = gateways.conditions(foo)["HostnamesLeftOut"]["message"]
    assert f'"evil{apex}"' in message

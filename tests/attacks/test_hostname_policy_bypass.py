"""ATTACK-09: a route or a listener that the hostname policies do not cover.

The kinds and versions come from discovery, so that these tests notice new ones. The messages of the policies are
tested by the table of tests/policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.attacks.support.policy_layers import policies_installed
from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import APPLY, MERGE
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.gateways import LABEL, Gateways
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import Object, Tenants

GROUP = "gateway.networking.k8s.io"
LISTENER_KINDS, ROUTE_KINDS = ("Gateway", "ListenerSet"), ("HTTPRoute", "GRPCRoute", "TLSRoute")
# kinds without hostnames are not subject to the policies
KINDS_WITHOUT_HOSTNAMES = {"GatewayClass", "ReferenceGrant", "BackendTLSPolicy", "TCPRoute", "UDPRoute"}
APPLY_QUERY = {"fieldManager": "attacker", "force": "true"}


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind of the Gateway API in one of its served versions."""

    version: str
    kind: str
    plural: str

    def path(self, namespace: str, name: str = "") -> str:
        return f"/apis/{GROUP}/{self.version}/namespaces/{namespace}/{self.plural}{name and '/'}{name}"

    def body(self, name: str, hostnames: list[str] | None, parent: Mapping[str, Any]) -> Object:
        """An object with these hostnames, in its listeners or in the route's spec. None omits the field."""
        metadata = {"apiVersion": f"{GROUP}/{self.version}", "kind": self.kind, "metadata": {"name": name}}
        if self.kind in LISTENER_KINDS:
            return {**metadata, "spec": {**self._parent(parent), "listeners": list(_listeners(hostnames))}}
        named = {} if hostnames is None else {"hostnames": hostnames}
        rules = [{"backendRefs": [{"name": "backend", "port": 443}]}]
        return {**metadata, "spec": {"parentRefs": [dict(parent)], "rules": rules, **named}}

    def _parent(self, parent: Mapping[str, Any]) -> Object:
        return {"gatewayClassName": "cilium"} if self.kind == "Gateway" else {"parentRef": {"name": parent["name"]}}


def _listeners(hostnames: list[str] | None) -> Iterator[Object]:
    for number, hostname in enumerate(hostnames or [""]):
        named = {"hostname": hostname} if hostname else {}
        yield {"name": f"l{number}", "port": 80 + number, "protocol": "HTTP", **named}


def discover_kinds(client: Client) -> list[ServedKind]:
    versions = client.get(f"/apis/{GROUP}").expect(200)["versions"]
    found = []
    for version in (each["version"] for each in versions):
        resources = client.get(f"/apis/{GROUP}/{version}").expect(200)["resources"]
        found += [ServedKind(version, each["kind"], each["name"]) for each in resources if "/" not in each["name"]]
    return found


@pytest.fixture(scope="module")
def kinds(cluster: E2eCluster) -> Iterator[list[ServedKind]]:
    """The kinds with hostnames; the policies are installed until the end of the module."""
    with policies_installed(cluster):
        yield [each for each in discover_kinds(cluster.client()) if each.kind not in KINDS_WITHOUT_HOSTNAMES]


@pytest.fixture
def writer(cluster: E2eCluster, alice: TenantAdmin, tenants: Tenants, kinds: list[ServedKind]) -> TenantAdmin:
    """alice as an administrator of all kinds in her namespace, a permission that tenants do not get: only the policies
    restrict her."""
    tenants.wait_until_settled(alice.tenant)
    cluster.grant(alice.user, "cluster-admin", alice.namespace)
    for each in kinds:
        wait_until(f"the policies are enforced for {each}", partial(_is_enforced, alice, each))
    return alice


def _is_enforced(party: TenantAdmin, each: ServedKind) -> bool:
    bad = each.body("probe", ["victim.example"], {"name": "cozystack"})
    return _is_denied_by_policy(party.client.request("POST", each.path(party.namespace), bad, query={"dryRun": "All"}))


def _is_denied_by_policy(answer: Response) -> bool:
    return answer.status == 403 and "ValidatingAdmissionPolicy 'cozystack-" in answer.json()["message"]


def host_of(party: TenantAdmin, tenants: Tenants) -> str:
    host: str = tenants.wait_until_settled(party.tenant)["status"]["host"]["value"]
    return host


def test_the_policies_cover_every_kind_and_version(
    cluster: E2eCluster, writer: TenantAdmin, kinds: list[ServedKind]
) -> None:
    """cozystack#3868, #4066: a foreign hostname is denied in each served kind and version. The test fails if the
    cluster serves a kind that it does not know."""
    assert {each.kind for each in discover_kinds(cluster.client())} <= {
        *LISTENER_KINDS,
        *ROUTE_KINDS,
        *KINDS_WITHOUT_HOSTNAMES,
    }
    assert {each.kind for each in kinds} == {*LISTENER_KINDS, *ROUTE_KINDS}
    assert len(kinds) > len({each.kind for each in kinds})
    for each in kinds:
        body = each.body("dodge", ["victim.example"], {"name": "cozystack"})
        assert _is_denied_by_policy(writer.client.request("POST", each.path(writer.namespace), body)), each


def hostnames(own: str, bob: str) -> Iterator[tuple[str, list[str] | None]]:
    parent = own.partition(".")[2]
    yield "none", None
    yield "an empty list", []
    yield "an empty name", [""]
    yield "a star", ["*"]
    yield "a wildcard of everything", ["*.example"]
    yield "the wildcard of the parent", [f"*.{parent}"]
    yield "the parent", [parent]
    yield "a sibling", [bob]
    yield "below a sibling", [f"www.{bob}"]
    yield "a wildcard of a sibling", [f"*.{bob}"]
    yield "a suffix without a dot", [f"evil{own}"]
    yield "its own after a foreign one", ["victim.example", own]
    yield "a foreign one after its own", [own, "victim.example"]
    yield "its own as a prefix", [f"{own}.victim.example"]
    yield "upper case of a sibling", [bob.upper()]
    yield "a sibling's with a dot", [f"{bob}."]


def test_foreign_hostnames_are_denied(
    writer: TenantAdmin, bob: TenantAdmin, kinds: list[ServedKind], tenants: Tenants
) -> None:
    own, theirs = host_of(writer, tenants), host_of(bob, tenants)
    for each in kinds:
        for description, wanted in hostnames(own, theirs):
            if each.kind == "Gateway" and not any(wanted or ()):
                # the redirect listener on port 80 has no hostname; layer 1 limits which routes attach to it
                continue
            body = each.body("dodge", wanted, {"name": "cozystack"})
            answer = writer.client.request("POST", each.path(writer.namespace), body)
            # the schema of the kind rejects invalid hostnames
            assert answer.status in (403, 422), (each, description, answer.body)
        assert writer.client.get(each.path(writer.namespace, "dodge")).status == 404
        for number, good in enumerate(([own], [f"www.{own}"], [f"*.{own}"])):
            body = each.body(f"good{number}", good, {"name": "cozystack"})
            created = writer.client.request("POST", each.path(writer.namespace), body, query={"dryRun": "All"})
            assert created.status == 201, (each, good, created.body)


def test_foreign_hostnames_are_denied_in_updates_through_every_version(
    writer: TenantAdmin, kinds: list[ServedKind], tenants: Tenants
) -> None:
    """An object created in one version is updated through each other one, by PUT and by every kind of patch."""
    own, bad = host_of(writer, tenants), ["victim.example"]
    for created_as in kinds:
        name = f"crossing-{created_as.version}"
        body = created_as.body(name, [f"www.{own}"], {"name": "cozystack"})
        writer.client.request("POST", created_as.path(writer.namespace), body).expect(201)
        for updated_as in (each for each in kinds if each.kind == created_as.kind):
            target = updated_as.path(writer.namespace, name)
            changed = updated_as.body(name, bad, {"name": "cozystack"})
            replaced = [{"op": "replace", "path": "/spec", "value": changed["spec"]}]
            answers = {
                "PUT": writer.client.update(target, partial(_with_spec, changed["spec"])),
                "merge patch": writer.client.request("PATCH", target, {"spec": changed["spec"]}, content_type=MERGE),
                "JSON patch": writer.client.request(
                    "PATCH", target, replaced, content_type="application/json-patch+json"
                ),
                "apply": writer.client.request("PATCH", target, changed, query=APPLY_QUERY, content_type=APPLY),
            }
            for how, answer in answers.items():
                assert _is_denied_by_policy(answer), (created_as, updated_as, how, answer.body)


def _with_spec(spec: Object, obj: Object) -> Object:
    return {**obj, "spec": spec}


def test_a_route_to_a_foreign_gateway_is_not_admitted(
    cluster: E2eCluster, writer: TenantAdmin, tenants: Tenants, gateways: Gateways
) -> None:
    """The Gateway gets no listener for the route, and its listeners do not admit the namespace, whichever section or
    port the route names."""
    own = host_of(writer, tenants)
    victim = gateways.create_owner("tenant-victim", "victim.example")
    gateways.create_tenantgateway(victim, "victim.example")
    gateways.create_route(victim, "mine", "www.victim.example", to=victim, port=443)
    gateways.wait_until(
        "the victim has a listener", lambda: gateways.listener_hostnames(victim) == ["www.victim.example"]
    )
    [listener] = [each["name"] for each in gateways.get("gateways", victim)["spec"]["listeners"] if each["port"] == 443]
    parents: list[dict[str, Any]] = [
        {},
        {"sectionName": "http"},
        {"sectionName": listener},
        {"port": 443},
        {"port": 80, "sectionName": "http"},
        {"port": 443, "sectionName": listener},
    ]
    for number, more in enumerate(parents):
        spec = {"parentRefs": [{"namespace": victim, "name": "cozystack", **more}], "hostnames": [f"n{number}.{own}"]}
        body = {"apiVersion": f"{GROUP}/v1", "kind": "HTTPRoute", "metadata": {"name": f"n{number}"}, "spec": spec}
        writer.client.request("POST", f"/apis/{GROUP}/v1/namespaces/{writer.namespace}/httproutes", body).expect(201)
    # the controller has seen the routes above once a later route of the victim has its listener
    gateways.create_route(victim, "later", "later.victim.example", to=victim, port=443)
    gateways.wait_until(
        "the later route has a listener", lambda: "later.victim.example" in gateways.listener_hostnames(victim)
    )
    assert gateways.listener_hostnames(victim) == ["later.victim.example", "www.victim.example"]
    labels = cluster.client().get(f"/api/v1/namespaces/{writer.namespace}").expect(200)["metadata"]["labels"]
    for each in gateways.get("gateways", victim)["spec"]["listeners"]:
        assert not _admits(each, writer.namespace, labels), each


def _admits(listener: Object, namespace: str, labels: Mapping[str, str]) -> bool:
    """Evaluates the selector as a Gateway controller does; fails for any but the two known forms."""
    allowed = listener["allowedRoutes"]["namespaces"]
    assert allowed["from"] == "Selector"
    selector = allowed["selector"]
    matched = selector.get("matchLabels") or {}
    if matched:
        assert set(matched) == {LABEL}
        assert not selector.get("matchExpressions")
        return bool(labels.get(LABEL) == matched[LABEL])
    [expression] = selector["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "In")
    return bool(namespace in expression["values"])

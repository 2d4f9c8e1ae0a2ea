"""Parsing of well-formed and malformed objects, and classification of errors."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.tenantgateway import parse
from controller.tenantgateway.collected_errors import CollectedErrors
from controller.tenantgateway.consent.references import slim_route
from controller.tenantgateway.hostname_validation import HostnameRejection
from controller.tenantgateway.model import InheritingNamespace, ParentRef, RouteId
from controller.tenantgateway.names import CONTROLLER_NAME
from controller.tenantgateway.route_status import reject, route_parents
from registry.cluster.interface import ClusterUnreachable, NotServed
from tests.controller.tenantgateway.gateway_world import GATEWAY_API, OURS, api_error

HOME = Key("home", "cozystack")


def tenantgateway(**spec: Any) -> Object:
    metadata = {"namespace": "tenant-foo", "name": "cozystack", "uid": "u", "generation": 3}
    return {"metadata": metadata, "spec": {"apex": "foo.example.com", **spec}}


def test_a_valid_tenantgateway_is_parsed() -> None:
    dns01 = {"provider": "route53", "route53": {"region": "eu-west-1"}}
    parsed = parse.tenantgateway(
        tenantgateway(
            certMode="dns01",
            dns01=dns01,
            issuerName="mine",
            attachedNamespaces=["a", "b"],
            tlsPassthroughServices=["api"],
            gatewayClassName="envoy",
            wildcardSecretRef={"name": "bought"},
        )
    )
    assert parsed.problem == ""
    found = parsed.gateway
    assert (found.key, found.uid, found.generation) == (Key("tenant-foo", "cozystack"), "u", 3)
    assert (found.cert_mode, found.dns01, found.issuer_name) == ("dns01", dns01, "mine")
    assert (found.attached, found.passthrough) == (("a", "b"), ("api",))
    assert (found.class_name, found.wildcard_secret, found.terminating) == ("envoy", "bought", False)


@pytest.mark.parametrize(
    ("reference", "namespace"),
    [
        pytest.param({"name": "a"}, "", id="none"),
        pytest.param({"name": "a", "namespace": "tenant-foo"}, "", id="its own"),
        pytest.param({"name": "a", "namespace": "vault"}, "vault", id="another"),
    ],
)
def test_the_namespace_of_the_wildcard_secret(reference: Object, namespace: str) -> None:
    found = parse.tenantgateway(tenantgateway(certMode="existingSecret", wildcardSecretRef=reference))
    assert (found.problem, found.gateway.wildcard_secret_namespace) == ("", namespace)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"apex": None}, "spec.apex", id="no apex"),
        pytest.param({"apex": ["x"]}, "spec.apex", id="an apex that is a list"),
        pytest.param({"apex": "bad_host"}, "spec.apex", id="an apex that is not a domain"),
        pytest.param({"attachedNamespaces": [1, "a"]}, "spec.attachedNamespaces.0", id="a number for a namespace"),
        pytest.param({"dns01": "cloudflare"}, "spec.dns01", id="text instead of the dns01 block"),
        pytest.param({"wildcardSecretRef": {}}, "spec.wildcardSecretRef.name", id="a Secret without a name"),
    ],
)
def test_an_invalid_field_is_named_in_the_problem(spec: dict[str, Any], problem: str) -> None:
    parsed = parse.tenantgateway(tenantgateway(**spec))
    assert parsed.problem.startswith(problem)
    assert parsed.gateway.key == Key("tenant-foo", "cozystack")


def test_valid_entries_of_a_malformed_list_are_used() -> None:
    """A namespace must not lose its label because another entry is malformed."""
    assert parse.tenantgateway(tenantgateway(attachedNamespaces=[1, "a"])).gateway.attached == ("a",)


def test_a_tenantgateway_without_a_spec_has_a_problem() -> None:
    parsed = parse.tenantgateway({"metadata": {"namespace": "n", "name": "x", "uid": "u"}})
    assert (parsed.gateway.apex, parsed.gateway.generation) == ("", 0)
    assert parsed.problem


@pytest.mark.parametrize(
    ("parent", "gateway"),
    [
        pytest.param({"name": "cozystack"}, HOME, id="its own namespace"),
        pytest.param({"name": "g", "namespace": "n"}, Key("n", "g"), id="another namespace"),
        pytest.param(
            {"name": "g", "group": "gateway.networking.k8s.io", "kind": "Gateway"},
            Key("home", "g"),
            id="group and kind given",
        ),
        pytest.param({"name": "g", "kind": "Service", "group": ""}, None, id="a Service"),
        pytest.param({"name": "g", "kind": "ListenerSet"}, None, id="a ListenerSet"),
        pytest.param({"name": "g", "group": "x.example"}, None, id="another group"),
        pytest.param({"namespace": "n"}, None, id="no name"),
        pytest.param({"name": 7}, None, id="a number for a name"),
    ],
)
def test_a_parent_reference_is_resolved_to_a_gateway(parent: Object, gateway: Key | None) -> None:
    """R-100."""
    assert parse.parent_gateway(parent, "home") == gateway


def route(*parents: Any, status: Any = None, **spec: Any) -> Object:
    obj: Object = {"metadata": {"namespace": "home", "name": "r"}, "spec": {"parentRefs": list(parents), **spec}}
    return obj if status is None else {**obj, "status": status}


def test_a_route_is_split_by_the_gateways_that_it_refers_to() -> None:
    obj = route(
        {"name": "a", "sectionName": "https"}, {"name": "b", "port": 443}, {"name": "a"}, hostnames=["x.example", 3]
    )
    found = parse.routes_by_gateway(obj, "TLSRoute")
    assert found.keys() == {Key("home", "a"), Key("home", "b")}
    one = found[Key("home", "a")]
    assert (one.id, one.hostnames) == (RouteId("home", "r", "TLSRoute"), ("x.example",))
    assert one.parents == (ParentRef(section="https"), ParentRef())
    assert found[Key("home", "b")].parents == (ParentRef(port=443),)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"metadata": {"namespace": "n", "name": "r"}}, id="no spec"),
        pytest.param(route("x", 7, None), id="references that are not objects"),
        pytest.param({**route(), "spec": {"parentRefs": {"name": "a"}}}, id="references that are not a list"),
        pytest.param({**route(), "spec": "x", "status": []}, id="text instead of spec and status"),
    ],
)
def test_a_malformed_route_refers_to_nothing(obj: Object) -> None:
    assert parse.routes_by_gateway(obj, "HTTPRoute") == {}
    assert list(parse.gateways_in_status(obj)) == []


def test_only_status_entries_of_this_controller_are_indexed() -> None:
    entries = [
        {"controllerName": OURS, "parentRef": {"name": "a"}},
        {"controllerName": "somebody/else", "parentRef": {"name": "b"}},
        {"controllerName": OURS, "parentRef": {"kind": "Service", "name": "c"}},
        {"controllerName": OURS},
    ]
    assert list(parse.gateways_in_status(route(status={"parents": entries}))) == [Key("home", "a")]


@pytest.mark.parametrize(
    ("labels", "inheriting_namespace"),
    [
        pytest.param(
            {"gateway": "tenant-foo", "host": "a.example"},
            InheritingNamespace("n", "a.example"),
            id="an inheriting namespace",
        ),
        pytest.param({"gateway": "tenant-foo"}, InheritingNamespace("n", ""), id="a system namespace"),
        pytest.param({"gateway": "n", "host": "a.example"}, None, id="the owner itself"),
        pytest.param({"host": "a.example"}, None, id="no label"),
        pytest.param({"gateway": ""}, None, id="an empty label"),
    ],
)
def test_a_namespace_inherits_the_gateway_that_its_label_names(
    labels: dict[str, str], inheriting_namespace: InheritingNamespace | None
) -> None:
    """R-104, R-175."""
    metadata = {"name": "n", "labels": {f"namespace.cozystack.io/{key}": value for key, value in labels.items()}}
    assert parse.inheriting_namespace({"metadata": metadata}) == (
        ("tenant-foo", inheriting_namespace) if inheriting_namespace else None
    )


def test_a_namespace_that_is_being_deleted_inherits_nothing() -> None:
    """R-179: its DNS names leave the Certificate at once."""
    labels = {"namespace.cozystack.io/gateway": "tenant-foo", "namespace.cozystack.io/host": "a.example"}
    metadata = {"name": "n", "labels": labels, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert parse.inheriting_namespace({"metadata": metadata}) is None


@pytest.mark.parametrize(("name", "keeps_rules"), [("app", False), ("cozystack-http-redirect", True)])
def test_only_redirects_keep_their_rules_in_the_store(name: str, keeps_rules: bool) -> None:
    obj = {**route({"name": "a"}, rules=[{"backendRefs": []}]), "metadata": {"namespace": "n", "name": name}}
    assert ("rules" in slim_route(obj)["spec"]) == keeps_rules
    assert "rules" in obj["spec"]


@pytest.mark.parametrize(
    ("error", "messages"),
    [
        pytest.param(api_error(), ["x: denied by a policy"], id="forbidden"),
        pytest.param(api_error(500), ["x: denied by a policy"], id="failing webhook"),
        pytest.param(api_error(409), [], id="conflict"),
        pytest.param(api_error(429), [], id="too many requests"),
        pytest.param(ClusterUnreachable(), [], id="unreachable"),
        pytest.param(NotServed(), ["x: kube-apiserver does not serve the kind"], id="kind no longer served"),
    ],
)
def test_transient_errors_have_no_message_and_all_errors_are_retried(error: Any, messages: list[str]) -> None:
    errors = CollectedErrors()
    with errors.collecting("x"):
        raise error
    assert (errors.messages, errors.api_errors) == (messages, [error])


def test_exceptions_other_than_api_errors_propagate() -> None:
    errors = CollectedErrors()
    with pytest.raises(KeyError), errors.collecting("x"):
        raise KeyError
    assert errors.api_errors == []


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        pytest.param({"name": "a"}, (GATEWAY_API, "Gateway", "tenant-x", "a"), id="only a name"),
        pytest.param(
            {"group": None, "kind": None, "namespace": None, "name": "a"},
            (GATEWAY_API, "Gateway", "tenant-x", "a"),
            id="null",
        ),
        pytest.param({"kind": "", "namespace": "", "name": "a"}, (GATEWAY_API, "Gateway", "tenant-x", "a"), id="empty"),
        pytest.param({"group": "", "kind": "Service", "name": "a"}, ("", "Service", "tenant-x", "a"), id="core"),
        pytest.param({"kind": "HTTPRoute", "name": "a"}, (GATEWAY_API, "HTTPRoute", "tenant-x", "a"), id="a route"),
        pytest.param({"group": "g", "namespace": "n", "name": "a"}, ("g", "Gateway", "n", "a"), id="another group"),
        pytest.param({}, (GATEWAY_API, "Gateway", "tenant-x", ""), id="no name"),
    ],
)
def test_a_parent_ref_has_the_defaults_of_gateway_api(parent: Object, expected: tuple[str, ...]) -> None:
    """The result is the same if the cluster has filled them in."""
    assert parse.parent_target(parent, "tenant-x") == expected
    group, kind, namespace, name = expected
    is_gateway = (group, kind) == (GATEWAY_API, "Gateway") and bool(name)
    assert parse.parent_gateway(parent, "tenant-x") == (Key(namespace, name) if is_gateway else None)


@pytest.mark.parametrize("group", [{}, {"group": GATEWAY_API}], ids=["omitted", "filled in"])
@pytest.mark.parametrize("kind", [{}, {"kind": "Gateway"}], ids=["no kind", "a kind"])
@pytest.mark.parametrize("namespace", [{}, {"namespace": "tenant-x"}], ids=["no namespace", "a namespace"])
def test_the_same_parent_has_one_entry_however_it_is_written(group: Object, kind: Object, namespace: Object) -> None:
    """The cluster fills in group and kind of a parentRef in the spec; of one in a status it may not."""
    written = {"name": "cozystack", **group, **kind, **namespace}
    theirs = {"parentRef": {"name": "cozystack"}, "controllerName": CONTROLLER_NAME, "conditions": []}
    route = {
        "metadata": {"namespace": "tenant-x", "name": "r", "generation": 1},
        "spec": {"parentRefs": [written]},
        "status": {"parents": [theirs]},
    }
    rejected = reject(written, HostnameRejection("Orphaned", "gone"))
    parents = route_parents(route, [rejected], is_undecided=lambda _: False, now="2026-01-01T00:00:00Z")
    assert parents is not None
    assert [each["parentRef"] for each in parents] == [written]

"""The kinds of the embedded cluster: the resources served, and the validation and defaults of each kind."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key
from apiserver.request.options import DeleteOptions
from apiserver.schema.pruning_and_defaulting import apply_defaults, object_schema
from registry.embedded.api_groups import KINDS
from tests.registry.embedded.embedded_storages import EmbeddedApi, no_admission, request_context

GATEWAYS = "gateway.networking.k8s.io"
SPEC = {"interval": "1m", "chartRef": {"kind": "OCIRepository", "name": "chart"}}
EXPECTED = {
    ("", "v1"): {
        "namespaces",
        "secrets",
        "configmaps",
        "services",
        "events",
        "serviceaccounts",
        "resourcequotas",
        "limitranges",
    },
    ("events.k8s.io", "v1"): {"events"},
    ("rbac.authorization.k8s.io", "v1"): {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
    ("coordination.k8s.io", "v1"): {"leases"},
    ("admissionregistration.k8s.io", "v1"): {
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    },
    ("apiregistration.k8s.io", "v1"): {"apiservices"},
    ("networking.k8s.io", "v1"): {"networkpolicies", "ingresses"},
    ("helm.toolkit.fluxcd.io", "v2"): {"helmreleases"},
    ("gateway.cozystack.io", "v1alpha1"): {"tenantgateways"},
    (GATEWAYS, "v1"): {
        "gateways",
        "gatewayclasses",
        "httproutes",
        "grpcroutes",
        "tlsroutes",
        "referencegrants",
        "listenersets",
    },
    (GATEWAYS, "v1beta1"): {"gateways", "gatewayclasses", "httproutes", "referencegrants"},
    (GATEWAYS, "v1alpha2"): {"tlsroutes"},
    (GATEWAYS, "v1alpha3"): {"tlsroutes"},
    ("cert-manager.io", "v1"): {"issuers", "clusterissuers", "certificates"},
    ("cozystack.io", "v1alpha1"): {"applicationdefinitions", "workloads", "workloadmonitors"},
    ("apiextensions.k8s.io", "v1"): {"customresourcedefinitions"},
}


async def test_the_embedded_cluster_serves_exactly_the_expected_resources(api: EmbeddedApi) -> None:
    served = {group: {path for path in storages if "/" not in path} for group, storages in api.storages.items()}
    assert served == EXPECTED


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.plural) for kind in KINDS])
def test_an_empty_object_has_a_cell_for_every_column(kind: Any) -> None:
    for resource in kind.resources():
        assert len(resource.cells({"metadata": {"name": "a"}})) == len(resource.columns)


def minimal(kind: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"metadata": {"name": "a"}}
    if kind.kind == "Service":
        obj["spec"] = {"ports": [{"port": 80}]}
    if kind.kind == "Ingress":
        obj["spec"] = {"rules": [{"host": "web.example.org"}]}
    if kind.kind == "ValidatingAdmissionPolicyBinding":
        obj["spec"] = {"policyName": "p", "validationActions": ["Deny"]}
    if kind.kind.endswith("RoleBinding"):
        obj["roleRef"] = {"kind": "ClusterRole", "name": "view"}
    if kind.namespaced:
        obj["metadata"]["namespace"] = "ns"
    return obj


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.plural) for kind in KINDS])
async def test_every_version_of_every_kind_supports_create_update_and_delete(api: EmbeddedApi, kind: Any) -> None:
    if kind.kind.endswith("RoleBinding"):
        await api.create("clusterroles", {"metadata": {"name": "view"}}, group=kind.group)
    for resource in kind.resources():
        key = Key("ns" if kind.namespaced else "", "a")
        where: dict[str, Any] = {"group": kind.group, "version": resource.version}
        obj = minimal(kind)
        apply_defaults(object_schema(resource), obj)
        created = await api.create(kind.plural, obj, **where)
        assert (created["apiVersion"], created["kind"]) == (resource.api_version, kind.kind)
        changed = await api.update(
            kind.plural, key, lambda current: current["metadata"].update(annotations={"x": "y"}), **where
        )
        assert changed["metadata"]["annotations"] == {"x": "y"}
        assert int(changed["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
        assert await api.get(kind.plural, key, **where) == changed
        deleted = await api.storage(kind.plural, kind.group, resource.version).delete(
            request_context(), key, DeleteOptions(), no_admission
        )
        assert deleted.removed is (kind.kind != "Namespace")
        if kind.kind != "Namespace":
            assert await api.get(kind.plural, key, **where) is None


async def test_versions_of_a_kind_share_one_stored_object(api: EmbeddedApi) -> None:
    key = Key("ns", "web")
    spec = {"gatewayClassName": "cilium", "listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]}
    created = await api.create(
        "gateways",
        {
            "apiVersion": f"{GATEWAYS}/v1beta1",
            "kind": "Gateway",
            "metadata": {"name": "web", "namespace": "ns"},
            "spec": spec,
        },
        group=GATEWAYS,
        version="v1beta1",
    )
    assert created["apiVersion"] == f"{GATEWAYS}/v1beta1"
    as_v1 = await api.get("gateways", key, group=GATEWAYS)
    assert as_v1 is not None
    assert as_v1 == {**created, "apiVersion": f"{GATEWAYS}/v1"}
    await api.delete("gateways", key, group=GATEWAYS)
    assert await api.get("gateways", key, group=GATEWAYS, version="v1beta1") is None


async def test_an_event_is_served_in_both_event_groups(api: EmbeddedApi) -> None:
    await api.create(
        "events",
        {
            "metadata": {"name": "e", "namespace": "ns"},
            "involvedObject": {"kind": "Pod", "name": "p"},
            "message": "it happened",
            "reason": "Because",
            "count": 3,
        },
    )
    shown = await api.get("events", Key("ns", "e"), group="events.k8s.io")
    assert shown is not None
    assert shown["apiVersion"] == "events.k8s.io/v1"
    assert (shown["regarding"], shown["note"], shown["reason"]) == (
        {"kind": "Pod", "name": "p"},
        "it happened",
        "Because",
    )
    await api.update("events", Key("ns", "e"), lambda obj: obj.update(note="again"), group="events.k8s.io")
    stored = await api.get("events", Key("ns", "e"))
    assert stored is not None
    assert (stored["message"], stored["count"]) == ("again", 3)


async def test_generation_increases_only_when_the_spec_changes(api: EmbeddedApi) -> None:
    group, key = "helm.toolkit.fluxcd.io", Key("ns", "r")
    where: dict[str, Any] = {"group": group, "version": "v2"}
    created = await api.create("helmreleases", {"metadata": {"name": "r", "namespace": "ns"}, "spec": SPEC}, **where)
    assert created["metadata"]["generation"] == 1

    async def after(path: str, change: Any) -> int:
        updated = await api.update(path, key, change, **where)
        generation: int = updated["metadata"]["generation"]
        return generation

    assert await after("helmreleases", lambda obj: obj["metadata"].update(labels={"a": "b"})) == 1
    assert await after("helmreleases", lambda obj: obj["spec"].update(interval="5m")) == 2
    assert await after("helmreleases/status", lambda obj: obj.update(status={"observedGeneration": 1})) == 2


async def test_status_changes_only_through_the_status_subresource(api: EmbeddedApi) -> None:
    group, key = "helm.toolkit.fluxcd.io", Key("ns", "r")
    where: dict[str, Any] = {"group": group, "version": "v2"}
    created = await api.create(
        "helmreleases",
        {"metadata": {"name": "r", "namespace": "ns"}, "spec": SPEC, "status": {"observedGeneration": 1}},
        **where,
    )
    assert created["status"] == {"observedGeneration": -1}

    def change(obj: dict[str, Any]) -> None:
        obj.update(spec={**SPEC, "interval": "9m"}, status={"observedGeneration": 2})
        obj["metadata"]["labels"] = {"a": "b"}

    def change_status(obj: dict[str, Any]) -> None:
        obj.update(spec={}, status={"observedGeneration": 3})

    main = await api.update("helmreleases", key, change, **where)
    assert (main["spec"]["interval"], main["status"]) == ("9m", {"observedGeneration": -1})
    status = await api.update("helmreleases/status", key, change_status, **where)
    assert (status["spec"]["interval"], status["status"]) == ("9m", {"observedGeneration": 3})


@pytest.mark.parametrize(
    ("path", "obj", "fields"),
    [
        pytest.param("secrets", {"data": {"k": "not base64!"}}, ["data[k]"], id="secret data that is not base64"),
        pytest.param("secrets", {"data": {"a b": ""}}, ["data[a b]"], id="a secret key with a space"),
        pytest.param(
            "secrets",
            {"type": "kubernetes.io/tls"},
            ["data[tls.crt]", "data[tls.key]"],
            id="a tls secret without its keys",
        ),
        pytest.param(
            "secrets",
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]"],
            id="a token secret without an account",
        ),
        pytest.param(
            "configmaps", {"data": {"k": "v"}, "binaryData": {"k": "dg=="}}, ["data[k]"], id="a key in both maps"
        ),
        pytest.param("configmaps", {"data": {"k": 1}}, ["data.k"], id="a value that is not a string"),
        pytest.param("services", {"spec": {}}, ["spec.ports"], id="a service without ports"),
        pytest.param(
            "services",
            {"spec": {"ports": [{"port": 80}, {"port": 70000, "name": "b"}]}},
            ["spec.ports[0].name", "spec.ports[1].port"],
            id="a port without a name and a port out of range",
        ),
        pytest.param(
            "services",
            {"spec": {"type": "ExternalName"}},
            ["spec.externalName"],
            id="an ExternalName service without its name",
        ),
    ],
)
async def test_invalid_content_is_rejected_with_every_invalid_field(
    api: EmbeddedApi, path: str, obj: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(errors.Invalid) as raised:
        await api.create(path, {"metadata": {"name": "a", "namespace": "ns"}, **obj})
    assert [cause["field"] for cause in raised.value.causes] == fields


async def test_the_error_for_invalid_secret_data_does_not_contain_the_data(api: EmbeddedApi) -> None:
    with pytest.raises(errors.Invalid) as raised:
        await api.create("secrets", {"metadata": {"name": "a", "namespace": "ns"}, "data": {"k": "hunter2 !"}})
    assert "hunter2" not in raised.value.message


async def test_string_data_is_stored_as_data(api: EmbeddedApi) -> None:
    created = await api.create(
        "secrets",
        {
            "metadata": {"name": "a", "namespace": "ns"},
            "data": {"x": "eA==", "y": "eQ=="},
            "stringData": {"y": "new"},
        },
    )
    assert "stringData" not in created
    assert created["data"] == {"x": "eA==", "y": base64.b64encode(b"new").decode()}
    assert created["type"] == "Opaque"


async def test_an_immutable_secret_cannot_be_changed(api: EmbeddedApi) -> None:
    key = Key("ns", "a")
    await api.create(
        "secrets", {"metadata": {"name": "a", "namespace": "ns"}, "data": {"x": "eA=="}, "immutable": True}
    )
    with pytest.raises(errors.Invalid, match="immutable"):
        await api.update("secrets", key, lambda obj: obj.update(data={"x": "eQ=="}))
    with pytest.raises(errors.Invalid, match="immutable"):
        await api.update("secrets", key, lambda obj: obj.update(immutable=False))
    await api.update("secrets", key, lambda obj: obj["metadata"].update(labels={"a": "b"}))


async def test_the_type_of_a_secret_is_immutable(api: EmbeddedApi) -> None:
    await api.create("secrets", {"metadata": {"name": "a", "namespace": "ns"}})
    with pytest.raises(errors.Invalid, match="field is immutable"):
        await api.update("secrets", Key("ns", "a"), lambda obj: obj.update(type="other"))


async def test_a_role_name_need_not_be_a_dns_name(api: EmbeddedApi) -> None:
    rbac = "rbac.authorization.k8s.io"
    await api.create("clusterroles", {"metadata": {"name": "system:Thing"}}, group=rbac)
    with pytest.raises(errors.Invalid, match="may not contain '/'"):
        await api.create("clusterroles", {"metadata": {"name": "a/b"}}, group=rbac)
    with pytest.raises(errors.Invalid, match="RFC 1123"):
        await api.create("configmaps", {"metadata": {"name": "system:Thing", "namespace": "ns"}})


async def test_creating_an_object_in_a_missing_namespace_is_not_found(api: EmbeddedApi) -> None:
    with pytest.raises(errors.NotFound, match='namespaces "nowhere" not found'):
        await api.create("configmaps", {"metadata": {"name": "a", "namespace": "nowhere"}})


async def test_a_tenantgateway_needs_a_valid_apex_domain(api: EmbeddedApi) -> None:
    where: dict[str, Any] = {"group": "gateway.cozystack.io", "version": "v1alpha1"}
    for content, field in (({}, "spec"), ({"spec": {}}, "spec.apex"), ({"spec": {"apex": "A.org"}}, "spec.apex")):
        with pytest.raises(errors.Invalid) as raised:
            await api.create("tenantgateways", {"metadata": {"name": "g", "namespace": "ns"}, **content}, **where)
        assert [cause["field"] for cause in raised.value.causes] == [field]


async def test_concurrent_creates_of_one_name_create_one_object(api: EmbeddedApi) -> None:
    creates = (
        api.create("configmaps", {"metadata": {"name": "a", "namespace": "ns"}, "data": {"n": str(number)}})
        for number in range(20)
    )
    results = await asyncio.gather(*creates, return_exceptions=True)
    assert sum(isinstance(result, errors.AlreadyExists) for result in results) == 19

"""CustomResourceDefinitions at run time: a kind is served as soon as its definition is established."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters.cluster import AGGREGATED_DISCOVERY, E2eCluster
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.custom_kind import DEFINITIONS, CustomKind, version

MERGE = "application/merge-patch+json"


@pytest.fixture
def kind(cluster: E2eCluster, unique: str) -> Iterator[CustomKind]:
    created = CustomKind(cluster, unique)
    yield created
    created.delete()


def test_a_definition_that_has_changed_is_still_established_for_kubectl_wait(kind: CustomKind) -> None:
    kind.create()
    changed = kind.definition(version(properties={"weight": {"type": "integer"}}))
    kind.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump(changed))
    kind.cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind.name}", "--timeout=60s")


def test_kubectl_apply_adds_a_kind_with_discovery_tables_and_explain(kind: CustomKind, unique: str) -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    definition = kind.definition(version(additionalPrinterColumns=columns))
    cluster = kind.cluster
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(definition))
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind.name}", "--timeout=60s")
    cluster.wait_until_served(f"/apis/{kind.group}/v1/{kind.plural}")
    listed = cluster.kubectl("api-resources", f"--api-group={kind.group}", "--no-headers").stdout.split()
    assert listed == [kind.plural, f"wd{kind.group[:5]}", f"{kind.group}/v1", "true", kind.kind]
    cluster.kubectl("apply", "-f", "-", "-n", "default", input=yaml.safe_dump(kind.widget(size=7)))
    shown = cluster.kubectl("get", kind.name, "-n", "default").stdout.splitlines()
    assert [line.split() for line in shown] == [["NAME", "SIZE"], ["a", "7"]]

    def explained() -> bool:
        done = cluster.kubectl("explain", f"{kind.name}.spec", status=None)
        return done.returncode == 0 and "-required-" in done.stdout

    cluster.wait_until("kubectl explain knows the kind", explained)
    found = kind.client.get("/apis", headers={"Accept": AGGREGATED_DISCOVERY}).expect(200)
    assert kind.group in {each["metadata"]["name"] for each in found["items"]}


def test_the_conditions_and_names_are_those_of_kubernetes(kind: CustomKind) -> None:
    kind.create()
    status = kind.wait_for("Established")["status"]
    assert [(each["type"], each["status"], each["reason"], each["message"]) for each in status["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    assert status["acceptedNames"] == {
        "plural": kind.plural,
        "singular": "widget",
        "kind": kind.kind,
        "listKind": "WidgetList",
        "shortNames": [f"wd{kind.group[:5]}"],
    }
    assert status["storedVersions"] == ["v1"]


def test_names_that_another_definition_has_are_not_accepted(kind: CustomKind, unique: str) -> None:
    kind.create()
    other = kind.definition(names={"plural": "others", "kind": kind.kind})
    other["metadata"]["name"] = f"others.{kind.group}"
    kind.client.request("POST", DEFINITIONS, other).expect(201)
    try:
        taken = CustomKind(kind.cluster, unique)
        taken.name = other["metadata"]["name"]
        crd = taken.wait_for("NamesAccepted", "False")
        reasons = {each["type"]: (each["status"], each["reason"]) for each in crd["status"]["conditions"]}
        assert reasons["NamesAccepted"] in (("False", "KindConflict"), ("False", "ListKindConflict"))
        assert reasons["Established"] == ("False", "NotAccepted")
        assert not kind.client.serves(f"/apis/{kind.group}/v1/others")
    finally:
        kind.delete(f"others.{kind.group}")


def test_several_versions_serve_the_same_objects(kind: CustomKind) -> None:
    older = version("v1beta1", storage=False, deprecated=True, properties={"size": {"type": "integer"}})
    kind.create(version(), older)
    kind.cluster.wait_until_served(f"/apis/{kind.group}/v1beta1/{kind.plural}")
    made = kind.client.request("POST", kind.path(version="v1beta1"), kind.widget(version="v1beta1"))
    assert any("is deprecated" in each for each in made.warnings)
    made.expect(201)
    shown = kind.client.get(kind.path("a")).expect(200)
    assert (shown["apiVersion"], shown["spec"]) == (f"{kind.group}/v1", {"size": 1, "color": "red"})
    group = kind.client.get(f"/apis/{kind.group}").expect(200)
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"


def test_a_version_that_a_definition_adds_to_our_group_is_not_preferred(kind: CustomKind, unique: str) -> None:
    kind.group, kind.plural, kind.kind = "apps.cozystack.io", f"{unique}boxes", f"{unique.capitalize()}box"
    kind.name = f"{kind.plural}.{kind.group}"

    def versions() -> list[str]:
        group = kind.client.get(f"/apis/{kind.group}").expect(200)
        assert group["preferredVersion"]["version"] == "v1alpha1"
        return [each["version"] for each in group["versions"]]

    kind.create(names={"plural": kind.plural, "kind": kind.kind})
    kind.cluster.wait_until("our version is before the other", lambda: versions() == ["v1alpha1", "v1"])
    kind.client.request("DELETE", f"{DEFINITIONS}/{kind.name}").expect(200)
    kind.cluster.wait_until("the other version is gone", lambda: versions() == ["v1alpha1"])


def test_a_changed_definition_changes_what_is_served(kind: CustomKind) -> None:
    kind.create()
    kind.client.request("POST", kind.path(), kind.widget()).expect(201)
    limited = version(
        properties={"size": {"type": "integer", "maximum": 5}, "weight": {"type": "integer", "default": 3}}
    )

    def change(crd: dict[str, Any]) -> dict[str, Any]:
        crd["spec"]["versions"] = [limited]
        return crd

    kind.client.update(f"{DEFINITIONS}/{kind.name}", change).expect(200)

    def is_limited() -> bool:
        body = kind.widget("b", size=9)
        return kind.client.request("POST", kind.path(), body, query={"dryRun": "All"}).status == 422

    kind.cluster.wait_until("the new schema judges", is_limited)
    assert kind.client.get(kind.path("a")).expect(200)["spec"]["weight"] == 3


def test_the_status_and_scale_subresources_are_served(kind: CustomKind) -> None:
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    scaled = version(subresources={"status": {}, "scale": paths}, properties={"replicas": {"type": "integer"}})
    scaled["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["replicas"] = {"type": "integer"}
    kind.create(scaled)
    body = {**kind.widget(replicas=2), "status": {"replicas": 9}}
    created = kind.client.request("POST", kind.path(), body).expect(201)
    assert "status" not in created
    status = {"status": {"replicas": 1}, "spec": {"size": 5}}
    patched = kind.client.request("PATCH", kind.path("a", subresource="status"), status, content_type=MERGE).expect(200)
    assert (patched["status"], patched["spec"]["size"]) == ({"replicas": 1}, 1)
    scale = kind.client.get(kind.path("a", subresource="scale")).expect(200)
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1})
    kind.cluster.kubectl("scale", f"{kind.name}/a", "--replicas=4", "-n", "default")
    assert kind.client.get(kind.path("a")).expect(200)["spec"]["replicas"] == 4


def test_objects_are_deleted_with_their_definition(kind: CustomKind) -> None:
    kind.create()
    blocked = kind.widget("blocked")
    blocked["metadata"]["finalizers"] = ["example.com/wait"]
    for body in (kind.widget(), blocked):
        kind.client.request("POST", kind.path(), body).expect(201)
    kind.client.request("DELETE", f"{DEFINITIONS}/{kind.name}").expect(200)
    kind.cluster.wait_until("the first object is deleted", lambda: kind.client.get(kind.path("a")).status == 404)
    crd = kind.client.get(f"{DEFINITIONS}/{kind.name}").expect(200)
    assert "customresourcecleanup.apiextensions.k8s.io" in crd["metadata"]["finalizers"]
    refused = kind.client.request("POST", kind.path(), kind.widget("late"))
    assert refused.status == 403
    assert "create not allowed while custom resource definition is terminating" in refused.json()["message"]
    released: dict[str, Any] = {"metadata": {"finalizers": []}}
    kind.client.request("PATCH", kind.path("blocked"), released, content_type=MERGE).expect(200)
    gone = f"{DEFINITIONS}/{kind.name}"
    kind.cluster.wait_until("the definition is deleted", lambda: kind.client.get(gone).status == 404)
    kind.cluster.wait_until("the kind is not served", lambda: kind.client.get(kind.path()).status == 404)


def test_a_namespace_is_deleted_with_its_custom_objects(kind: CustomKind, unique: str) -> None:
    kind.create()
    kind.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": unique}}).expect(201)
    path = kind.path().replace("/default/", f"/{unique}/")
    kind.client.request("POST", path, kind.widget()).expect(201)
    kind.client.request("DELETE", f"/api/v1/namespaces/{unique}")
    if kind.cluster.has_controllers:
        kind.cluster.wait_until("it is gone", lambda: kind.client.get(f"/api/v1/namespaces/{unique}").status == 404)
        assert kind.client.get(path).expect(200)["items"] == []


def _without_type(schema: dict[str, Any]) -> None:
    del schema["properties"]["spec"]["properties"]["size"]["type"]


def _with_rule(text: str) -> Any:
    def change(schema: dict[str, Any]) -> None:
        schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": text}]

    return change


def _with_spec(**keywords: Any) -> Any:
    def change(schema: dict[str, Any]) -> None:
        schema["properties"]["spec"]["properties"]["extra"] = keywords

    return change


ITEMS = {"type": "object", "properties": {"a": {"type": "string"}}}
BAD_SCHEMAS = {
    "a field without a type": _without_type,
    "a list without items": _with_spec(type="array"),
    "an unknown type": _with_spec(type="float"),
    "a pattern that does not compile": _with_spec(type="string", pattern="("),
    "unique items": _with_spec(type="array", items={"type": "string"}, uniqueItems=True),
    "properties and additionalProperties": _with_spec(**ITEMS, additionalProperties={"type": "string"}),
    "a map without keys": _with_spec(type="array", items=ITEMS, **{"x-kubernetes-list-type": "map"}),
    "a key that is optional": _with_spec(
        type="array", items=ITEMS, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
    ),
    "a set of objects": _with_spec(type="array", items=ITEMS, **{"x-kubernetes-list-type": "set"}),
    "a type in an alternative": _with_spec(**ITEMS, anyOf=[{"type": "object"}]),
    "an invalid default": _with_spec(type="integer", default="x"),
    "preserve-unknown-fields false": _with_spec(**ITEMS, **{"x-kubernetes-preserve-unknown-fields": False}),
    "a rule that does not compile": _with_rule("self.size >"),
    "a rule about an unknown field": _with_rule("self.weight > 1"),
    "an empty rule": _with_rule(" "),
}


def _problems(answer: dict[str, Any], unique: str) -> list[tuple[str, str]]:
    causes = answer["details"]["causes"]
    return sorted((each["reason"], each["field"].replace(unique, "")) for each in causes)


EXPECTED_FIELDS = {
    "a field without a type": [("FieldValueRequired", "properties[spec].properties[size].type")],
    "a list without items": [("FieldValueRequired", "properties[spec].properties[extra].items")],
    "an unknown type": [("FieldValueNotSupported", "properties[spec].properties[extra].type")],
    "a pattern that does not compile": [("FieldValueInvalid", "properties[spec].properties[extra].pattern")],
    "unique items": [("FieldValueForbidden", "properties[spec].properties[extra].uniqueItems")],
    "an empty rule": [("FieldValueRequired", "properties[spec].x-kubernetes-validations[0].rule")],
    "a rule that does not compile": [("FieldValueInvalid", "properties[spec].x-kubernetes-validations[0].rule")],
    "a rule about an unknown field": [("FieldValueInvalid", "properties[spec].x-kubernetes-validations[0].rule")],
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_a_schema_that_is_not_structural_is_rejected(kind: CustomKind, unique: str, case: str) -> None:
    bad = version()
    BAD_SCHEMAS[case](bad["schema"]["openAPIV3Schema"])
    answer = kind.client.request("POST", DEFINITIONS, kind.definition(bad), query={"dryRun": "All"}).expect(422)
    prefix = "spec.validation.openAPIV3Schema."
    problems = [(reason, field.removeprefix(prefix)) for reason, field in _problems(answer, unique)]
    if case in EXPECTED_FIELDS:
        assert problems == EXPECTED_FIELDS[case]
    assert all("properties[spec]" in field for _, field in problems)


BAD_DEFINITIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "another name": ({"names": {"plural": "things", "kind": "Thing"}}, ["metadata.name"]),
    "no scope": ({"scope": ""}, ["spec.scope"]),
    "an unknown scope": ({"scope": "Everywhere"}, ["spec.scope"]),
    "no storage version": ({"versions": [version(storage=False)]}, ["spec.versions", "status.storedVersions"]),
    "two versions of one name": (
        {"versions": [version(), version(storage=False)]},
        ["spec.versions"],
    ),
    "an upper-case plural": (
        {"names": {"plural": "Widgets", "kind": "Widget"}},
        ["metadata.name", "spec.names.plural"],
    ),
    "a column without a path": (
        {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ""}])]},
        ["spec.additionalPrinterColumns[0].JSONPath"],
    ),
    "a column of an unknown type": (
        {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "x", "jsonPath": ".a"}])]},
        ["spec.additionalPrinterColumns[0].type"],
    ),
    "a column with a path in braces": (
        {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": "{.a}"}])]},
        ["spec.additionalPrinterColumns[0].JSONPath"],
    ),
    "a selectable field twice": (
        {"versions": [version(selectableFields=[{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.size"}])]},
        ["spec.selectableFields[1].jsonPath"],
    ),
    "preserveUnknownFields": ({"preserveUnknownFields": True}, ["spec.preserveUnknownFields"] * 2),
}


@pytest.mark.parametrize("case", BAD_DEFINITIONS)
def test_an_invalid_definition_is_rejected(kind: CustomKind, unique: str, case: str) -> None:
    spec, expected = BAD_DEFINITIONS[case]
    body = kind.definition(**copy.deepcopy(spec))
    if "versions" in spec:
        body["spec"]["versions"] = copy.deepcopy(spec["versions"])
    answer = kind.client.request("POST", DEFINITIONS, body, query={"dryRun": "All"}).expect(422)
    assert [field for _, field in _problems(answer, unique)] == expected


def test_the_group_and_the_kind_of_a_definition_are_immutable(kind: CustomKind) -> None:
    kind.create()

    def change(crd: dict[str, Any]) -> dict[str, Any]:
        crd["spec"]["scope"] = "Cluster"
        crd["spec"]["names"]["kind"] = "Other"
        return crd

    answer = kind.client.update(f"{DEFINITIONS}/{kind.name}", change).expect(422)
    assert {each["field"] for each in answer["details"]["causes"]} == {"spec.scope", "spec.names.kind"}


def test_a_webhook_cannot_convert(embedded: EmbeddedCluster, kind: CustomKind) -> None:
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "x"}}}
    body = kind.definition(conversion=conversion)
    answer = kind.client.request("POST", DEFINITIONS, body).expect(422)
    assert [each["field"] for each in answer["details"]["causes"]] == ["spec.conversion.strategy"]


def test_kinds_and_their_objects_are_there_after_a_restart(own_embedded: EmbeddedCluster, unique: str) -> None:
    kind = CustomKind(own_embedded, unique)
    kind.create()
    kind.client.request("POST", kind.path(), kind.widget()).expect(201)
    own_embedded.server.kill()
    own_embedded.start()
    client = own_embedded.client()
    assert client.get(kind.path("a")).expect(200)["spec"] == {"size": 1, "color": "red"}
    bad = client.request("POST", kind.path(), kind.widget("b", size=0)).expect(422)
    assert bad["reason"] == "Invalid"


def test_a_watch_and_a_list_see_custom_objects(kind: CustomKind) -> None:
    kind.create(version(selectableFields=[{"jsonPath": ".spec.color"}]))
    start = kind.client.get(kind.path()).expect(200)["metadata"]["resourceVersion"]
    for name, color in (("a", "red"), ("b", "blue")):
        kind.client.request("POST", kind.path(), kind.widget(name, color=color)).expect(201)
    query = {"watch": "true", "resourceVersion": start, "timeoutSeconds": "1"}
    with kind.client.stream(kind.path(), query=query) as frames:
        seen = [(frame["type"], frame["object"]["metadata"]["name"]) for frame in frames]
    assert seen == [("ADDED", "a"), ("ADDED", "b")]
    chosen = kind.client.get(kind.path(), query={"fieldSelector": "spec.color=blue"}).expect(200)
    assert [each["metadata"]["name"] for each in chosen["items"]] == ["b"]

"""The contents of the OpenAPI documents, v2 and v3."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from apiserver.endpoints.openapi import v2_protobuf as openapi_protobuf
from apiserver.endpoints.openapi.definitions import definition_name, publish
from apiserver.endpoints.openapi.v2 import to_v2
from apiserver.meta.resource import Schema
from tests.apiserver.endpoints.openapi_groups import (
    CONDITIONS,
    CORE,
    FLUNDERS,
    GROUPS,
    META,
    QUANTITY,
    TOKEN,
    WARDLE,
    v2,
    v3,
)

ACTIONS = {"get", "list", "watch", "watchlist", "post", "put", "patch", "delete", "deletecollection", "connect"}


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield f"{method} {path}", operation


def schemas(node: Any) -> Iterator[dict[str, Any]]:
    """The schema itself and all schemas in it; a value that is not a schema is marked."""
    if isinstance(node, dict):
        yield node
        for keyword, value in node.items():
            if keyword == "properties":
                for each in value.values():
                    yield from schemas(each)
            elif keyword in ("items", "additionalProperties", "not"):
                yield from schemas(value)
            elif keyword in ("allOf", "anyOf", "oneOf"):
                for each in value:
                    yield from schemas(each)
    else:
        yield {"not a schema": node}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def names(parameters: Sequence[Mapping[str, Any]]) -> list[str]:
    return [parameter["name"] for parameter in parameters]


BOTH = [pytest.param(v3(*GROUPS), id="v3"), pytest.param(v2(*GROUPS), id="v2")]


@pytest.mark.parametrize("document", BOTH)
def test_every_operation_names_its_action_and_one_kind(document: Mapping[str, Any]) -> None:
    for where, operation in operations(document):
        if where.endswith("/"):
            assert operation["operationId"].endswith("APIResources")
            continue
        assert operation["x-kubernetes-action"] in ACTIONS, where
        assert set(operation["x-kubernetes-group-version-kind"]) == {"group", "version", "kind"}, where


@pytest.mark.parametrize("document", BOTH)
def test_every_kind_lists_its_groups_versions_and_kinds(document: Mapping[str, Any]) -> None:
    definitions = document["components"]["schemas"] if "components" in document else document["definitions"]
    hinted = {name: schema for name, schema in definitions.items() if "x-kubernetes-group-version-kind" in schema}
    assert {"com.example.wardle.v1alpha1.Flunder", "com.example.wardle.v1alpha1.FlunderList"} <= set(hinted)
    assert {"io.k8s.api.core.v1.ServiceAccount", f"{META}.DeleteOptions", f"{META}.Status"} <= set(hinted)
    for name, schema in hinted.items():
        entries = schema["x-kubernetes-group-version-kind"]
        assert isinstance(entries, list), name
        assert all(set(entry) == {"group", "version", "kind"} for entry in entries), name


@pytest.mark.parametrize("document", BOTH)
def test_every_reference_leads_to_a_definition_and_every_definition_is_referred_to(document: Mapping[str, Any]) -> None:
    definitions = document["components"]["schemas"] if "components" in document else document["definitions"]
    prefix = "#/components/schemas/" if "components" in document else "#/definitions/"
    assert {prefix + name for name in definitions} == set(references(document))


@pytest.mark.parametrize("document", BOTH)
def test_operation_ids_are_unique(document: Mapping[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("document", BOTH)
def test_no_boolean_stands_in_place_of_a_schema(document: Mapping[str, Any]) -> None:
    definitions = document["components"]["schemas"] if "components" in document else document["definitions"]
    for name, definition in definitions.items():
        for schema in schemas(definition):
            assert "not a schema" not in schema, name


def test_v2_has_only_keywords_of_v2() -> None:
    for name, definition in v2(*GROUPS)["definitions"].items():
        for schema in schemas(definition):
            assert not schema.keys() & {"anyOf", "oneOf", "allOf", "not", "nullable", "default"}, name


@pytest.mark.parametrize("document", BOTH)
def test_every_path_parameter_is_described_and_parameters_are_inline(document: Mapping[str, Any]) -> None:
    for path, item in document["paths"].items():
        every = list(item.get("parameters", []))
        for method in item.keys() - {"parameters"}:
            every += item[method].get("parameters", [])
        assert all("name" in parameter and "$ref" not in parameter for parameter in every), path
        in_path = {parameter["name"] for parameter in every if parameter["in"] == "path"}
        assert in_path == {part.strip("{}") for part in path.split("/") if part.startswith("{")}, path


@pytest.mark.parametrize(
    ("path", "method", "operation_id", "action"),
    [
        (FLUNDERS, "get", "listWardleExampleComV1alpha1NamespacedFlunder", "list"),
        (FLUNDERS, "post", "createWardleExampleComV1alpha1NamespacedFlunder", "post"),
        (FLUNDERS, "delete", "deleteWardleExampleComV1alpha1CollectionNamespacedFlunder", "deletecollection"),
        (f"{FLUNDERS}/{{name}}", "get", "readWardleExampleComV1alpha1NamespacedFlunder", "get"),
        (f"{FLUNDERS}/{{name}}", "put", "replaceWardleExampleComV1alpha1NamespacedFlunder", "put"),
        (f"{FLUNDERS}/{{name}}", "patch", "patchWardleExampleComV1alpha1NamespacedFlunder", "patch"),
        (f"{FLUNDERS}/{{name}}", "delete", "deleteWardleExampleComV1alpha1NamespacedFlunder", "delete"),
        (f"{FLUNDERS}/{{name}}/status", "put", "replaceWardleExampleComV1alpha1NamespacedFlunderStatus", "put"),
        (
            "/apis/wardle.example.com/v1alpha1/flunders",
            "get",
            "listWardleExampleComV1alpha1FlunderForAllNamespaces",
            "list",
        ),
        ("/apis/wardle.example.com/v1alpha1/fischers", "get", "listWardleExampleComV1alpha1Fischer", "list"),
        (
            "/apis/wardle.example.com/v1alpha1/watch/namespaces/{namespace}/flunders",
            "get",
            "watchWardleExampleComV1alpha1NamespacedFlunderList",
            "watchlist",
        ),
        (
            "/apis/wardle.example.com/v1alpha1/watch/flunders",
            "get",
            "watchWardleExampleComV1alpha1FlunderListForAllNamespaces",
            "watchlist",
        ),
        ("/api/v1/namespaces/{namespace}/serviceaccounts", "get", "listCoreV1NamespacedServiceAccount", "list"),
        (
            "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            "post",
            "createCoreV1NamespacedServiceAccountToken",
            "post",
        ),
    ],
)
def test_operations_have_the_names_of_kubernetes(path: str, method: str, operation_id: str, action: str) -> None:
    operation = v3(*GROUPS)["paths"][path][method]
    assert (operation["operationId"], operation["x-kubernetes-action"]) == (operation_id, action)


def test_only_the_verbs_that_are_served_are_described() -> None:
    described = {where for where, _ in operations(v3(WARDLE)) if "fischers" in where}
    base = "/apis/wardle.example.com/v1alpha1"
    assert described == {
        f"get {base}/fischers",
        f"get {base}/fischers/{{name}}",
        f"get {base}/watch/fischers",
        f"get {base}/watch/fischers/{{name}}",
    }


def test_a_patch_offers_field_validation_and_no_strategic_merge() -> None:
    patch = v3(WARDLE)["paths"][f"{FLUNDERS}/{{name}}"]["patch"]
    assert names(patch["parameters"]) == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert sorted(patch["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]
    older = v2(WARDLE)["paths"][f"{FLUNDERS}/{{name}}"]["patch"]
    assert older["consumes"] == sorted(patch["requestBody"]["content"])
    assert names(older["parameters"]) == ["body", "dryRun", "fieldManager", "fieldValidation", "force"]


def test_a_subresource_operation_has_its_own_kind() -> None:
    operation = v3(CORE)["paths"]["/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"]["post"]
    assert operation["x-kubernetes-group-version-kind"] == {
        "group": "authentication.k8s.io",
        "kind": "TokenRequest",
        "version": "v1",
    }
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": f"#/components/schemas/{definition_name(TOKEN)}"
    }


def test_a_definition_has_fields_metadata_and_description() -> None:
    flunder = v3(WARDLE)["components"]["schemas"]["com.example.wardle.v1alpha1.Flunder"]
    assert flunder["description"] == "A flat fish."
    assert set(flunder["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert flunder["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]
    spec = flunder["properties"]["spec"]["properties"]
    assert spec["host"] == {"type": "string", "default": ""}
    assert spec["quotas"]["additionalProperties"] == QUANTITY
    assert spec["free"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert flunder["properties"]["status"]["properties"]["conditions"] == CONDITIONS


def test_a_definition_is_converted_to_v2() -> None:
    definitions = v2(WARDLE)["definitions"]
    spec = definitions["com.example.wardle.v1alpha1.Flunder"]["properties"]["spec"]["properties"]
    assert spec["host"] == {"type": "string"}
    assert spec["gateway"] == {"description": "Absent is not false."}
    assert spec["quotas"]["additionalProperties"] == {
        "type": "string",
        "format": "int-or-string",
        "x-kubernetes-int-or-string": True,
    }
    assert spec["free"] == {"x-kubernetes-preserve-unknown-fields": True}
    fischer = definitions["com.example.wardle.v1alpha1.Fischer"]
    assert fischer["x-kubernetes-preserve-unknown-fields"] is True
    assert set(fischer["properties"]) == {"apiVersion", "kind", "metadata", "data"}
    assert fischer["properties"]["metadata"]["$ref"] == f"#/definitions/{META}.ObjectMeta"


def test_a_field_that_is_open_has_no_properties_in_v2() -> None:
    """kubectl would reject the fields that v2 does not name, where the server keeps them."""
    open_spec: Schema = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"size": {"type": "integer"}, "free": {"x-kubernetes-preserve-unknown-fields": True}},
    }
    document = {
        **v3(WARDLE),
        "components": {
            "schemas": {"a": {"type": "object", "properties": {"spec": open_spec}}},
            "securitySchemes": {},
        },
    }
    properties = to_v2(document)["definitions"]["a"]["properties"]
    assert properties == {"spec": {"x-kubernetes-preserve-unknown-fields": True}}


@pytest.mark.parametrize(
    ("schema", "published"),
    [
        pytest.param(
            {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
            id="closed",
        ),
        pytest.param(
            {"type": "object", "properties": {"additionalProperties": {"type": "boolean", "$comment": "x"}}},
            {"type": "object", "properties": {"additionalProperties": {"type": "boolean"}}},
            id="a field with the name of a keyword",
        ),
        pytest.param(
            {"type": "string", "const": "x", "x-kubernetes-validations": [{"rule": "true"}], "enum": ["x"]},
            {"type": "string", "x-kubernetes-validations": [{"rule": "true"}], "enum": ["x"]},
            id="a keyword that is not in OpenAPI 3.0",
        ),
        pytest.param(
            {"anyOf": [{"items": {"additionalProperties": True}}]},
            {"anyOf": [{"items": {"x-kubernetes-preserve-unknown-fields": True}}]},
            id="nested",
        ),
    ],
)
def test_a_published_schema_has_only_keywords_of_openapi(schema: Schema, published: Schema) -> None:
    assert publish(schema) == published


def structure(node: Any, *, names: bool = False) -> Any:
    """A schema without descriptions; `names` means that the keys are names of fields."""
    if isinstance(node, dict):
        omitted = () if names else ("description", "x-kubernetes-group-version-kind")
        return {
            key: structure(value, names=key == "properties" and not names)
            for key, value in node.items()
            if key not in omitted
        }
    return [structure(each) for each in node] if isinstance(node, list) else node


def test_meta_definitions_have_the_structure_of_a_kube_apiserver() -> None:
    """The file has the definitions that kube-apiserver v1.36 publishes, without descriptions (WIRE-C48)."""
    theirs = json.loads(Path(__file__).with_name("meta_v1_of_kubernetes_1_36.json").read_text())
    definitions = v3(*GROUPS)["components"]["schemas"]
    ours = {name: structure(schema) for name, schema in definitions.items() if name.startswith("io.k8s.apimachinery.")}
    assert ours == theirs


def test_delete_options_are_registered_in_every_group_and_status_only_in_core() -> None:
    definitions = v3(*GROUPS)["components"]["schemas"]
    assert definitions[f"{META}.DeleteOptions"]["x-kubernetes-group-version-kind"] == [
        {"group": "", "kind": "DeleteOptions", "version": "v1"},
        {"group": "wardle.example.com", "kind": "DeleteOptions", "version": "v1alpha1"},
    ]
    assert definitions[f"{META}.Status"]["x-kubernetes-group-version-kind"] == [
        {"group": "", "kind": "Status", "version": "v1"}
    ]


def test_definitions_are_encoded_as_protobuf() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "required": ["a"],
        "properties": {"a": {"$ref": "r"}, "b": {"type": "array", "items": {"type": "string", "format": "f"}}},
        "x-y": [1],
    }
    document = {"swagger": "2.0", "info": {"title": "t", "version": "v"}, "definitions": {"K": schema}}
    assert openapi_protobuf.encode(document) == (
        b"\n\x032.0\x12\x06\n\x01t\x12\x01vB\x00JY\nW\n\x01K\x12R"
        b'\xb2\x01\x08\n\x06object"\x01d\x9a\x01\x01a'
        b'\xca\x01.\n\x08\n\x01a\x12\x03\n\x01r\n"\n\x01b\x12\x1d\xb2\x01\x07\n\x05array'
        b"\xba\x01\x10\n\x0e\xb2\x01\x08\n\x06string\x12\x01f"
        b"\xfa\x01\x0c\n\x03x-y\x12\x05\x12\x03[1]"
    )


# run in another interpreter: prints the digests of the documents of these groups
PRINT_THE_DIGESTS = """
import hashlib, orjson
from tests.apiserver.endpoints.openapi_groups import GROUPS, v2, v3
documents = [v3(*GROUPS), v2(*GROUPS)]
print([hashlib.sha512(orjson.dumps(document)).hexdigest() for document in documents])
"""


def test_the_documents_are_the_same_in_every_process() -> None:
    """The order of sets depends on the hash seed, and clients cache documents by their hash (WIRE-C38)."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_THE_DIGESTS],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert "[]" not in printed.pop()

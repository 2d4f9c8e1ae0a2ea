"""The OpenAPI documents, v2 and v3, and the paths that serve them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from apiserver.endpoints.discovery import ServedGroup, ServedResource, ServedSubresource
from apiserver.endpoints.openapi import v2_protobuf as openapi_protobuf
from apiserver.endpoints.openapi.definitions import definition_name, publish
from apiserver.endpoints.openapi.routes import OpenAPI, openapi_v3
from apiserver.endpoints.openapi.v2 import to_v2
from apiserver.meta import errors
from apiserver.meta.resource import Resource, Schema
from apiserver.request import request_info
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
FLUNDERS = "/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders"
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ACTIONS = {"get", "list", "watch", "watchlist", "post", "put", "patch", "delete", "deletecollection", "connect"}

QUANTITY: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
CONDITIONS: Schema = {
    "type": "array",
    "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
FLUNDER = Resource(
    group="wardle.example.com",
    version="v1alpha1",
    kind="Flunder",
    plural="flunders",
    singular="flunder",
    namespaced=True,
    description="A flat fish.",
    properties={
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "properties": {
                "host": {"type": "string", "default": ""},
                "gateway": {"type": "boolean", "nullable": True, "description": "Absent is not false."},
                "quotas": {"type": "object", "additionalProperties": QUANTITY},
                "free": {"type": "object", "additionalProperties": True},
            },
        },
        "status": {"type": "object", "properties": {"conditions": CONDITIONS}},
    },
)
FISCHER = Resource(
    group="wardle.example.com", version="v1alpha1", kind="Fischer", plural="fischers", singular="fischer",
    namespaced=False, preserve_unknown_fields=True, properties={"data": {"type": "object", "x-surplus": 1}},
)  # fmt: skip
ACCOUNT = Resource(
    group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", singular="", namespaced=True
)
TOKEN = Resource(
    group="authentication.k8s.io", version="v1", kind="TokenRequest", plural="tokenrequests", singular="",
    namespaced=True, properties={"spec": {"type": "object"}},
)  # fmt: skip
WARDLE = ServedGroup(
    "wardle.example.com",
    "v1alpha1",
    [
        ServedResource(FLUNDER, ALL_VERBS, (ServedSubresource("status", ("get", "patch", "update")),)),
        ServedResource(FISCHER, ("get", "list", "watch")),
    ],
)
CORE = ServedGroup("", "v1", [ServedResource(ACCOUNT, ALL_VERBS, (ServedSubresource("token", ("create",), TOKEN),))])
GROUPS = (CORE, WARDLE)


def v3(*groups: ServedGroup) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(openapi_v3(groups, title="Wardle", version="1")))
    return document


def v2(*groups: ServedGroup) -> dict[str, Any]:
    return to_v2(v3(*groups))


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


def context(path: str, *, method: str = "GET", **headers: str) -> RequestContext:
    http = make_mocked_request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    bare, _, raw_query = path.partition("?")
    query = Query(raw_query)
    return RequestContext(
        http=http, info=request_info.parse_request_info(method, bare, query), query=query, audit_id="a"
    )


@pytest.fixture
def openapi() -> OpenAPI:
    return OpenAPI(GROUPS, title="Wardle", version="1")


async def get(openapi: OpenAPI, path: str, *, method: str = "GET", **headers: str) -> web.Response:
    response = await openapi.respond(context(path, method=method, **headers))
    assert response is not None
    return response


def body(response: web.Response) -> Any:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


async def test_the_index_links_to_a_document_for_each_group_version(openapi: OpenAPI) -> None:
    index = body(await get(openapi, "/openapi/v3"))["paths"]
    assert sorted(index) == ["api/v1", "apis/wardle.example.com/v1alpha1"]
    for key, entry in index.items():
        url = entry["serverRelativeURL"]
        assert url.startswith(f"/openapi/v3/{key}?hash=")
        assert body(await get(openapi, url))["openapi"] == "3.0.0"


async def test_a_document_describes_only_its_own_group_version(openapi: OpenAPI) -> None:
    document = body(await get(openapi, "/openapi/v3/apis/wardle.example.com/v1alpha1"))
    assert document["info"] == {"title": "Wardle", "version": "1"}
    assert all(path.startswith("/apis/wardle.example.com/v1alpha1/") for path in document["paths"])
    assert "io.k8s.api.core.v1.ServiceAccount" not in document["components"]["schemas"]


async def test_v2_describes_every_group_version(openapi: OpenAPI) -> None:
    document = body(await get(openapi, "/openapi/v2"))
    assert document["swagger"] == "2.0"
    assert FLUNDERS in document["paths"]
    assert "/api/v1/namespaces/{namespace}/serviceaccounts" in document["paths"]


async def test_the_current_hash_can_be_cached_for_ever_and_a_stale_one_gets_the_current_document(
    openapi: OpenAPI,
) -> None:
    index = body(await get(openapi, "/openapi/v3"))["paths"]
    right = await get(openapi, index["api/v1"]["serverRelativeURL"])
    assert right.headers["Cache-Control"] == "public, immutable"
    assert right.headers["Expires"].endswith(" GMT")
    stale = await get(openapi, "/openapi/v3/api/v1?hash=00")
    assert (stale.status, stale.body) == (200, right.body)
    assert "Cache-Control" not in stale.headers
    assert "Cache-Control" not in (await get(openapi, "/openapi/v3/api/v1")).headers


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"])
async def test_a_client_with_a_current_copy_gets_304(openapi: OpenAPI, path: str) -> None:
    first = await get(openapi, path)
    second = await get(openapi, path, If_None_Match=first.headers["Etag"])
    assert (first.status, second.status, second.body) == (200, 304, None)


async def test_v2_supports_if_modified_since(openapi: OpenAPI) -> None:
    modified = (await get(openapi, "/openapi/v2")).headers["Last-Modified"]
    assert (await get(openapi, "/openapi/v2", If_Modified_Since=modified)).status == 304
    assert (await get(openapi, "/openapi/v2", If_Modified_Since="Mon, 01 Jan 2001 00:00:00 GMT")).status == 200
    assert (await get(openapi, "/openapi/v2", If_Modified_Since="yesterday")).status == 200
    assert (await get(openapi, "/openapi/v2", If_Modified_Since=modified, If_None_Match='"x"')).status == 200


async def test_a_big_document_is_compressed_for_clients_that_accept_gzip(openapi: OpenAPI) -> None:
    plain = await get(openapi, "/openapi/v2")
    packed = await get(openapi, "/openapi/v2", Accept_Encoding="gzip, deflate")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept, Accept-Encoding"
    assert isinstance(packed.body, bytes)
    assert gzip.decompress(packed.body) == plain.body
    assert "Content-Encoding" not in plain.headers


PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/openapi/v2", "text/html"),
        ("/openapi/v2", "application/yaml"),
        ("/openapi/v3/api/v1", "text/html"),
        ("/openapi/v3/api/v1", "application/yaml"),
        ("/openapi/v3/api/v1", PROTOBUF),
    ],
)
async def test_documents_have_no_other_media_type(openapi: OpenAPI, path: str, accept: str) -> None:
    with pytest.raises(errors.NotAcceptable):
        await get(openapi, path, Accept=accept)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (PROTOBUF, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        (f"{PROTOBUF}, application/json", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        (f"application/json,{PROTOBUF}", "application/json"),
        ("*/*", "application/json"),
    ],
)
async def test_v2_is_protobuf_on_request(openapi: OpenAPI, accept: str, content_type: str) -> None:
    assert (await get(openapi, "/openapi/v2", Accept=accept)).headers["Content-Type"] == content_type


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


@pytest.mark.parametrize(
    "accept", ["text/html, */*", "application/*", "application/json;x=y", "text/html,application/json"]
)
async def test_json_matches_any_clause_that_includes_it(openapi: OpenAPI, accept: str) -> None:
    assert (await get(openapi, "/openapi/v2", Accept=accept)).status == 200


@pytest.mark.parametrize("path", ["/openapi/v3/apis/unknown/v1", "/openapi/v3/"])
async def test_an_unknown_group_version_is_not_found(openapi: OpenAPI, path: str) -> None:
    with pytest.raises(errors.UnknownPath):
        await get(openapi, path)


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v4", "/apis", "/openapi/v2x"])
async def test_openapi_does_not_answer_other_paths(openapi: OpenAPI, path: str) -> None:
    assert await openapi.respond(context(path)) is None


async def test_openapi_is_read_by_get_only(openapi: OpenAPI) -> None:
    with pytest.raises(errors.MethodNotAllowed):
        await get(openapi, "/openapi/v3", method="POST")


def test_openapi_lists_the_paths_that_it_answers(openapi: OpenAPI) -> None:
    assert openapi.paths() == [
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/wardle.example.com/v1alpha1",
    ]


# run in another interpreter: prints the digests of the documents of this file's groups
PRINT_THE_DIGESTS = """
import runpy, sys, orjson, hashlib
module = runpy.run_path(sys.argv[1])
documents = [module["v3"](*module["GROUPS"]), module["v2"](*module["GROUPS"])]
print([hashlib.sha512(orjson.dumps(document)).hexdigest() for document in documents])
"""


def test_the_documents_are_the_same_in_every_process() -> None:
    """The order of sets depends on the hash seed, and clients cache documents by their hash (WIRE-C38)."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_THE_DIGESTS, __file__],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert "[]" not in printed.pop()

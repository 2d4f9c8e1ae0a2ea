"""The paths that serve OpenAPI documents: their media types, caching and compression."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from apiserver.endpoints.openapi.routes import OpenAPI
from apiserver.meta import errors
from apiserver.request import request_info
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query
from tests.apiserver.endpoints.openapi_groups import FLUNDERS, GROUPS


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

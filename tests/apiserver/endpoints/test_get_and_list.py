"""The handlers get and list over HTTP (sections E and F of the protocol page)."""

from __future__ import annotations

import gzip
import json

import pytest
import yaml
from aiohttp.test_utils import make_mocked_request

from apiserver.encoding.negotiation import MediaType
from apiserver.encoding.transforms import list_view_of
from apiserver.endpoints.responsewriters import LargeResponse, json_response, list_response
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query, parse_request_info
from apiserver.storage import progress
from apiserver.storage.pagination import Page
from apiserver.storage.watch_cache import WatchCache
from tests.apiserver.endpoints.request_contexts import make_context
from tests.apiserver.endpoints.things_server import PARTIAL, PARTIAL_LIST, TABLE, THINGS, Server, cached, thing


async def test_an_object_is_served_as_compact_json(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    response = await server.ask("/namespaces/a/things/x")
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    body = await response.read()
    assert json.loads(body) == thing("x", 11)
    assert body.endswith(b"}\n")
    assert b"\n" not in body[:-1]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        pytest.param("/namespaces/a/things/x?pretty=true", {}, id="by the query"),
        pytest.param("/namespaces/a/things/x", {"User-Agent": "curl/8"}, id="for curl"),
    ],
)
async def test_a_human_reader_gets_indented_json(server: Server, path: str, headers: dict[str, str]) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    body = await (await server.ask(path, **headers)).text()
    assert body == json.dumps(json.loads(body), indent=2)
    assert body.startswith('{\n  "apiVersion"')


async def test_curl_can_request_compact_json(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    response = await server.ask("/namespaces/a/things/x?pretty=false", **{"User-Agent": "curl/8"})
    assert (await response.read()).count(b"\n") == 1


async def test_an_object_is_served_as_yaml(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11, padding="yes"))
    response = await server.ask("/namespaces/a/things/x", "application/yaml")
    assert response.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(await response.text()) == thing("x", 11, padding="yes")


async def test_an_object_is_served_as_a_table(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11, size=3))
    response = await server.ask("/namespaces/a/things/x", f"{TABLE},application/json")
    assert response.headers["Content-Type"] == "application/json"
    table = await response.json()
    assert table["rows"][0]["cells"] == ["x", 3, "<unknown>"]


@pytest.mark.parametrize(
    ("path", "accept", "code", "message"),
    [
        pytest.param(
            "/namespaces/a/things/y", "", 404, 'things.g.example.org "y" not found', id="an object that does not exist"
        ),
        pytest.param(
            "/namespaces/a/things/x",
            PARTIAL_LIST,
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list (Thing)",
            id="a list's transformation for an object",
        ),
        pytest.param(
            "/namespaces/a/things",
            PARTIAL,
            406,
            "you requested PartialObjectMetadata, but the requested object is a list (ThingList)",
            id="an object's transformation for a list",
        ),
        pytest.param(
            "/things?limit=x",
            "",
            400,
            'strconv.ParseInt: parsing "x": invalid syntax',
            id="a limit that is not a number",
        ),
        pytest.param(
            "/things",
            "text/html",
            406,
            "only the following media types are accepted: application/json, application/yaml",
            id="HTML",
        ),
    ],
)
async def test_an_error_is_a_status(server: Server, path: str, accept: str, code: int, message: str) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    response = await server.ask(path, accept)
    status = await response.json()
    assert (response.status, status["kind"], status["code"], status["message"]) == (code, "Status", code, message)


async def test_an_error_can_be_yaml_but_never_a_table(server: Server) -> None:
    status = yaml.safe_load(await (await server.ask("/namespaces/a/things/y", "application/yaml")).text())
    assert status["reason"] == "NotFound"
    response = await server.ask("/namespaces/a/things/y", TABLE)
    assert (await response.json())["kind"] == "Status"


async def test_a_retriable_error_has_a_retry_after(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_CATCH_UP_SECONDS", 0.01)
    response = await server.ask("/namespaces/a/things/x?resourceVersion=99")
    assert (response.status, response.headers["Retry-After"]) == (504, "1")


async def test_a_list_is_served(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    server.cache.apply("ADDED", cached("y", 12, namespace="b"))
    document = await (await server.ask("/things")).json()
    assert document == {
        "kind": "ThingList",
        "apiVersion": "g.example.org/v1",
        "metadata": {"resourceVersion": "12"},
        "items": [thing("x", 11), thing("y", 12, namespace="b")],
    }


async def test_an_empty_list_has_no_items(server: Server) -> None:
    assert (await (await server.ask("/namespaces/a/things")).json())["items"] == []
    assert (await (await server.ask("/namespaces/a/things", TABLE)).json())["rows"] == []


async def test_a_list_is_served_in_pages(server: Server) -> None:
    for rv, name in enumerate("xyz", start=11):
        server.cache.apply("ADDED", cached(name, rv))
    first = await (await server.ask("/things?limit=2", TABLE)).json()
    assert [row["cells"][0] for row in first["rows"]] == ["x", "y"]
    assert first["metadata"]["remainingItemCount"] == 1
    second = await (await server.ask(f"/things?limit=2&continue={first['metadata']['continue']}")).json()
    assert second["metadata"] == {"resourceVersion": "13"}
    assert [item["metadata"]["name"] for item in second["items"]] == ["z"]


async def test_a_metadata_client_gets_metadata_only(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    accept = f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList,{PARTIAL_LIST},application/json"
    document = await (await server.ask("/things", accept)).json()
    metadata = thing("x", 11)["metadata"]
    assert document == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "11"},
        "items": [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}],
    }


def fill(cache: WatchCache, count: int) -> None:
    cache.replace([cached(f"x{number:05}", 11 + number, padding="p" * 500) for number in range(count)], 11 + count)


@pytest.mark.parametrize("accept", ["application/json", TABLE, PARTIAL_LIST])
async def test_a_list_that_is_sent_in_pieces_is_complete(server: Server, accept: str) -> None:
    fill(server.cache, 1000)
    document = await (await server.ask("/things", accept)).json()
    assert len(document.get("items") or document["rows"]) == 1000


async def test_a_list_of_ordinary_size_is_sent_at_once(server: Server) -> None:
    """Each piece would pass all filters and be a TLS record of its own."""
    fill(server.cache, 100)
    response = await server.ask("/things")
    assert 64 * 1024 < int(response.headers["Content-Length"]) == len(await response.read())
    assert "Transfer-Encoding" not in response.headers


def test_a_list_counts_as_the_largest_piece_that_is_in_memory() -> None:
    """As a whole, a list of twenty large objects is more than a user may have in memory."""
    things = [cached(f"x{number}", 11, padding="p" * 100_000 * number) for number in range(20)]
    response = list_response(make_context(), list_view_of(THINGS, MediaType(), ""), Page(things, 11), media=MediaType())
    assert isinstance(response, LargeResponse)
    largest = max(len(each.json) for each in things)
    assert largest < response.memory < 2 * largest


async def test_a_big_list_is_compressed_for_clients_that_accept_gzip(server: Server) -> None:
    fill(server.cache, 1000)
    plain = await (await server.ask("/things")).read()
    server.client.session._auto_decompress = False
    response = await server.ask("/things", **{"Accept-Encoding": "gzip, deflate"})
    assert (response.headers["Content-Encoding"], response.headers["Vary"]) == ("gzip", "Accept-Encoding")
    compressed = await response.read()
    assert gzip.decompress(compressed) == plain
    assert len(compressed) < len(plain) / 5


async def test_a_small_list_is_not_compressed(server: Server) -> None:
    fill(server.cache, 10)
    response = await server.ask("/things", **{"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in response.headers
    assert "Vary" not in response.headers


@pytest.mark.parametrize("accept", ["application/yaml", "application/json;pretty=1"])
async def test_a_big_list_can_be_read_by_humans(server: Server, accept: str) -> None:
    fill(server.cache, 200)
    document = yaml.load(await (await server.ask("/things", accept)).text(), Loader=yaml.CSafeLoader)
    assert [len(document["items"]), document["kind"]] == [200, "ThingList"]


def test_a_document_is_compact_unless_requested_indented() -> None:
    context = RequestContext(
        http=make_mocked_request("GET", "/"),
        info=parse_request_info("GET", "/", Query()),
        query=Query(),
        audit_id="an-id",
    )
    assert json_response(context, {"a": 1}, indent=True).body == b'{\n  "a": 1\n}'
    created = json_response(context, {"a": 1}, code=201, headers={"X-Header": "x"})
    assert (created.status, created.body, created.headers["X-Header"]) == (201, b'{"a":1}\n', "x")

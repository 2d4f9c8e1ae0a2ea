"""The handlers get, list and watch over HTTP (sections E and F of the protocol page)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import yaml
from aiohttp import ClientError, ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from apiserver import rest
from apiserver.endpoints.handlers import watch as watch_handler
from apiserver.endpoints.handlers.get import get
from apiserver.endpoints.handlers.list import list_objects
from apiserver.endpoints.handlers.watch import watch
from apiserver.endpoints.responsewriters import json_response, status_response
from apiserver.meta import errors
from apiserver.meta.resource import Column, Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import ListOptions, WatchOptions
from apiserver.request.request_info import Query, parse_request_info
from apiserver.storage import watch_cache
from apiserver.storage.pagination import Page
from apiserver.storage.watch_cache import CachedObject, CacheWatcher, HistoryLimits, WatchCache, encode
from tests.apiserver.endpoints.request_contexts import make_context

THINGS = Resource(
    group="g.example.org",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    columns=(Column("Size", type="integer"),),
    cells=lambda obj: [obj["spec"]["size"]],
)
BASE = "/apis/g.example.org/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = PARTIAL.replace("Metadata;", "MetadataList;")


def thing(name: str, rv: int, *, namespace: str = "a", size: int = 1, padding: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(rv)}
    spec = {"size": size, "padding": padding} if padding else {"size": size}
    return {"apiVersion": "g.example.org/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def cached(name: str, rv: int, **settings: Any) -> CachedObject:
    return encode(THINGS, thing(name, rv, **settings))


class Things(rest.Getter, rest.Lister, rest.Watcher):
    resource = THINGS

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        found = await self._cache.get(key, at_least=at_least)
        if found is None:
            raise errors.NotFound(THINGS.group_resource, key.name)
        return found

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        return await self._cache.list(namespace, options)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        return await self._cache.watch(namespace, options)


@dataclass
class Server:
    """A server that serves `cache`, and its client."""

    client: TestClient[web.Request, web.Application]
    cache: WatchCache
    shutdown: asyncio.Event
    finished: asyncio.Queue[str]

    async def wait_until_answered(self) -> None:
        """Wait until a request has been answered completely or aborted."""
        async with asyncio.timeout(5):
            await self.finished.get()

    async def ask(self, path: str, accept: str = "", **headers: str) -> ClientResponse:
        return await self.client.get(
            f"{BASE}{path}",
            headers={"Accept": accept or "application/json", **headers},
            skip_auto_headers=["User-Agent", "Accept-Encoding"],
        )


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    cache = WatchCache(THINGS, bookmark_interval=60)
    cache.replace([], 10)
    shutdown = asyncio.Event()
    finished: asyncio.Queue[str] = asyncio.Queue()
    storage = Things(cache)
    handlers: dict[str, Callable[[RequestContext], Awaitable[web.StreamResponse]]] = {
        "get": lambda context: get(context, storage),
        "list": lambda context: list_objects(context, storage),
        "watch": lambda context: watch(context, storage, shutdown),
    }

    async def entry(http: web.Request) -> web.StreamResponse:
        path, _, raw = http.raw_path.partition("?")
        query = Query(raw)
        info = parse_request_info(http.method, path, query)
        context = RequestContext(http=http, info=info, query=query, audit_id="an-id")
        try:
            return await handlers[info.verb](context)
        except errors.StatusError as error:
            return status_response(context, error)
        finally:
            finished.put_nowait(info.verb)

    app = web.Application()
    app.router.add_get("/{path:.*}", entry)
    async with TestClient(TestServer(app), timeout=None) as client:
        yield Server(client, cache, shutdown, finished)
        shutdown.set()


async def frames(response: ClientResponse, count: int) -> list[Any]:
    """The next events of a watch: type and object."""
    lines = [json.loads(await response.content.readline()) for _ in range(count)]
    return [(line["type"], line["object"]) for line in lines]


# GET of an object.


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
    monkeypatch.setattr(watch_cache, "_CATCH_UP_SECONDS", 0.01)
    response = await server.ask("/namespaces/a/things/x?resourceVersion=99")
    assert (response.status, response.headers["Retry-After"]) == (504, "1")


# GET of a collection.


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


# Watches.


async def test_a_watch_sends_its_headers_before_the_first_event(server: Server) -> None:
    response = await server.ask("/things?watch=1&resourceVersion=10")
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Transfer-Encoding"] == "chunked"
    response.close()


async def test_a_watch_sends_every_change(server: Server) -> None:
    response = await server.ask("/namespaces/a/things?watch=1&resourceVersion=10")
    server.cache.apply("ADDED", cached("x", 11))
    server.cache.apply("MODIFIED", cached("x", 12, size=2))
    server.cache.apply("DELETED", cached("x", 13, size=2))
    assert await frames(response, 3) == [
        ("ADDED", thing("x", 11)),
        ("MODIFIED", thing("x", 12, size=2)),
        ("DELETED", thing("x", 13, size=2)),
    ]
    response.close()


@pytest.mark.parametrize(
    "path", ["/namespaces/a/things/x?watch=1", "/watch/namespaces/a/things/x", "/watch/namespaces/a/things/x?x=1"]
)
async def test_one_object_can_be_watched(server: Server, path: str) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    server.cache.apply("ADDED", cached("y", 12))
    response = await server.ask(path)
    server.cache.apply("MODIFIED", cached("y", 13))
    server.cache.apply("MODIFIED", cached("x", 14))
    assert await frames(response, 2) == [("ADDED", thing("x", 11)), ("MODIFIED", thing("x", 14))]
    response.close()


async def test_a_streaming_list_ends_with_a_marked_bookmark(server: Server) -> None:
    server.cache.apply("ADDED", cached("x", 11))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    response = await server.ask(f"/things?{query}")
    assert await frames(response, 2) == [
        ("ADDED", thing("x", 11)),
        (
            "BOOKMARK",
            {
                "kind": "Thing",
                "apiVersion": "g.example.org/v1",
                "metadata": {"resourceVersion": "11", "annotations": {"k8s.io/initial-events-end": "true"}},
            },
        ),
    ]
    response.close()


async def test_a_table_watch_sends_the_column_definitions_once(server: Server) -> None:
    response = await server.ask("/things?watch=1&resourceVersion=10", TABLE)
    server.cache.apply("ADDED", cached("x", 11))
    server.cache.apply("MODIFIED", cached("x", 12, size=2))
    (_, first), (_, second) = await frames(response, 2)
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Size", "Age"]
    assert second["columnDefinitions"] is None
    assert second["metadata"] == {"resourceVersion": "12"}
    assert second["rows"][0]["cells"] == ["x", 2, "<unknown>"]
    response.close()


async def test_a_metadata_watch_sends_only_metadata(server: Server) -> None:
    response = await server.ask("/things?watch=1&resourceVersion=10", PARTIAL)
    server.cache.apply("ADDED", cached("x", 11))
    ((_, obj),) = await frames(response, 1)
    assert (obj["kind"], obj["metadata"], len(obj)) == ("PartialObjectMetadata", thing("x", 11)["metadata"], 3)
    response.close()


async def test_an_expired_start_is_an_error_in_the_stream(server: Server) -> None:
    response = await server.ask("/things?watch=1&resourceVersion=5")
    assert response.status == 200
    (line,) = (await response.read()).splitlines()
    assert json.loads(line) == {
        "type": "ERROR",
        "object": {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "too old resource version: 5 (10)",
            "reason": "Expired",
            "code": 410,
        },
    }


async def test_a_streaming_list_at_a_future_version_is_an_error_in_the_stream(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_cache, "_CATCH_UP_SECONDS", 0.01)
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99"
    response = await server.ask(f"/things?{query}")
    ((kind, status),) = await frames(response, 1)
    assert (response.status, kind, status["code"]) == (200, "ERROR", 504)


async def test_an_invalid_watch_request_is_a_status(server: Server) -> None:
    response = await server.ask("/things?watch=1&labelSelector=a%20b")
    assert (response.status, (await response.json())["reason"]) == (400, "BadRequest")


async def test_a_watch_ends_cleanly_at_its_deadline(server: Server) -> None:
    response = await server.ask("/things?watch=1&resourceVersion=10&timeoutSeconds=1")
    assert await response.read() == b""
    assert server.cache.watchers == 0


async def test_a_watch_ends_cleanly_at_shutdown(server: Server) -> None:
    response = await server.ask("/things?watch=1&resourceVersion=10")
    server.shutdown.set()
    assert await response.read() == b""


async def test_a_watch_ends_when_its_client_disconnects(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.storage.watcher._IDLE_SECONDS", 0.01)
    response = await server.ask("/things?watch=1&resourceVersion=10")
    assert server.cache.watchers == 1
    response.close()
    await server.wait_until_answered()
    assert server.cache.watchers == 0


async def test_the_connection_of_a_client_that_does_not_read_is_aborted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.cache._limits = HistoryLimits(size=1_000_000)
    server.cache.replace([], 1)
    response = await server.ask("/things?watch=1&resourceVersion=1")
    rv = 1
    async with asyncio.timeout(10):
        while server.cache.watchers:
            rv += 1
            server.cache.apply("MODIFIED", cached("x", rv, padding="p" * 200_000))
            await asyncio.sleep(0)
    with pytest.raises(ClientError):
        await response.read()


async def test_a_stream_that_its_client_does_not_read_ends_soon_after_the_deadline(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_handler, "_GRACE_SECONDS", 0.1)
    response = await server.ask("/things?watch=1&resourceVersion=10&timeoutSeconds=1")
    for rv in range(11, 111):
        server.cache.apply("MODIFIED", cached("x", rv, padding="p" * 200_000))
    await server.wait_until_answered()
    assert server.cache.watchers == 0
    response.close()


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


@pytest.mark.parametrize("version", [pytest.param("10", id="served"), pytest.param("1", id="expired")])
async def test_a_client_that_disconnects_before_its_watch_begins_causes_no_error(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    async def disconnected(self: web.StreamResponse, request: web.BaseRequest) -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, "prepare", disconnected)
    cache = WatchCache(THINGS)
    cache.replace([cached("x", 5)], 10)
    context = make_context(target=f"{BASE}/things?watch=true&resourceVersion={version}")
    response = await watch(context, Things(cache), asyncio.Event())
    assert response.content_type == "application/json"
    assert cache.watchers == 0

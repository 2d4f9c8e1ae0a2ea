"""get, list and watch over HTTP, as clients ask (E, F)."""

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
from apiserver.storage import watch_cache as watchcache
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
class Served:
    """A server over `cache`, and a client of it."""

    client: TestClient[web.Request, web.Application]
    cache: WatchCache
    shutdown: asyncio.Event
    finished: asyncio.Queue[str]

    async def answered(self) -> None:
        """Wait until a request has been answered in full, or given up."""
        async with asyncio.timeout(5):
            await self.finished.get()

    async def ask(self, path: str, accept: str = "", **headers: str) -> ClientResponse:
        return await self.client.get(
            f"{BASE}{path}",
            headers={"Accept": accept or "application/json", **headers},
            skip_auto_headers=["User-Agent", "Accept-Encoding"],
        )


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served]:
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
        yield Served(client, cache, shutdown, finished)
        shutdown.set()


async def frames(response: ClientResponse, count: int) -> list[Any]:
    """The next events of a watch: type and object."""
    lines = [json.loads(await response.content.readline()) for _ in range(count)]
    return [(line["type"], line["object"]) for line in lines]


# GET of an object.


async def test_an_object_is_served_as_it_is(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    response = await served.ask("/namespaces/a/things/x")
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
async def test_a_human_reader_gets_indented_json(served: Served, path: str, headers: dict[str, str]) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    body = await (await served.ask(path, **headers)).text()
    assert body == json.dumps(json.loads(body), indent=2)
    assert body.startswith('{\n  "apiVersion"')


async def test_a_program_that_calls_itself_curl_can_decline(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    response = await served.ask("/namespaces/a/things/x?pretty=false", **{"User-Agent": "curl/8"})
    assert (await response.read()).count(b"\n") == 1


async def test_an_object_is_served_as_yaml(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11, padding="yes"))
    response = await served.ask("/namespaces/a/things/x", "application/yaml")
    assert response.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(await response.text()) == thing("x", 11, padding="yes")


async def test_an_object_is_served_as_a_table(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11, size=3))
    response = await served.ask("/namespaces/a/things/x", f"{TABLE},application/json")
    assert response.headers["Content-Type"] == "application/json"
    table = await response.json()
    assert table["rows"][0]["cells"] == ["x", 3, "<unknown>"]


@pytest.mark.parametrize(
    ("path", "accept", "code", "message"),
    [
        pytest.param("/namespaces/a/things/y", "", 404, 'things.g.example.org "y" not found', id="what is not there"),
        pytest.param(
            "/namespaces/a/things/x",
            PARTIAL_LIST,
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list (Thing)",
            id="a list of metadata of one object",
        ),
        pytest.param(
            "/namespaces/a/things",
            PARTIAL,
            406,
            "you requested PartialObjectMetadata, but the requested object is a list (ThingList)",
            id="the metadata of a list",
        ),
        pytest.param(
            "/things?limit=x", "", 400, 'strconv.ParseInt: parsing "x": invalid syntax', id="a limit of no number"
        ),
        pytest.param(
            "/things",
            "text/html",
            406,
            "only the following media types are accepted: application/json, application/yaml",
            id="a page",
        ),
    ],
)
async def test_an_error_is_a_status(served: Served, path: str, accept: str, code: int, message: str) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    response = await served.ask(path, accept)
    status = await response.json()
    assert (response.status, status["kind"], status["code"], status["message"]) == (code, "Status", code, message)


async def test_an_error_is_yaml_for_who_wants_yaml_but_never_a_table(served: Served) -> None:
    status = yaml.safe_load(await (await served.ask("/namespaces/a/things/y", "application/yaml")).text())
    assert status["reason"] == "NotFound"
    response = await served.ask("/namespaces/a/things/y", TABLE)
    assert (await response.json())["kind"] == "Status"


async def test_who_is_to_come_again_is_told_when(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchcache, "_CATCH_UP_SECONDS", 0.01)
    response = await served.ask("/namespaces/a/things/x?resourceVersion=99")
    assert (response.status, response.headers["Retry-After"]) == (504, "1")


# GET of a collection.


async def test_a_list_is_served(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    served.cache.apply("ADDED", cached("y", 12, namespace="b"))
    document = await (await served.ask("/things")).json()
    assert document == {
        "kind": "ThingList",
        "apiVersion": "g.example.org/v1",
        "metadata": {"resourceVersion": "12"},
        "items": [thing("x", 11), thing("y", 12, namespace="b")],
    }


async def test_an_empty_list_has_no_items(served: Served) -> None:
    assert (await (await served.ask("/namespaces/a/things")).json())["items"] == []
    assert (await (await served.ask("/namespaces/a/things", TABLE)).json())["rows"] == []


async def test_a_list_is_served_in_pages(served: Served) -> None:
    for rv, name in enumerate("xyz", start=11):
        served.cache.apply("ADDED", cached(name, rv))
    first = await (await served.ask("/things?limit=2", TABLE)).json()
    assert [row["cells"][0] for row in first["rows"]] == ["x", "y"]
    assert first["metadata"]["remainingItemCount"] == 1
    second = await (await served.ask(f"/things?limit=2&continue={first['metadata']['continue']}")).json()
    assert second["metadata"] == {"resourceVersion": "13"}
    assert [item["metadata"]["name"] for item in second["items"]] == ["z"]


async def test_a_metadata_client_gets_metadata_only(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    accept = f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList,{PARTIAL_LIST},application/json"
    document = await (await served.ask("/things", accept)).json()
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
async def test_a_list_that_is_sent_in_pieces_is_whole(served: Served, accept: str) -> None:
    fill(served.cache, 1000)
    document = await (await served.ask("/things", accept)).json()
    assert len(document.get("items") or document["rows"]) == 1000


async def test_a_big_list_is_compressed_where_that_is_accepted(served: Served) -> None:
    fill(served.cache, 1000)
    plain = await (await served.ask("/things")).read()
    served.client.session._auto_decompress = False
    response = await served.ask("/things", **{"Accept-Encoding": "gzip, deflate"})
    assert (response.headers["Content-Encoding"], response.headers["Vary"]) == ("gzip", "Accept-Encoding")
    compressed = await response.read()
    assert gzip.decompress(compressed) == plain
    assert len(compressed) < len(plain) / 5


async def test_a_small_list_is_not_compressed(served: Served) -> None:
    fill(served.cache, 10)
    response = await served.ask("/things", **{"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in response.headers
    assert "Vary" not in response.headers


@pytest.mark.parametrize("accept", ["application/yaml", "application/json;pretty=1"])
async def test_a_big_list_can_be_read_by_humans(served: Served, accept: str) -> None:
    fill(served.cache, 200)
    document = yaml.load(await (await served.ask("/things", accept)).text(), Loader=yaml.CSafeLoader)
    assert [len(document["items"]), document["kind"]] == [200, "ThingList"]


# Watches.


async def test_a_watch_answers_before_there_is_anything_to_tell(served: Served) -> None:
    response = await served.ask("/things?watch=1&resourceVersion=10")
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Transfer-Encoding"] == "chunked"
    response.close()


async def test_a_watch_tells_of_every_change(served: Served) -> None:
    response = await served.ask("/namespaces/a/things?watch=1&resourceVersion=10")
    served.cache.apply("ADDED", cached("x", 11))
    served.cache.apply("MODIFIED", cached("x", 12, size=2))
    served.cache.apply("DELETED", cached("x", 13, size=2))
    assert await frames(response, 3) == [
        ("ADDED", thing("x", 11)),
        ("MODIFIED", thing("x", 12, size=2)),
        ("DELETED", thing("x", 13, size=2)),
    ]
    response.close()


@pytest.mark.parametrize(
    "path", ["/namespaces/a/things/x?watch=1", "/watch/namespaces/a/things/x", "/watch/namespaces/a/things/x?x=1"]
)
async def test_one_object_can_be_watched(served: Served, path: str) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    served.cache.apply("ADDED", cached("y", 12))
    response = await served.ask(path)
    served.cache.apply("MODIFIED", cached("y", 13))
    served.cache.apply("MODIFIED", cached("x", 14))
    assert await frames(response, 2) == [("ADDED", thing("x", 11)), ("MODIFIED", thing("x", 14))]
    response.close()


async def test_a_streaming_list_ends_with_a_marked_bookmark(served: Served) -> None:
    served.cache.apply("ADDED", cached("x", 11))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    response = await served.ask(f"/things?{query}")
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


async def test_a_table_watch_tells_the_columns_once(served: Served) -> None:
    response = await served.ask("/things?watch=1&resourceVersion=10", TABLE)
    served.cache.apply("ADDED", cached("x", 11))
    served.cache.apply("MODIFIED", cached("x", 12, size=2))
    (_, first), (_, second) = await frames(response, 2)
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Size", "Age"]
    assert second["columnDefinitions"] is None
    assert second["metadata"] == {"resourceVersion": "12"}
    assert second["rows"][0]["cells"] == ["x", 2, "<unknown>"]
    response.close()


async def test_a_metadata_watch_tells_metadata(served: Served) -> None:
    response = await served.ask("/things?watch=1&resourceVersion=10", PARTIAL)
    served.cache.apply("ADDED", cached("x", 11))
    ((_, obj),) = await frames(response, 1)
    assert (obj["kind"], obj["metadata"], len(obj)) == ("PartialObjectMetadata", thing("x", 11)["metadata"], 3)
    response.close()


async def test_an_expired_start_is_an_error_in_the_stream(served: Served) -> None:
    response = await served.ask("/things?watch=1&resourceVersion=5")
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


async def test_a_streaming_list_of_the_future_is_an_error_in_the_stream(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchcache, "_CATCH_UP_SECONDS", 0.01)
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99"
    response = await served.ask(f"/things?{query}")
    ((kind, status),) = await frames(response, 1)
    assert (response.status, kind, status["code"]) == (200, "ERROR", 504)


async def test_a_refused_watch_is_a_status(served: Served) -> None:
    response = await served.ask("/things?watch=1&labelSelector=a%20b")
    assert (response.status, (await response.json())["reason"]) == (400, "BadRequest")


async def test_a_watch_ends_cleanly_at_its_deadline(served: Served) -> None:
    response = await served.ask("/things?watch=1&resourceVersion=10&timeoutSeconds=1")
    assert await response.read() == b""
    assert served.cache.watchers == 0


async def test_a_watch_ends_cleanly_at_shutdown(served: Served) -> None:
    response = await served.ask("/things?watch=1&resourceVersion=10")
    served.shutdown.set()
    assert await response.read() == b""


async def test_a_watch_whose_client_left_is_forgotten(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.storage.watcher._IDLE_SECONDS", 0.01)
    response = await served.ask("/things?watch=1&resourceVersion=10")
    assert served.cache.watchers == 1
    response.close()
    await served.answered()
    assert served.cache.watchers == 0


async def test_a_client_that_does_not_read_is_cut(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.cache._limits = HistoryLimits(size=1_000_000)
    served.cache.replace([], 1)
    response = await served.ask("/things?watch=1&resourceVersion=1")
    rv = 1
    async with asyncio.timeout(10):
        while served.cache.watchers:
            rv += 1
            served.cache.apply("MODIFIED", cached("x", rv, padding="p" * 200_000))
            await asyncio.sleep(0)
    with pytest.raises(ClientError):
        await response.read()


async def test_a_stream_that_its_client_does_not_take_ends_soon_after_the_deadline(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_handler, "_GRACE_SECONDS", 0.1)
    response = await served.ask("/things?watch=1&resourceVersion=10&timeoutSeconds=1")
    for rv in range(11, 111):
        served.cache.apply("MODIFIED", cached("x", rv, padding="p" * 200_000))
    await served.answered()
    assert served.cache.watchers == 0
    response.close()


def test_a_document_is_compact_unless_asked_otherwise() -> None:
    context = RequestContext(
        http=make_mocked_request("GET", "/"),
        info=parse_request_info("GET", "/", Query()),
        query=Query(),
        audit_id="an-id",
    )
    assert json_response(context, {"a": 1}, indent=True).body == b'{\n  "a": 1\n}'
    created = json_response(context, {"a": 1}, code=201, headers={"X-Header": "x"})
    assert (created.status, created.body, created.headers["X-Header"]) == (201, b'{"a":1}\n', "x")


@pytest.mark.parametrize("version", [pytest.param("10", id="served"), pytest.param("1", id="refused")])
async def test_a_client_that_is_gone_before_its_watch_begins_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    async def gone(self: web.StreamResponse, request: web.BaseRequest) -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, "prepare", gone)
    cache = WatchCache(THINGS)
    cache.replace([cached("x", 5)], 10)
    context = make_context(target=f"{BASE}/things?watch=true&resourceVersion={version}")
    response = await watch(context, Things(cache), asyncio.Event())
    assert response.content_type == "application/json"
    assert cache.watchers == 0

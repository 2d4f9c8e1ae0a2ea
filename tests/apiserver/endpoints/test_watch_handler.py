"""The handler watch over HTTP (sections E and F of the protocol page)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientError, ClientResponse, web

from apiserver.endpoints.handlers import watch as watch_handler
from apiserver.endpoints.handlers.watch import watch
from apiserver.storage import progress
from apiserver.storage.watch_cache import HistoryLimits, WatchCache
from tests.apiserver.endpoints.request_contexts import make_context
from tests.apiserver.endpoints.things_server import BASE, PARTIAL, TABLE, THINGS, Server, Things, cached, thing


async def frames(response: ClientResponse, count: int) -> list[Any]:
    """The next events of a watch: type and object."""
    lines = [json.loads(await response.content.readline()) for _ in range(count)]
    return [(line["type"], line["object"]) for line in lines]


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
    "path",
    [
        "/namespaces/a/things?watch=1&fieldSelector=metadata.name%3Dx",
        "/watch/namespaces/a/things/x",
        "/watch/namespaces/a/things/x?x=1",
    ],
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
    monkeypatch.setattr(progress, "_CATCH_UP_SECONDS", 0.01)
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

"""Watches over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import orjson
import pytest
from aiohttp import web

from apiserver.json import deep
from apiserver.meta.errors import StatusError
from registry.cluster.client import HttpClusterClient
from registry.cluster.interface import HELMRELEASES, ClusterUnreachable, reason_for_log
from tests.cpu_time import LeastRatio, cpu_seconds, without_collector
from tests.registry.cluster.http_server import Answer, Server, json, stream, watched


def _line(type_: str, **metadata: Any) -> bytes:
    return orjson.dumps({"type": type_, "object": {"metadata": metadata}}) + b"\n"


async def test_a_watch_yields_events_until_the_server_ends_it(server: Server, client: HttpClusterClient) -> None:
    lines = _line("ADDED", name="a") + _line("BOOKMARK", resourceVersion="9")
    server.answer = stream(lines[:10], lines[10:])
    found = await watched(client, label_selector="a=b", timeout_seconds=30, send_initial_events=True)
    assert [(event.type, event.object["metadata"]) for event in found] == [
        ("ADDED", {"name": "a"}),
        ("BOOKMARK", {"resourceVersion": "9"}),
    ]
    assert server.requests[0][2] == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "labelSelector": "a=b",
        "timeoutSeconds": "30",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


async def test_an_event_of_several_megabytes_is_received(server: Server, client: HttpClusterClient) -> None:
    server.answer = stream(_line("ADDED", annotations={"a": "x" * 5_000_000}))
    (event,) = await watched(client)
    assert len(event.object["metadata"]["annotations"]["a"]) == 5_000_000


BRACKETS = b"[" * 300 + b"[]," * 400_000 + b"1" + b"]" * 300


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
async def test_a_megabyte_of_brackets_is_parsed_beside_the_event_loop(
    server: Server, client: HttpClusterClient, verb: str
) -> None:
    """ATTACK-13."""
    item = b'{"kind":"HelmRelease","metadata":{"name":"a","resourceVersion":"7"},"spec":' + BRACKETS + b"}"

    async def read() -> None:
        if verb == "watch":
            server.answer = stream(b'{"type":"ADDED","object":' + item + b"}\n")
            assert len(await watched(client)) == 1
        elif verb == "get":
            server.answer = stream(item)
            assert (await client.get(HELMRELEASES, "a", "a"))["metadata"]["name"] == "a"
        else:
            server.answer = stream(b'{"items":[' + item + b'],"metadata":{"resourceVersion":"7"}}')
            names = list[str]()
            await client.each_list_item(HELMRELEASES, visit=lambda found: names.append(found["metadata"]["name"]))
            assert names == ["a"]

    ratio = LeastRatio(below=0.5)
    with without_collector():
        while ratio.is_undecided:
            ratio.add(await _longest_step(read()), baseline=cpu_seconds(lambda: deep.loads(item)))
    assert ratio.value < 0.5


async def _longest_step(work: Coroutine[Any, Any, None]) -> float:
    """The CPU time of the event loop's thread for its longest step, in seconds."""
    running, longest, started = asyncio.ensure_future(work), 0.0, time.thread_time()
    while not running.done():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, started = max(longest, now - started), now
    await running
    return longest


async def test_an_aborted_watch_yields_its_complete_events_and_raises(
    server: Server, client: HttpClusterClient
) -> None:
    server.answer = stream(_line("ADDED", name="a"), b'{"type":"ADD', cut=True)
    events = aiter(client.watch(HELMRELEASES, resource_version="5"))
    assert (await anext(events)).object == {"metadata": {"name": "a"}}
    with pytest.raises(ClusterUnreachable) as raised:
        await anext(events)
    assert reason_for_log(raised.value) == "the connection was closed while the response was sent"


async def test_a_watch_tells_when_it_is_accepted(server: Server, client: HttpClusterClient) -> None:
    opened = list[bool]()
    server.answer = stream(_line("ADDED", name="a"))
    await watched(client, on_open=lambda: opened.append(True))
    assert opened == [True]
    server.answer = json({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}, status=403)
    with pytest.raises(StatusError):
        await watched(client, on_open=lambda: opened.append(True))
    assert opened == [True]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            stream(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'),
            id="in the stream",
        ),
        pytest.param(
            json({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}, status=410),
            id="before the stream",
        ),
    ],
)
async def test_a_rejected_watch_raises_the_status(server: Server, client: HttpClusterClient, answer: Answer) -> None:
    server.answer = answer
    with pytest.raises(StatusError) as raised:
        await watched(client)
    assert (raised.value.code, raised.value.message) == (410, "old")


async def test_closing_a_watch_closes_its_connection(server: Server, client: HttpClusterClient) -> None:
    closed = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(_line("ADDED", name="a"))
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()
        return response

    server.answer = answer
    events = client.watch(HELMRELEASES, resource_version="5")
    await anext(aiter(events))
    await events.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(closed.wait(), 5)

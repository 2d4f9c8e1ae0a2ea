from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from apiserver.meta.errors import BadRequest, StatusError
from apiserver.meta.resource import Object
from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.client import HttpClusterClient
from registry.cluster.interface import (
    HELMRELEASES,
    NAMESPACES,
    TOKEN_REVIEWS_PATH,
    ClusterUnreachable,
    NotServed,
    UnexpectedAnswer,
    reason_for_log,
)
from registry.cluster.watch_decoder import MalformedStream
from tests.plain_http import plain_http
from tests.registry.cluster.http_server import Answer, Server, json, stream, watched


def _body(body: bytes, *, status: int = 200, content_type: str = "text/html") -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type=content_type)

    return answer


async def test_the_observer_gets_every_request_with_its_outcome(address: str, unused_tcp_port: int) -> None:
    observed: list[tuple[str, str, int | None]] = []
    answering, silent = (
        HttpClusterClient(plain_http(host), observe=lambda *outcome: observed.append(outcome))
        for host in (address, f"http://127.0.0.1:{unused_tcp_port}")
    )
    await answering.get(NAMESPACES, "", "a")
    with pytest.raises(ClusterUnreachable):
        await silent.get(NAMESPACES, "", "a")
    await answering.close()
    await silent.close()
    assert observed == [
        ("GET", address.removeprefix("http://").rstrip("/"), 200),
        ("GET", f"127.0.0.1:{unused_tcp_port}", None),
    ]


async def test_every_call_sends_the_request_that_kubernetes_expects(server: Server, client: HttpClusterClient) -> None:
    obj = {"metadata": {"name": "a", "namespace": "n"}}
    await client.get(HELMRELEASES, "n", "a")
    await client.list(NAMESPACES, label_selector="a=b", limit=500, continue_token="t", resource_version="7")
    await client.create(HELMRELEASES, obj, dry_run=True, field_manager="m")
    await client.update(HELMRELEASES, obj, subresource="status")
    await client.patch(HELMRELEASES, "n", "a", {"x": 1}, content_type=MERGE_PATCH, force=True)
    await client.delete(HELMRELEASES, "n", "a", options={"propagationPolicy": "Foreground"})
    await client.review(TOKEN_REVIEWS_PATH, {"spec": {}})
    releases = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/n/helmreleases"
    assert server.requests == [
        ("GET", f"{releases}/a", {}, None),
        (
            "GET",
            "/api/v1/namespaces",
            {"labelSelector": "a=b", "limit": "500", "continue": "t", "resourceVersion": "7"},
            None,
        ),
        ("POST", releases, {"dryRun": "All", "fieldManager": "m"}, obj),
        ("PUT", f"{releases}/a/status", {}, obj),
        ("PATCH", f"{releases}/a", {"force": "true"}, {"x": 1}),
        (
            "DELETE",
            f"{releases}/a",
            {},
            {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"},
        ),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}, {"spec": {}}),
    ]
    assert server.headers[4]["Content-Type"] == "application/merge-patch+json"
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer t0"}


DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {"metadata": {"name": "empty.example.org"}},
        {
            "metadata": {"name": "example.org"},
            "versions": [
                {"version": "v1", "resources": [{"resource": "boxes"}, {"resource": "crates"}]},
                {"version": "v1beta1"},
            ],
        },
    ],
}
CORE = {
    "kind": "APIGroupDiscoveryList",
    "items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [{"resource": "nodes"}]}]}],
}


async def test_everything_that_is_served_is_found_by_two_requests_which_are_repeated_with_the_etag(
    server: Server, client: HttpClusterClient
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers.get("If-None-Match") == '"5"':
            return web.Response(status=304)
        return web.json_response(CORE if request.path == "/api" else DISCOVERY, headers={"ETag": '"5"'})

    server.answer = answer
    expected = {("", "v1", "nodes"), ("example.org", "v1", "boxes"), ("example.org", "v1", "crates")}
    assert [await client.served_resources() for _ in range(2)] == [expected, expected]
    assert [each[:2] for each in server.requests] == [("GET", "/api"), ("GET", "/apis")] * 2
    assert "as=APIGroupDiscoveryList" in server.headers[0]["Accept"]
    assert [each.get("If-None-Match") for each in server.headers] == [None, None, '"5"', '"5"']


async def test_lookups_that_begin_together_share_one_discovery(server: Server, client: HttpClusterClient) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(CORE if request.path == "/api" else DISCOVERY)

    server.answer = answer
    first, second = await asyncio.gather(client.served_resources(), client.served_resources())
    assert first == second
    assert len(server.requests) == 2


async def test_a_cluster_without_aggregated_discovery_is_no_error(server: Server, client: HttpClusterClient) -> None:
    server.answer = json({"kind": "APIGroupList", "groups": []})
    assert await client.served_resources() is None


def _list(*names: str, **metadata: str) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": name}} for name in names], "metadata": {"resourceVersion": "9", **metadata}}


async def names_of(client: HttpClusterClient, **options: str) -> tuple[list[str], str]:
    found: list[str] = []
    version = await client.each_list_item(
        NAMESPACES, visit=lambda obj: found.append(obj["metadata"]["name"]), **options
    )
    return found, version


@pytest.mark.parametrize(
    ("version", "query"),
    [
        pytest.param("", {"limit": "500"}, id="the newest"),
        pytest.param("0", {"limit": "500", "resourceVersion": "0"}, id="any version from the cache"),
        pytest.param("7", {"resourceVersion": "7", "resourceVersionMatch": "NotOlderThan"}, id="at least this version"),
    ],
)
async def test_each_list_item_visits_all_items(
    server: Server, client: HttpClusterClient, version: str, query: dict[str, str]
) -> None:
    server.answer = json(_list("a", "b"))
    assert await names_of(client, resource_version=version, label_selector="x=y") == (["a", "b"], "9")
    assert server.requests == [("GET", "/api/v1/namespaces", {**query, "labelSelector": "x=y"}, None)]


async def test_a_page_of_a_version_is_requested_as_exactly_that_version(
    server: Server, client: HttpClusterClient
) -> None:
    """Without the match, a kube-apiserver 1.36 ignores the version if the selector names one object."""
    server.answer = json(_list("a"))
    await client.list(NAMESPACES, field_selector="metadata.name=a", limit=1, resource_version="7")
    assert server.requests[0][2] == {
        "fieldSelector": "metadata.name=a",
        "limit": "1",
        "resourceVersion": "7",
        "resourceVersionMatch": "Exact",
    }


async def test_all_pages_of_a_list_are_read(server: Server, client: HttpClusterClient) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        rest = request.query.get("continue")
        return web.json_response(_list("c") if rest else _list("a", "b", **{"continue": "t"}))

    server.answer = answer
    assert await names_of(client, resource_version="0") == (["a", "b", "c"], "9")
    assert server.requests[1][2] == {"limit": "500", "continue": "t"}


async def test_the_first_objects_of_a_list_are_read_in_small_pages(server: Server, client: HttpClusterClient) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", 0))
        end = start + int(request.query["limit"])
        return web.json_response(_list(*map(str, range(start, end)), **{"continue": str(end)}))

    server.answer = answer
    found: list[Any] = []
    read = await client.visit_first(NAMESPACES, visit=found.append, limit=60, max_bytes=10**6)
    assert [each["metadata"]["name"] for each in found] == [str(number) for number in range(60)]
    assert (read.objects, read.truncated) == (60, True)
    assert [each[2] for each in server.requests] == [{"limit": "50"}, {"limit": "10", "continue": "50"}]


async def test_the_rest_of_a_list_is_not_read_where_its_first_pages_have_expired(
    server: Server, client: HttpClusterClient
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "continue" in request.query:
            return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
        return web.json_response(_list("a", **{"continue": "t"}))

    server.answer = answer
    found: list[Any] = []
    read = await client.visit_first(NAMESPACES, visit=found.append, limit=60, max_bytes=10**6)
    assert (len(found), read.objects, read.truncated) == (1, 1, True)


async def test_a_list_of_large_objects_is_read_one_at_a_time_up_to_a_size(
    server: Server, client: HttpClusterClient
) -> None:
    large = f'{{"metadata":{{"name":"a","annotations":{{"x":"{"x" * 250_000}"}}}}}}'.encode()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"metadata":{"resourceVersion":"9"},"items":[' + large)
        for _ in range(199):
            await response.write(b"," + large)
        await response.write(b"]}")
        return response

    server.answer = answer
    names: list[str] = []
    tracemalloc.start()
    try:
        whole = await client.visit_first(
            NAMESPACES, visit=lambda obj: names.append(obj["metadata"]["name"]), limit=200, max_bytes=10**8
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(names), whole.objects, whole.truncated) == (200, 200, False)
    assert whole.size > 200 * len(large)
    assert peak < 15_000_000
    part = await client.visit_first(
        NAMESPACES, visit=lambda obj: names.append(obj["metadata"]["name"]), limit=200, max_bytes=2_000_000
    )
    assert part.truncated
    assert 7 <= part.objects <= 9


@pytest.mark.parametrize(
    ("damaged", "is_read"),
    [
        pytest.param(lambda packed: packed, True, id="complete"),
        pytest.param(lambda packed: packed[: len(packed) // 2], False, id="cut"),
        pytest.param(lambda packed: packed[:20] + bytes(20) + packed[40:], False, id="damaged"),
    ],
)
async def test_a_compressed_list_is_read_whole_or_not_at_all(
    server: Server, client: HttpClusterClient, damaged: Callable[[bytes], bytes], is_read: bool
) -> None:
    items = [{"metadata": {"name": f"a{number}"}} for number in range(1000)]
    packed = gzip.compress(orjson.dumps({"metadata": {"resourceVersion": "7"}, "items": items}))

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        return web.Response(body=damaged(packed), headers=headers)

    server.answer = answer
    visited: list[Object] = []
    if is_read:
        assert await client.each_list_item(NAMESPACES, visit=visited.append) == "7"
        assert visited == items
    else:
        with pytest.raises((ClusterUnreachable, MalformedStream)):
            await client.each_list_item(NAMESPACES, visit=visited.append)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(json({"kind": "Status", "code": 410, "reason": "Expired"}, 410), 410, id="rejected"),
        pytest.param(_body(b'{"items":[{"metadata":{"name":"a"}}'), 503, id="truncated"),
        pytest.param(_body(b"<html>"), 503, id="not a list"),
        pytest.param(stream(b'{"items":[', cut=True), 503, id="connection lost"),
    ],
)
async def test_an_incomplete_list_is_an_error(
    server: Server, client: HttpClusterClient, answer: Answer, code: int
) -> None:
    server.answer = answer
    with pytest.raises(StatusError) as raised:
        await names_of(client)
    assert raised.value.code == code


async def test_a_name_cannot_change_the_path(server: Server, client: HttpClusterClient) -> None:
    await client.get(HELMRELEASES, "n", "a?x=1%2F")
    assert server.requests[0][1].endswith("/helmreleases/a%3Fx%3D1%252F")
    for name in ("..", ".", "a/status", "a/../b"):
        with pytest.raises(BadRequest):
            await client.get(HELMRELEASES, "n", name)
    assert len(server.requests) == 1


async def test_an_error_response_is_raised_as_its_status(server: Server, client: HttpClusterClient) -> None:
    details = {"name": "a", "group": "g", "kind": "k", "retryAfterSeconds": 3}
    server.answer = json(
        {"kind": "Status", "code": 409, "reason": "Conflict", "message": "no", "details": details}, status=409
    )
    with pytest.raises(StatusError) as raised:
        await client.get(HELMRELEASES, "n", "a")
    error = raised.value
    assert (error.code, error.reason, error.message, error.details, error.retry_after) == (
        409,
        "Conflict",
        "no",
        details,
        3,
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_body(b"<html>bad gateway</html>", status=502), id="HTML with 502"),
        pytest.param(_body(b"<html>login</html>"), id="HTML with 200"),
        pytest.param(_body(b"404 page not found", status=404, content_type="text/plain"), id="text with 404"),
        pytest.param(_body(b'{"kind":"Thing"', content_type="application/json"), id="half a document"),
        pytest.param(json([]), id="a list"),
        pytest.param(json({"error": "x"}, status=503), id="another kind of error"),
        pytest.param(json({"kind": "Status", "code": "x"}, status=500), id="a malformed Status"),
        pytest.param(stream(b'{"kind":', cut=True), id="aborted"),
    ],
)
async def test_an_unusable_response_counts_as_an_unreachable_cluster(
    server: Server, client: HttpClusterClient, answer: Answer
) -> None:
    server.answer = answer
    with pytest.raises(ClusterUnreachable) as raised:
        await client.get(HELMRELEASES, "n", "a")
    assert raised.value.code == 503
    assert raised.value.retry_after > 0


async def test_a_group_that_is_not_served_is_distinguished_from_an_unreachable_cluster(
    server: Server, client: HttpClusterClient
) -> None:
    server.answer = _body(b"404 page not found\n", status=404, content_type="text/plain")
    with pytest.raises(NotServed):
        await client.list(HELMRELEASES, limit=1)
    with pytest.raises(NotServed):
        await watched(client)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(
            _body(b"service unavailable\n", status=503, content_type="text/plain"),
            "503 Service Unavailable: service unavailable",
            id="the aggregator's, for a server that is down",
        ),
        pytest.param(_body(b"<html>\n<body>", status=502), "502 Bad Gateway: <html> <body>", id="a proxy's"),
        pytest.param(_body(b"<html>"), "200 OK: <html>", id="of something else"),
        pytest.param(_body(b"", status=500), "500 Internal Server Error", id="empty"),
        pytest.param(_body(b"[1]"), "200 OK: [1]", id="no object"),
        pytest.param(json({"a": 1}, status=500), '500 Internal Server Error: {"a": 1}', id="no Status"),
        pytest.param(_body(b"\xff\x1b[31m" + b"x" * 500), f"200 OK: ??[31m{'x' * 194}", id="long and unprintable"),
    ],
)
async def test_an_answer_that_is_no_status_is_told_from_no_answer(
    server: Server, client: HttpClusterClient, answer: Answer, why: str
) -> None:
    server.answer = answer
    with pytest.raises(UnexpectedAnswer) as raised:
        await client.discover("apps.cozystack.io/v1alpha1")
    assert reason_for_log(raised.value) == f"the answer is {why}"
    # clients of ours learn nothing of it
    assert raised.value.message == "kube-apiserver cannot be reached"


async def test_a_refused_connection_is_an_unreachable_cluster(unused_tcp_port: int) -> None:
    client = HttpClusterClient(plain_http(f"http://127.0.0.1:{unused_tcp_port}"))
    try:
        with pytest.raises(ClusterUnreachable) as raised:
            await client.get(HELMRELEASES, "n", "a")
        assert str(unused_tcp_port) not in raised.value.message
        with pytest.raises(ClusterUnreachable):
            await anext(aiter(client.watch(HELMRELEASES, resource_version="")))
    finally:
        await client.close()


async def test_rejected_credentials_are_an_unreachable_cluster(server: Server, client: HttpClusterClient) -> None:
    server.answer = json({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
    with pytest.raises(ClusterUnreachable):
        await client.get(HELMRELEASES, "n", "a")
    with pytest.raises(ClusterUnreachable):
        await anext(aiter(client.watch(HELMRELEASES, resource_version="")))


async def test_rejected_credentials_are_renewed(server: Server, address: str) -> None:
    configuration = plain_http(address)
    configuration.api_key["BearerToken"] = "Bearer old"

    async def refresh() -> None:
        configuration.api_key["BearerToken"] = "Bearer new"

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({}, status=200 if request.headers["Authorization"] == "Bearer new" else 401)

    server.answer = answer
    client = HttpClusterClient(configuration, refresh=refresh)
    try:
        assert await client.get(HELMRELEASES, "n", "a") == {}
    finally:
        await client.close()


async def test_a_request_is_not_sent_again_after_its_timeout(
    server: Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.cluster.client.REQUEST_SECONDS", 0.2)
    server.answer = json({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)

    async def refresh() -> None:
        # such as a credential plugin that hangs
        await asyncio.Event().wait()

    client = HttpClusterClient(plain_http(address), refresh=refresh)
    with pytest.raises(ClusterUnreachable):
        await client.create(NAMESPACES, {"metadata": {"name": "a"}})
    await client.close()
    assert len(server.requests) == 1

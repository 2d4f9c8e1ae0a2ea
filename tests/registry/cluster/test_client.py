from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from apiserver.meta.errors import BadRequest, StatusError
from apiserver.tls.certificates import make_ca
from registry.cluster.client import HttpClusterClient
from registry.cluster.connection import load_in_cluster
from registry.cluster.interface import (
    HELMRELEASES,
    MERGE_PATCH,
    NAMESPACES,
    TOKEN_REVIEWS_PATH,
    ClusterUnreachable,
    NotServed,
    WatchEvent,
)
from registry.cluster.kubernetes_asyncio_shim import Configuration

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """An HTTP server that records requests and responds with `answer`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = _json({"kind": "Thing"})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path, query = request.url.raw_path, dict(request.query)
        self.requests.append((request.method, path, query, orjson.loads(body) if body else None))
        self.headers.append(dict(request.headers))
        return await self.answer(request)


def _json(document: Any, status: int = 200) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status)

    return answer


def _body(body: bytes, *, status: int = 200, content_type: str = "text/html") -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type=content_type)

    return answer


def _stream(*chunks: bytes, cut: bool = False) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def address(server: Server) -> AsyncIterator[str]:
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(app, handler_cancellation=True) as running:
        yield str(running.make_url("/"))


@pytest.fixture
async def client(address: str) -> AsyncIterator[HttpClusterClient]:
    configuration = Configuration(host=address)
    configuration.api_key["BearerToken"] = "Bearer t0"
    client = HttpClusterClient(configuration)
    yield client
    await client.close()


async def test_the_observer_gets_every_request_with_its_outcome(address: str, unused_tcp_port: int) -> None:
    observed: list[tuple[str, str, int | None]] = []
    answering, silent = (
        HttpClusterClient(Configuration(host=host), observe=lambda *outcome: observed.append(outcome))
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
    server.answer = _json(_list("a", "b"))
    assert await names_of(client, resource_version=version, label_selector="x=y") == (["a", "b"], "9")
    assert server.requests == [("GET", "/api/v1/namespaces", {**query, "labelSelector": "x=y"}, None)]


async def test_all_pages_of_a_list_are_read(server: Server, client: HttpClusterClient) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        rest = request.query.get("continue")
        return web.json_response(_list("c") if rest else _list("a", "b", **{"continue": "t"}))

    server.answer = answer
    assert await names_of(client, resource_version="0") == (["a", "b", "c"], "9")
    assert server.requests[1][2] == {"limit": "500", "continue": "t"}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(_json({"kind": "Status", "code": 410, "reason": "Expired"}, 410), 410, id="rejected"),
        pytest.param(_body(b'{"items":[{"metadata":{"name":"a"}}'), 503, id="truncated"),
        pytest.param(_body(b"<html>"), 503, id="not a list"),
        pytest.param(_stream(b'{"items":[', cut=True), 503, id="connection lost"),
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
    await client.get(HELMRELEASES, "n", "a/../b?x=1")
    assert server.requests[0][1].endswith("/helmreleases/a%2F..%2Fb%3Fx%3D1")
    with pytest.raises(BadRequest):
        await client.get(HELMRELEASES, "n", "..")


async def test_an_error_response_is_raised_as_its_status(server: Server, client: HttpClusterClient) -> None:
    details = {"name": "a", "group": "g", "kind": "k", "retryAfterSeconds": 3}
    server.answer = _json(
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
        pytest.param(_json([]), id="a list"),
        pytest.param(_json({"error": "x"}, status=503), id="another kind of error"),
        pytest.param(_json({"kind": "Status", "code": "x"}, status=500), id="a malformed Status"),
        pytest.param(_stream(b'{"kind":', cut=True), id="aborted"),
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
        await _watched(client)


async def test_a_refused_connection_is_an_unreachable_cluster(unused_tcp_port: int) -> None:
    client = HttpClusterClient(Configuration(host=f"http://127.0.0.1:{unused_tcp_port}"))
    try:
        with pytest.raises(ClusterUnreachable) as raised:
            await client.get(HELMRELEASES, "n", "a")
        assert str(unused_tcp_port) not in raised.value.message
        with pytest.raises(ClusterUnreachable):
            await anext(aiter(client.watch(HELMRELEASES, resource_version="")))
    finally:
        await client.close()


async def test_rejected_credentials_are_an_unreachable_cluster(server: Server, client: HttpClusterClient) -> None:
    server.answer = _json({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
    with pytest.raises(ClusterUnreachable):
        await client.get(HELMRELEASES, "n", "a")
    with pytest.raises(ClusterUnreachable):
        await anext(aiter(client.watch(HELMRELEASES, resource_version="")))


async def test_rejected_credentials_are_renewed(server: Server, address: str) -> None:
    configuration = Configuration(host=address)
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


async def test_a_kubeconfig_provides_the_address_and_the_credentials(
    server: Server, address: str, tmp_path: Path
) -> None:
    """R-339."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    client = await HttpClusterClient.connect(path)
    try:
        await client.get(NAMESPACES, "", "default")
    finally:
        await client.close()
    assert server.headers[0]["Authorization"] == "Bearer secret"


def test_the_service_account_is_used_within_a_cluster_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R-339: outside of a cluster there is none to load."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert not load_in_cluster(Configuration())
    for name, content in (("token", b"secret"), ("ca.crt", make_ca("cluster").certificate)):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("kubernetes_asyncio.config.incluster_config.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr("kubernetes_asyncio.config.incluster_config.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    configuration = Configuration()
    assert load_in_cluster(configuration)
    assert (configuration.host, configuration.ssl_ca_cert) == ("https://192.0.2.1:443", str(tmp_path / "ca.crt"))


async def test_a_missing_kubeconfig_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no usable kubeconfig"):
        await HttpClusterClient.connect(tmp_path / "missing")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("root:x:0:0", id="another file"),
        pytest.param("- a", id="a list"),
        pytest.param("a: [", id="malformed YAML"),
        pytest.param("clusters: 5\ncurrent-context: c", id="a number as clusters"),
        pytest.param(
            "current-context: c\ncontexts: [{name: c}]\nclusters: []\nusers: []", id="a context without a cluster"
        ),
        pytest.param(
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
            "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority-data: YQ==}}]\n"
            "users: [{name: u, user: {}}]",
            id="an invalid CA",
        ),
    ],
)
async def test_the_error_of_an_invalid_kubeconfig_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ValueError, match="no usable kubeconfig") as refusal:
        await HttpClusterClient.connect(path)
    assert "\n" not in str(refusal.value)


def _line(type_: str, **metadata: Any) -> bytes:
    return orjson.dumps({"type": type_, "object": {"metadata": metadata}}) + b"\n"


async def _watched(client: HttpClusterClient, **options: Any) -> list[WatchEvent]:
    return [event async for event in client.watch(HELMRELEASES, resource_version="5", **options)]


async def test_a_watch_yields_events_until_the_server_ends_it(server: Server, client: HttpClusterClient) -> None:
    lines = _line("ADDED", name="a") + _line("BOOKMARK", resourceVersion="9")
    server.answer = _stream(lines[:10], lines[10:])
    found = await _watched(client, label_selector="a=b", timeout_seconds=30, send_initial_events=True)
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
    server.answer = _stream(_line("ADDED", annotations={"a": "x" * 5_000_000}))
    (event,) = await _watched(client)
    assert len(event.object["metadata"]["annotations"]["a"]) == 5_000_000


async def test_an_aborted_watch_yields_its_complete_events_and_raises(
    server: Server, client: HttpClusterClient
) -> None:
    server.answer = _stream(_line("ADDED", name="a"), b'{"type":"ADD', cut=True)
    events = aiter(client.watch(HELMRELEASES, resource_version="5"))
    assert (await anext(events)).object == {"metadata": {"name": "a"}}
    with pytest.raises(ClusterUnreachable):
        await anext(events)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            _stream(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'),
            id="in the stream",
        ),
        pytest.param(
            _json({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}, status=410),
            id="before the stream",
        ),
    ],
)
async def test_a_rejected_watch_raises_the_status(server: Server, client: HttpClusterClient, answer: Answer) -> None:
    server.answer = answer
    with pytest.raises(StatusError) as raised:
        await _watched(client)
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

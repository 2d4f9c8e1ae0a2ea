"""The webhook client against a real HTTPS server."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from admission.webhook.accessor import WebhookEndpoint
from admission.webhook.client import WebhookClient
from admission.webhook.errors import CallFailed
from apiserver.tls import certificates
from registry.cluster.interface import SERVICES
from tests.e2e.support.admission.webhook_server import RawReply, WebhookServer
from tests.e2e.support.clusters.processes import wait_until
from tests.fake_cluster import FakeCluster

_BODY = b'{"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}}'
_PROXY = "http://127.0.0.1:9"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebhookServer]:
    running = WebhookServer(tmp_path)
    yield running
    running.stop()


class RecordingProxies:
    """Returns a proxy that does not listen, and records the URLs."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def __call__(self, url: URL) -> str | None:
        self.urls.append(str(url))
        return _PROXY


@pytest.fixture
def proxies() -> RecordingProxies:
    return RecordingProxies()


@pytest.fixture
async def client(cluster: FakeCluster, proxies: RecordingProxies) -> AsyncIterator[WebhookClient]:
    client = WebhookClient(cluster, proxy=proxies)
    yield client
    await client.close()


async def post(
    client: WebhookClient, endpoint: WebhookEndpoint, *, seconds: float = 30.0, remaining: float = 30.0
) -> bytes:
    return await client.post(endpoint, _BODY, seconds=seconds, remaining=remaining)


async def failure(client: WebhookClient, endpoint: WebhookEndpoint, **more: Any) -> str:
    with pytest.raises(CallFailed) as caught:
        await post(client, endpoint, **more)
    return str(caught.value)


def endpoint_of(server: WebhookServer, path: str = "/x") -> WebhookEndpoint:
    return WebhookEndpoint(f"{server.url}{path}", ca_bundle=server.ca)


def service(port: int, **spec: Any) -> Any:
    return {"metadata": {"name": "hook", "namespace": "webhooks"}, "spec": {"ports": [{"port": port}], **spec}}


async def test_a_call_returns_the_response_body(client: WebhookClient, server: WebhookServer) -> None:
    server.respond_with("/x", RawReply(b"response"))
    assert await post(client, endpoint_of(server)) == b"response"
    [call] = server.calls("/x")
    assert call.target == "/x?timeout=30s"
    assert call.headers["User-Agent"] == "tenant-apiserver-admission"
    assert "Authorization" not in call.headers


async def test_a_compressed_response_is_decoded(client: WebhookClient, server: WebhookServer) -> None:
    server.respond_with("/x", RawReply(gzip.compress(b"response"), headers={"Content-Encoding": "gzip"}))
    assert await post(client, endpoint_of(server)) == b"response"


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
async def test_a_response_above_the_size_limit_is_a_failed_call(
    client: WebhookClient, server: WebhookServer, compressed: bool
) -> None:
    body = b" " * (8 * 1024 * 1024 + 1)
    reply = RawReply(gzip.compress(body), headers={"Content-Encoding": "gzip"}) if compressed else RawReply(body)
    server.respond_with("/x", reply)
    assert await failure(client, endpoint_of(server)) == (
        "failed to call webhook: the response is larger than 8388608 bytes"
    )


async def test_webhooks_with_the_same_ca_bundle_share_connections(client: WebhookClient, server: WebhookServer) -> None:
    for path in ("/x", "/x", "/y"):
        server.respond_with(path, RawReply(b"response"))
        await post(client, endpoint_of(server, path))
    calls = [*server.calls("/x"), *server.calls("/y")]
    assert len({call.connection for call in calls}) == 1


@pytest.mark.parametrize(("seconds", "remaining", "timeout"), [(0.2, 30.0, "1s"), (30.0, 2.3, "3s"), (4.5, 9.0, "5s")])
async def test_the_request_url_carries_the_timeout(
    client: WebhookClient, server: WebhookServer, seconds: float, remaining: float, timeout: str
) -> None:
    server.respond_with("/x", RawReply(b"response"))
    await post(client, endpoint_of(server), seconds=seconds, remaining=remaining)
    assert server.calls("/x")[0].target == f"/x?timeout={timeout}"


async def test_a_call_fails_after_the_timeout_of_the_webhook(client: WebhookClient, server: WebhookServer) -> None:
    release = threading.Event()

    def slow(_: object) -> RawReply:
        release.wait(60)
        return RawReply(b"response")

    server.respond_with("/x", slow)
    # any later than that, the call would not fail
    message = await failure(client, endpoint_of(server), seconds=0.2, remaining=600.0)
    release.set()
    # otherwise the connection would outlive the event loop
    await asyncio.to_thread(wait_until, "the connection is closed", lambda: not server.open_connections)
    assert message == f'failed to call webhook: Post "{server.url}/x?timeout=1s": context deadline exceeded'


async def test_a_missing_tls_handshake_fails_after_the_timeout_of_the_webhook(
    client: WebhookClient, server: WebhookServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        endpoint = WebhookEndpoint(f"https://127.0.0.1:{silent_server.getsockname()[1]}/x", ca_bundle=server.ca)
        assert (await failure(client, endpoint, seconds=0.2)).endswith("context deadline exceeded")


async def test_a_call_is_cancelled_with_its_request(client: WebhookClient, server: WebhookServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        endpoint = WebhookEndpoint(f"https://127.0.0.1:{silent_server.getsockname()[1]}/x", ca_bundle=server.ca)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await post(client, endpoint, seconds=30.0, remaining=0.2)


async def test_redirects_are_not_followed(client: WebhookClient, server: WebhookServer) -> None:
    server.respond_with("/x", RawReply(b"", 307, {"Location": f"{server.url}/y"}))
    server.respond_with("/y", RawReply(b"response"))
    assert "the server responded with the status code 307" in await failure(client, endpoint_of(server))
    assert server.calls("/y") == []


async def test_cookies_are_not_stored(client: WebhookClient, server: WebhookServer) -> None:
    server.respond_with("/x", RawReply(b"response", headers={"Set-Cookie": "a=b"}))
    await post(client, endpoint_of(server))
    await post(client, endpoint_of(server))
    assert all("Cookie" not in call.headers for call in server.calls("/x"))


async def test_a_service_is_called_at_its_cluster_ip_with_its_name_as_host(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster, proxies: RecordingProxies
) -> None:
    cluster.add(SERVICES, service(server.port, clusterIP="127.0.0.1"))
    server.respond_with("/x", RawReply(b"response"))
    endpoint = WebhookEndpoint(f"https://hook.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    assert await post(client, endpoint) == b"response"
    assert server.calls("/x")[0].headers["Host"] == f"hook.webhooks.svc:{server.port}"
    assert proxies.urls == []


async def test_the_certificate_of_a_service_must_be_for_its_name(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster
) -> None:
    other = service(server.port, clusterIP="127.0.0.1")
    cluster.add(SERVICES, {**other, "metadata": {"name": "other", "namespace": "webhooks"}})
    endpoint = WebhookEndpoint(f"https://other.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    assert (await failure(client, endpoint)).endswith(
        "tls: failed to verify certificate: x509: certificate is not valid for other.webhooks.svc"
    )


async def test_a_service_is_read_for_each_new_connection(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster
) -> None:
    endpoint = WebhookEndpoint(f"https://hook.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    server.respond_with("/x", RawReply(b"response"))
    assert 'service "hook" not found' in await failure(client, endpoint)
    cluster.add(SERVICES, service(server.port, clusterIP="127.0.0.1"))
    assert await post(client, endpoint) == b"response"


async def test_an_unreachable_cluster_is_a_failed_call(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster
) -> None:
    cluster.unreachable = True
    endpoint = WebhookEndpoint(f"https://hook.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    assert "kube-apiserver cannot be reached" in await failure(client, endpoint)


async def test_a_url_is_called_through_the_proxy_unless_it_is_on_this_machine(
    client: WebhookClient, server: WebhookServer, proxies: RecordingProxies
) -> None:
    server.respond_with("/x", RawReply(b"response"))
    await post(client, endpoint_of(server))
    assert proxies.urls == []
    assert "failed to call webhook: " in await failure(client, WebhookEndpoint("https://hooks.invalid/x"))
    assert proxies.urls == ["https://hooks.invalid/x?timeout=30s"]


async def test_every_certificate_in_a_ca_bundle_is_trusted(client: WebhookClient, tmp_path: Path) -> None:
    """As in Go, the server's own certificate may be in the bundle."""
    server = WebhookServer(tmp_path)
    try:
        server.respond_with("/x", RawReply(b"response"))
        own = (tmp_path / "webhooks.crt").read_bytes()
        assert await post(client, WebhookEndpoint(f"{server.url}/x", ca_bundle=own)) == b"response"
        other_ca = certificates.make_ca("stranger").certificate
        both = WebhookEndpoint(f"{server.url}/x", ca_bundle=other_ca + server.ca)
        assert await post(client, both) == b"response"
        message = await failure(client, WebhookEndpoint(f"{server.url}/x", ca_bundle=other_ca))
        assert message.endswith("x509: certificate signed by unknown authority")
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["https://a:99999/x", "https://[::1/x", "https://a b/x"])
async def test_an_invalid_url_is_a_failed_call(client: WebhookClient, url: str) -> None:
    assert "failed to call webhook: " in await failure(client, WebhookEndpoint(url))


async def test_an_endpoint_error_is_a_failed_call(client: WebhookClient) -> None:
    assert await failure(client, WebhookEndpoint(error="unusable")) == "unusable"

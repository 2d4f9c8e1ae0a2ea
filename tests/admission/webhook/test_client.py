"""The client of webhooks against a real HTTPS server."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from admission.webhook.accessor import Endpoint
from admission.webhook.client import WebhookClient
from admission.webhook.errors import CallFailed
from apiserver.tls import certificates
from registry.cluster.interface import SERVICES
from tests.e2e.support.processes import wait_until
from tests.e2e.support.webhook_server import Reply, WebhookServer
from tests.fakes import FakeCluster

_BODY = b'{"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}}'
_PROXY = "http://127.0.0.1:9"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebhookServer]:
    running = WebhookServer(tmp_path)
    yield running
    running.stop()


class Proxies:
    """Names a proxy for everything, at which nobody listens."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, url: URL) -> str | None:
        self.asked.append(str(url))
        return _PROXY


@pytest.fixture
def proxies() -> Proxies:
    return Proxies()


@pytest.fixture
async def client(cluster: FakeCluster, proxies: Proxies) -> AsyncIterator[WebhookClient]:
    made = WebhookClient(cluster, proxy=proxies)
    yield made
    await made.close()


async def post(client: WebhookClient, endpoint: Endpoint, *, seconds: float = 5.0, remaining: float = 30.0) -> bytes:
    return await client.post(endpoint, _BODY, seconds=seconds, remaining=remaining)


async def failure(client: WebhookClient, endpoint: Endpoint, **more: Any) -> str:
    with pytest.raises(CallFailed) as caught:
        await post(client, endpoint, **more)
    return str(caught.value)


def here(server: WebhookServer, path: str = "/x") -> Endpoint:
    return Endpoint(f"{server.url}{path}", ca_bundle=server.ca)


def service(port: int, **spec: Any) -> Any:
    return {"metadata": {"name": "hook", "namespace": "webhooks"}, "spec": {"ports": [{"port": port}], **spec}}


async def test_an_answer_is_its_body(client: WebhookClient, server: WebhookServer) -> None:
    server.on("/x", Reply(b"said"))
    assert await post(client, here(server)) == b"said"
    [call] = server.calls("/x")
    assert call.target == "/x?timeout=5s"
    assert call.headers["User-Agent"] == "tenant-apiserver-admission"
    assert "Authorization" not in call.headers


async def test_compressed_answers_are_read(client: WebhookClient, server: WebhookServer) -> None:
    server.on("/x", Reply(gzip.compress(b"said"), headers={"Content-Encoding": "gzip"}))
    assert await post(client, here(server)) == b"said"


@pytest.mark.parametrize("packed", [False, True], ids=["as it is", "compressed"])
async def test_an_answer_has_a_limit(client: WebhookClient, server: WebhookServer, packed: bool) -> None:
    body = b" " * (8 * 1024 * 1024 + 1)
    reply = Reply(gzip.compress(body), headers={"Content-Encoding": "gzip"}) if packed else Reply(body)
    server.on("/x", reply)
    assert await failure(client, here(server)) == ("failed to call webhook: the response is larger than 8388608 bytes")


async def test_connections_are_shared_by_those_who_trust_the_same(client: WebhookClient, server: WebhookServer) -> None:
    for path in ("/x", "/x", "/y"):
        server.on(path, Reply(b"said"))
        await post(client, here(server, path))
    calls = [*server.calls("/x"), *server.calls("/y")]
    assert len({call.connection for call in calls}) == 1


@pytest.mark.parametrize(("seconds", "remaining", "told"), [(0.2, 30.0, "1s"), (30.0, 2.3, "3s"), (4.5, 9.0, "5s")])
async def test_the_server_is_told_how_long_it_has(
    client: WebhookClient, server: WebhookServer, seconds: float, remaining: float, told: str
) -> None:
    server.on("/x", Reply(b"said"))
    await post(client, here(server), seconds=seconds, remaining=remaining)
    assert server.calls("/x")[0].target == f"/x?timeout={told}"


async def test_it_has_no_longer(client: WebhookClient, server: WebhookServer) -> None:
    heard = threading.Event()

    def slow(_: object) -> Reply:
        heard.wait(5)
        return Reply(b"said")

    server.on("/x", slow)
    started = time.monotonic()
    told = await failure(client, here(server), seconds=0.2)
    assert time.monotonic() - started < 4
    heard.set()
    # or the connection would still be there when the loop is not
    await asyncio.to_thread(wait_until, "the connection is closed", lambda: not server.open)
    assert told == f'failed to call webhook: Post "{server.url}/x?timeout=1s": context deadline exceeded'


async def test_who_never_shakes_hands_has_no_longer_either(client: WebhookClient, server: WebhookServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = Endpoint(f"https://127.0.0.1:{mute.getsockname()[1]}/x", ca_bundle=server.ca)
        assert (await failure(client, endpoint, seconds=0.2)).endswith("context deadline exceeded")


async def test_a_request_that_ends_ends_its_calls(client: WebhookClient, server: WebhookServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = Endpoint(f"https://127.0.0.1:{mute.getsockname()[1]}/x", ca_bundle=server.ca)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await post(client, endpoint, seconds=30.0, remaining=0.2)


async def test_redirects_lead_nowhere(client: WebhookClient, server: WebhookServer) -> None:
    server.on("/x", Reply(b"", 307, {"Location": f"{server.url}/y"}))
    server.on("/y", Reply(b"said"))
    assert "the server responded with the status code 307" in await failure(client, here(server))
    assert server.calls("/y") == []


async def test_no_cookies_are_kept(client: WebhookClient, server: WebhookServer) -> None:
    server.on("/x", Reply(b"said", headers={"Set-Cookie": "a=b"}))
    await post(client, here(server))
    await post(client, here(server))
    assert all("Cookie" not in call.headers for call in server.calls("/x"))


async def test_a_service_is_reached_at_its_address_under_its_name(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster, proxies: Proxies
) -> None:
    cluster.add(SERVICES, service(server.port, clusterIP="127.0.0.1"))
    server.on("/x", Reply(b"said"))
    endpoint = Endpoint(f"https://hook.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    assert await post(client, endpoint) == b"said"
    assert server.calls("/x")[0].headers["Host"] == f"hook.webhooks.svc:{server.port}"
    assert proxies.asked == []


async def test_a_service_shows_a_certificate_of_its_name(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster
) -> None:
    other = service(server.port, clusterIP="127.0.0.1")
    cluster.add(SERVICES, {**other, "metadata": {"name": "other", "namespace": "webhooks"}})
    endpoint = Endpoint(f"https://other.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    assert (await failure(client, endpoint)).endswith(
        "tls: failed to verify certificate: x509: certificate is not valid for other.webhooks.svc"
    )


async def test_a_service_is_looked_up_anew_for_each_connection(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster
) -> None:
    endpoint = Endpoint(f"https://hook.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    server.on("/x", Reply(b"said"))
    assert 'service "hook" not found' in await failure(client, endpoint)
    cluster.add(SERVICES, service(server.port, clusterIP="127.0.0.1"))
    assert await post(client, endpoint) == b"said"


async def test_a_host_that_is_away_is_a_failure(
    client: WebhookClient, server: WebhookServer, cluster: FakeCluster
) -> None:
    cluster.unreachable = True
    endpoint = Endpoint(f"https://hook.webhooks.svc:{server.port}/x", service=True, ca_bundle=server.ca)
    assert "the host API cannot be reached" in await failure(client, endpoint)


async def test_urls_go_through_the_proxy_and_this_machine_s_do_not(
    client: WebhookClient, server: WebhookServer, proxies: Proxies
) -> None:
    server.on("/x", Reply(b"said"))
    await post(client, here(server))
    assert proxies.asked == []
    assert "failed to call webhook: " in await failure(client, Endpoint("https://hooks.invalid/x"))
    assert proxies.asked == ["https://hooks.invalid/x?timeout=5s"]


async def test_whatever_a_bundle_holds_is_trusted(client: WebhookClient, tmp_path: Path) -> None:
    """The server's own certificate, too, as Go has it."""
    server = WebhookServer(tmp_path)
    try:
        server.on("/x", Reply(b"said"))
        own = (tmp_path / "webhooks.crt").read_bytes()
        assert await post(client, Endpoint(f"{server.url}/x", ca_bundle=own)) == b"said"
        stranger = certificates.make_ca("stranger").certificate
        both = Endpoint(f"{server.url}/x", ca_bundle=stranger + server.ca)
        assert await post(client, both) == b"said"
        told = await failure(client, Endpoint(f"{server.url}/x", ca_bundle=stranger))
        assert told.endswith("x509: certificate signed by unknown authority")
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["https://a:99999/x", "https://[::1/x", "https://a b/x"])
async def test_what_is_no_url_is_a_failure(client: WebhookClient, url: str) -> None:
    assert "failed to call webhook: " in await failure(client, Endpoint(url))


async def test_what_cannot_be_called_is_told(client: WebhookClient) -> None:
    assert await failure(client, Endpoint(error="why")) == "why"

"""Calls a webhook over HTTPS, without redirects and retries, within a time and a size limit (WIRE-H42, WIRE-H46)."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable
from typing import Any, Protocol

import aiohttp
import orjson
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from admission.webhook.accessor import WebhookEndpoint
from admission.webhook.errors import CallFailed, status_code_message, transport_error_message
from admission.webhook.service_resolver import ServiceResolver
from admission.webhook.tls_contexts import TlsContexts
from apiserver.meta.errors import StatusError
from registry.cluster.interface import ClusterClient

# Large enough for a patch that replaces a whole object: patches are base64.
_LARGEST = 8 * 1024 * 1024
_LARGEST_TEXT = 2048
_IDLE_SECONDS = 60.0
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "Accept-Encoding": "gzip",
    "User-Agent": "tenant-apiserver-admission",
}


class WebhookCaller(Protocol):
    async def post(self, endpoint: WebhookEndpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        """Returns the body of the response. `seconds` is the webhook's timeout, `remaining` the time left to the
        request, which enforces its own deadline. Raises CallFailed."""
        ...


class WebhookClient:
    """A WebhookCaller; must be created on the event loop, and closed. `proxy` returns the proxy for a URL, if any;
    Services are called without one."""

    def __init__(self, cluster: ClusterClient, *, proxy: Callable[[URL], str | None]) -> None:
        self._proxy = proxy
        self._tls_contexts = TlsContexts()
        # a recreated Service has another address
        self._services = _session(resolver=ServiceResolver(cluster), use_dns_cache=False)
        self._urls = _session()

    async def close(self) -> None:
        await self._services.close()
        await self._urls.close()

    async def post(self, endpoint: WebhookEndpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        if endpoint.error:
            raise CallFailed(endpoint.error, code=500)
        tls = await self._tls_contexts.context(endpoint.ca_bundle)
        url = f"{endpoint.url}?timeout={max(math.ceil(min(seconds, remaining)), 1)}s"
        options: dict[str, Any] = {
            "ssl": tls,
            "allow_redirects": False,
            # an earlier deadline of the request is enforced by the RequestDeadline filter, whose error differs
            "timeout": ClientTimeout(total=seconds if seconds < remaining else None, ceil_threshold=math.inf),
        }
        try:
            return await self._post(endpoint, url, body, options)
        except StatusError as error:
            raise _failed(f'Post "{url}": {error.message}') from error
        except (aiohttp.ClientError, OSError) as error:
            raise _failed(transport_error_message(error, url)) from error
        except ValueError as error:
            raise _failed(f'parse "{url}": {error}') from error

    async def _post(self, endpoint: WebhookEndpoint, url: str, body: bytes, options: dict[str, Any]) -> bytes:
        target = URL(url, encoded=True)
        session = self._services if endpoint.service else self._urls
        if not endpoint.service and not _is_local(target) and (proxy := self._proxy(target)):
            options["proxy"] = proxy
        async with session.post(target, data=body, headers=_HEADERS, **options) as response:
            content = await _read(response)
            if not 200 <= response.status <= 206:
                raise _status_error(response, content)
            if not content:
                kind = response.headers.get("Content-Type", "application/json")
                raise _failed(f"0-length response with status code: {response.status} and content type: {kind}")
            return content


def _session(**connecting: Any) -> ClientSession:
    # concurrent calls are bounded by the requests in flight
    connector = TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS, **connecting)
    return ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True)


async def _read(response: ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > _LARGEST:
                response.close()
                raise _failed(f"the response is larger than {_LARGEST} bytes")
            chunks.append(chunk)
    except TimeoutError as error:
        raise _failed(_unreadable_body("context deadline exceeded")) from error
    except aiohttp.ClientError as error:
        raise _failed(_unreadable_body("unexpected EOF")) from error
    return b"".join(chunks)


def _unreadable_body(why: str) -> str:
    return f"unexpected error when reading response body. Please retry. Original error: {why}"


def _status_error(response: ClientResponse, body: bytes) -> CallFailed:
    """The failure for an HTTP error. If the body is a Status, its message is reported."""
    try:
        document = orjson.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status" and document.get("status") == "Failure":
        code = document.get("code")
        return _failed(str(document.get("message") or ""), code=code if isinstance(code, int) else response.status)
    is_text = response.content_type.startswith("text/")
    text = body[:_LARGEST_TEXT].decode(errors="replace").strip() if is_text else "unknown"
    return _failed(status_code_message(response.status, text), code=response.status)


def _failed(why: str, *, code: int = 503) -> CallFailed:
    return CallFailed(f"failed to call webhook: {why}", code=code)


def _is_local(url: URL) -> bool:
    """Reports whether the URL is on this machine. As in Go, such URLs are called without a proxy."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

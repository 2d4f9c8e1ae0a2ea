"""One call of a webhook over HTTPS: no redirects, no retries, a bounded time and a bounded answer (WIRE-H42,
WIRE-H46)."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable
from typing import Any, Protocol

import aiohttp
import orjson
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from admission.webhook.accessor import Endpoint
from admission.webhook.errors import CallFailed, status_words, transport_words
from admission.webhook.service_resolver import ServiceResolver
from admission.webhook.tls_contexts import Trust
from apiserver.meta.errors import StatusError
from registry.cluster.interface import ClusterClient

# A patch may replace the whole of an object, and is base64.
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
    async def post(self, endpoint: Endpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        """The body of the answer. `seconds` are the webhook's, `remaining` those of the request, which ends by itself.
        Raises CallFailed."""
        ...


class WebhookClient:
    """A WebhookCaller; to be made on the event loop, and closed. `proxy` names the one for a URL, if there is one;
    Services are never called through it."""

    def __init__(self, cluster: ClusterClient, *, proxy: Callable[[URL], str | None]) -> None:
        self._proxy = proxy
        self._trust = Trust()
        # a Service that is made anew has another address
        self._services = _session(resolver=ServiceResolver(cluster), use_dns_cache=False)
        self._urls = _session()

    async def close(self) -> None:
        await self._services.close()
        await self._urls.close()

    async def post(self, endpoint: Endpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        if endpoint.error:
            raise CallFailed(endpoint.error, code=500)
        tls = await self._trust.context(endpoint.ca_bundle)
        url = f"{endpoint.url}?timeout={max(math.ceil(min(seconds, remaining)), 1)}s"
        options: dict[str, Any] = {
            "ssl": tls,
            "allow_redirects": False,
            # the deadline of a request is kept where all of it is ended; what comes first is what is told
            "timeout": ClientTimeout(total=seconds if seconds < remaining else None, ceil_threshold=math.inf),
        }
        try:
            return await self._post(endpoint, url, body, options)
        except StatusError as error:
            raise _failed(f'Post "{url}": {error.message}') from error
        except (aiohttp.ClientError, OSError) as error:
            raise _failed(transport_words(error, url)) from error
        except ValueError as error:
            raise _failed(f'parse "{url}": {error}') from error

    async def _post(self, endpoint: Endpoint, url: str, body: bytes, options: dict[str, Any]) -> bytes:
        target = URL(url, encoded=True)
        session = self._services if endpoint.service else self._urls
        if not endpoint.service and not _is_local(target) and (proxy := self._proxy(target)):
            options["proxy"] = proxy
        async with session.post(target, data=body, headers=_HEADERS, **options) as response:
            answer = await _read(response)
            if not 200 <= response.status <= 206:
                raise _refused(response, answer)
            if not answer:
                kind = response.headers.get("Content-Type", "application/json")
                raise _failed(f"0-length response with status code: {response.status} and content type: {kind}")
            return answer


def _session(**connecting: Any) -> ClientSession:
    # how many calls there are at a time is bounded by the requests that are worked on
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
        raise _failed(_unread("context deadline exceeded")) from error
    except aiohttp.ClientError as error:
        raise _failed(_unread("unexpected EOF")) from error
    return b"".join(chunks)


def _unread(why: str) -> str:
    return f"unexpected error when reading response body. Please retry. Original error: {why}"


def _refused(response: ClientResponse, body: bytes) -> CallFailed:
    """A Status says itself what is wrong."""
    try:
        document = orjson.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status" and document.get("status") == "Failure":
        code = document.get("code")
        return _failed(str(document.get("message") or ""), code=code if isinstance(code, int) else response.status)
    is_text = response.content_type.startswith("text/")
    text = body[:_LARGEST_TEXT].decode(errors="replace").strip() if is_text else "unknown"
    return _failed(status_words(response.status, text), code=response.status)


def _failed(why: str, *, code: int = 503) -> CallFailed:
    return CallFailed(f"failed to call webhook: {why}", code=code)


def _is_local(url: URL) -> bool:
    """This machine is never reached through a proxy, as Go has it."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

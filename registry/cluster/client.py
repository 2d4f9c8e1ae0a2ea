"""The ClusterClient over HTTP: kubernetes-asyncio's configuration, TLS and credentials, and plain JSON documents.

Calls are not retried, except once after the server rejected the credentials and they were renewed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import aiohttp
from aiohttp import ClientResponse, ClientTimeout
from yarl import URL

from apiserver.encoding.offload import LARGE_BYTES, offload_if_large
from apiserver.json import deep as deepjson
from apiserver.meta.resource import Object
from registry.cluster.aggregated_discovery import Discovered, DiscoveryRequests
from registry.cluster.answer import CredentialsRejected, decode_answer
from registry.cluster.connection import (
    ClusterSession,
    RequestObserver,
    environment_proxy,
    load_in_cluster,
    load_kubeconfig,
    query_string,
    without_internals,
    write_query,
)
from registry.cluster.interface import (
    REQUEST_SECONDS,
    ClusterResource,
    ClusterUnreachable,
    Visited,
    WatchEvent,
    do_nothing,
)
from registry.cluster.kubernetes_asyncio_shim import Configuration, RESTClientObject
from registry.cluster.list_pages import ReadPage, Visit, visit_first, visit_page
from registry.cluster.outage_log import OutageLog
from registry.cluster.watch_decoder import WatchDecoder, parse_watch_event

T = TypeVar("T")
_CONNECT_TIMEOUT = 10.0
_CALL_TIMEOUT = ClientTimeout(total=REQUEST_SECONDS, sock_connect=_CONNECT_TIMEOUT)
# Most kinds get a bookmark about every minute: a stream that is silent for longer may be a dead connection.
_WATCH_SILENCE = 100.0
_TOKEN_SECONDS = 30.0
_POOL = 100
_PAGE = 500
_USER_AGENT = "tenant-apiserver"
_NOT_ACCEPTED = "kube-apiserver does not accept the credentials of this server"
# Network failures, and ValueError for a body that is not JSON.
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError, ValueError)

Refresh = Callable[[], Awaitable[None]]


def _unobserved(method: str, host: str, code: int | None) -> None:
    pass


class HttpClusterClient:
    """A ClusterClient. Watches use a connection pool of their own, so that they never delay a call.

    `refresh` renews the configuration's credentials after the server rejected them. `observe` is called for every
    request.
    """

    def __init__(
        self, configuration: Configuration, *, refresh: Refresh | None = None, observe: RequestObserver = _unobserved
    ) -> None:
        self._configuration = configuration
        self._refresh = refresh
        self._token_checked = float("-inf")
        self._base = (configuration.host or "").rstrip("/")
        self._transports = (
            RESTClientObject(configuration, maxsize=_POOL),
            RESTClientObject(configuration, maxsize=0),
        )
        host = URL(self._base).authority
        self._calls, self._watches = (ClusterSession(each, observe, host=host) for each in self._transports)
        self.outages = OutageLog()
        self._discovery = DiscoveryRequests(self._get_document)
        self._server_hostname = configuration.tls_server_name
        self._proxy = configuration.proxy or environment_proxy(URL(self._base))

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, *, observe: RequestObserver = _unobserved) -> Self:
        """Connects to the cluster of `kubeconfig`; without one, to the cluster that this process runs in, or else to
        the one that kubectl would use. Raises ValueError if there is none."""
        configuration = Configuration()
        if kubeconfig is None and await asyncio.to_thread(load_in_cluster, configuration):
            return cls(configuration, observe=observe)

        async def load() -> None:
            await load_kubeconfig(configuration, kubeconfig)

        await load()
        try:
            return cls(configuration, refresh=load, observe=observe)
        except OSError as e:
            raise ValueError(f"no usable kubeconfig: CA, client certificate or key: {e}") from e

    async def close(self) -> None:
        self._discovery.cancel()
        for session in (self._calls, self._watches):
            await session.close()
        for transport in self._transports:
            await transport.close()

    async def get(self, res: ClusterResource, namespace: str, name: str) -> Object:
        return await self._call("GET", res.path(namespace, name))

    async def list(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> Object:
        # kube-apiserver ignores the version of a list of one name without it
        is_exact = limit and resource_version not in ("", "0") and not continue_token
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
            "resourceVersionMatch": "Exact" if is_exact else "",
            "limit": str(limit or ""),
            "continue": continue_token,
        }
        return await self._call("GET", res.path(namespace), query=query)

    async def each_list_item(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        visit: Visit,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> str:
        selection = {"labelSelector": label_selector, "fieldSelector": field_selector}
        # with both `limit` and a resourceVersion, kube-apiserver would list exactly that version
        has_version = resource_version not in ("", "0")
        start = {"resourceVersionMatch": "NotOlderThan"} if has_version else {"limit": str(_PAGE)}
        url = self._url(res.path(namespace), {**selection, **start, "resourceVersion": resource_version})
        metadata = await self._visit_list(url, visit)
        version: str = metadata["resourceVersion"]
        while token := metadata.get("continue"):
            url = self._url(res.path(namespace), {**selection, "limit": str(_PAGE), "continue": token})
            metadata = await self._visit_list(url, visit)
        return version

    async def visit_first(
        self, res: ClusterResource, namespace: str = "", *, visit: Visit, limit: int, max_bytes: int
    ) -> Visited:
        def read_page(query: dict[str, str], visit: Visit, max_bytes: float) -> Awaitable[ReadPage]:
            url = self._url(res.path(namespace), query)
            return self._authorized(partial(self._list_page, url, visit, max_bytes))

        return await visit_first(read_page, visit, limit=limit, max_bytes=max_bytes)

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        path = res.path(namespace or obj["metadata"].get("namespace", ""))
        return await self._call("POST", path, query=write_query(dry_run, field_manager), body=obj)

    async def update(
        self,
        res: ClusterResource,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        metadata = obj["metadata"]
        path = res.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return await self._call("PUT", path, query=write_query(dry_run, field_manager), body=obj)

    async def patch(
        self,
        res: ClusterResource,
        namespace: str,
        name: str,
        body: Any,
        *,
        content_type: str,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        query = write_query(dry_run, field_manager) | {"force": "true" if force else ""}
        path = res.path(namespace, name, subresource)
        return await self._call("PATCH", path, query=query, body=body, content_type=content_type)

    async def delete(
        self, res: ClusterResource, namespace: str, name: str, *, options: Mapping[str, Any] | None = None
    ) -> Object:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None
        return await self._call("DELETE", res.path(namespace, name), body=body)

    async def discover(self, api_version: str) -> Object:
        """The APIResourceList of a group version. Raises StatusError, with code 404 if the version is not served."""
        group, _, version = api_version.rpartition("/")
        path = ClusterResource(group, version, "", "").path().rstrip("/")
        return await self._call("GET", path)

    async def get_path(self, path: str) -> Object:
        """The document at a path of the cluster that is no resource, such as /version."""
        return await self._call("GET", path)

    async def served_resources(self) -> Collection[tuple[str, str, str]] | None:
        return await self._discovery.served_resources()

    async def _get_document(self, path: str, last: Discovered) -> Discovered:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._authorized(partial(self._read_document, path, last))
        except TimeoutError as e:
            raise ClusterUnreachable from e

    async def _read_document(self, path: str, last: Discovered) -> Discovered:
        try:
            headers, options = {**await self._headers(""), **last.headers}, self._options(_CALL_TIMEOUT)
            async with await self._calls.request("GET", self._url(path, {}), headers=headers, **options) as response:
                if response.status == 304:
                    return last
                return Discovered.read(response.headers.get("ETag", ""), await self._decode_response(response))
        except _FAILURES as e:
            raise ClusterUnreachable from e

    async def review(self, path: str, body: Object) -> Object:
        return await self._call("POST", path, body=body)

    def watch(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int = 300,
        on_open: Callable[[], object] = do_nothing,
    ) -> AsyncIterator[WatchEvent]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(timeout_seconds),
        }
        if send_initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return self._stream(self._url(res.path(namespace), query), on_open)

    async def _stream(self, url: URL, on_open: Callable[[], object]) -> AsyncGenerator[WatchEvent, None]:
        timeout = ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=_WATCH_SILENCE)
        decoder = WatchDecoder()
        streaming = False
        try:
            headers = await self._headers("")
            async with await self._watches.request("GET", url, headers=headers, **self._options(timeout)) as response:
                if response.status != 200:
                    await self._decode_response(response)
                    raise ClusterUnreachable
                streaming = True
                on_open()
                async for chunk in response.content.iter_any():
                    for line in decoder.feed(chunk):
                        if len(line) > LARGE_BYTES:
                            yield await asyncio.to_thread(parse_watch_event, line)
                        else:
                            yield parse_watch_event(line)
        except CredentialsRejected as e:
            await self._renew_credentials(e)
            raise ClusterUnreachable(_NOT_ACCEPTED) from e
        except _FAILURES as e:
            # a silent stream counts as ended; the next call shows whether the server is still reachable
            if not (streaming and isinstance(e, aiohttp.SocketTimeoutError)):
                raise ClusterUnreachable from without_internals(e)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        url = self._url(path, query or {})
        data = deepjson.dumps(body) if body is not None else None
        try:
            # includes the second attempt after a 401: a write is not sent again when its result was given up
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._authorized(partial(self._send, method, url, data, content_type))
        except TimeoutError as e:
            raise ClusterUnreachable from e

    async def _authorized(self, send: Callable[[], Awaitable[T]]) -> T:
        """Calls `send`, and once more with renewed credentials if the server answers 401."""
        try:
            return await send()
        except CredentialsRejected as e:
            await self._renew_credentials(e)
        try:
            return await send()
        except CredentialsRejected as e:
            raise ClusterUnreachable(_NOT_ACCEPTED) from e

    async def _send(self, method: str, url: URL, data: bytes | None, content_type: str) -> Object:
        options = self._options(_CALL_TIMEOUT)
        try:
            headers = await self._headers(content_type if data is not None else "")
            async with await self._calls.request(method, url, data=data, headers=headers, **options) as response:
                return await self._decode_response(response)
        except _FAILURES as e:
            raise ClusterUnreachable from e

    async def _visit_list(self, url: URL, visit: Visit) -> Object:
        """Calls `visit` with each item of a list page and returns the metadata of the list."""
        return (await self._authorized(partial(self._list_page, url, visit, math.inf))).metadata or {}

    async def _list_page(self, url: URL, visit: Visit, max_bytes: float) -> ReadPage:
        timeout = ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=REQUEST_SECONDS)
        try:
            headers = await self._headers("")
            async with await self._calls.request("GET", url, headers=headers, **self._options(timeout)) as response:
                if response.status != 200:
                    return ReadPage(await self._decode_response(response), 0)
                return await visit_page(response, visit, max_bytes=max_bytes)
        except _FAILURES as e:
            raise ClusterUnreachable from e

    async def _decode_response(self, response: ClientResponse) -> Object:
        """Decodes the body. Raises as decode_answer."""
        body = await response.read()
        if response.status == 401:
            raise CredentialsRejected
        decode = partial(decode_answer, response.status, response.reason or "", body)
        return await offload_if_large(decode, size=len(body))

    async def _renew_credentials(self, rejection: CredentialsRejected) -> None:
        if self._refresh is None:
            raise ClusterUnreachable(_NOT_ACCEPTED) from rejection
        try:
            await self._refresh()
        except _FAILURES as e:
            raise ClusterUnreachable(_NOT_ACCEPTED) from e

    async def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": _USER_AGENT}
        if content_type:
            headers["Content-Type"] = content_type
        return {**headers, **await self._credentials()}

    async def _credentials(self) -> dict[str, str]:
        await self._refresh_token()
        if token := self._configuration.api_key.get("BearerToken"):
            return {"Authorization": token}
        if self._configuration.username:
            return {"Authorization": self._configuration.get_basic_auth_token()}
        return {}

    async def _refresh_token(self) -> None:
        """Reloads the service account token at most every 30 seconds, since the kubelet rotates it."""
        hook, now = self._configuration.refresh_api_key_hook, asyncio.get_running_loop().time()
        if hook is not None and now >= self._token_checked + _TOKEN_SECONDS:
            self._token_checked = now
            await asyncio.to_thread(cast(Callable[[Configuration], object], hook), self._configuration)

    def _options(self, timeout: ClientTimeout) -> dict[str, Any]:
        options: dict[str, Any] = {"timeout": timeout, "allow_redirects": False}
        if self._proxy:
            options["proxy"] = self._proxy
        if self._server_hostname:
            options["server_hostname"] = self._server_hostname
        return options

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        parameters = tuple((name, value) for name, value in query.items() if value)
        return URL(f"{self._base}{path}?{query_string(parameters)}" if parameters else self._base + path, encoded=True)

"""The cluster as the upstream of a reverse proxy: requests of others, sent with the credentials of this process.

Bodies pass in both directions as they come. Nothing is retried, no redirect is followed, and no cookie is kept.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import unquote

import aiohttp
from aiohttp import ClientResponse, ClientTimeout
from multidict import CIMultiDict
from yarl import URL

from registry.cluster.client import HttpClusterClient, Refresh
from registry.cluster.connection import RequestObserver
from registry.cluster.interface import ClusterUnreachable
from registry.cluster.kubernetes_asyncio_shim import Configuration
from registry.cluster.upgraded_connection import UpgradeAnswer, UpgradeProtocol, read_nothing_ahead

_TIMEOUT: Final = ClientTimeout(total=None, sock_connect=10.0)
_CONNECT_SECONDS: Final = 10.0
# less than the idle time of a kube-apiserver, so that a request is not sent on a connection that is being closed
_IDLE_SECONDS: Final = 30.0
# of a connection whose response is not read on; twice as much waits at most
_READ_BUFFER: Final = 32 * 1024
# of a response: warnings can be long, and there can be many
_MAX_HEAD: Final = 256 * 1024
_OWN_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)


class UpstreamClient(HttpClusterClient):
    """An HttpClusterClient that also forwards requests. These have a connection pool of their own, without a limit:
    the listener limits what it accepts."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        refresh: Refresh | None = None,
        observe: RequestObserver = lambda method, host, code: None,
    ) -> None:
        super().__init__(configuration, refresh=refresh, observe=observe)
        self._tls = _tls_context(configuration)
        self._forwarding = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, keepalive_timeout=_IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=_READ_BUFFER,
            skip_auto_headers=_OWN_HEADERS,
            max_line_size=_MAX_HEAD,
            max_field_size=_MAX_HEAD,
        )
        self._observe = observe
        self._authority = URL(self._base).authority
        self._has_path = URL(self._base).raw_path.strip("/") != ""
        # aiohttp would send a PUT or a DELETE again on a connection that broke, though it may have been executed
        self._forwarding._retry_connection = False

    def is_left_by(self, target: str) -> bool:
        """True for a target that leads out of the path of the cluster's address, if that has one: what is beside it, on
        the same server, may not know impersonation, and would serve the request with the rights of this process."""
        if not self._has_path:
            return False
        segments = unquote(target.partition("?")[0]).replace("\\", "/").split("/")
        return any(unquote(each) in (".", "..") for each in segments)

    async def close(self) -> None:
        await self._forwarding.close()
        await super().close()

    @asynccontextmanager
    async def forward(
        self, method: str, target: str, headers: CIMultiDict[str], body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[ClientResponse]:
        """The response, whose body has not been read. `target` is the path and query as the client escaped them;
        `headers` are all but the credentials. Raises ClusterUnreachable until the response begins."""
        try:
            sent = CIMultiDict(headers)
            sent.update(await self._credentials())
            response = await self._forwarding.request(
                method,
                URL(self._base + target, encoded=True),
                headers=sent,
                data=body,
                **self._options(_TIMEOUT),
            )
        except _FAILURES as e:
            self._observe(method, self._authority, None)
            raise ClusterUnreachable from e
        self._observe(method, self._authority, response.status)
        if response.connection is not None and (transport := response.connection.transport) is not None:
            read_nothing_ahead(transport)
        async with response:
            yield response

    async def renew_credentials(self) -> None:
        """Reads the credentials of this process again, after the cluster has rejected them. Raises
        ClusterUnreachable if they cannot be read."""
        self._token_checked = float("-inf")
        if self._refresh is None:
            return
        try:
            await self._refresh()
        except (*_FAILURES, ValueError) as e:
            raise ClusterUnreachable from e

    async def upgrade(self, method: str, target: str, headers: CIMultiDict[str]) -> UpgradeAnswer:
        """Sends a request without a body that asks for another protocol, on a connection of its own, and returns the
        answer, switched or refused. Raises ClusterUnreachable."""
        base = URL(self._base)
        if self._proxy or base.host is None or base.port is None:
            raise ClusterUnreachable("a connection cannot be upgraded through an HTTP proxy")
        sent = CIMultiDict(headers)
        try:
            sent.update(await self._credentials())
            sent["Host"] = base.authority
            _, protocol = await asyncio.wait_for(
                asyncio.get_running_loop().create_connection(
                    UpgradeProtocol,
                    base.host,
                    base.port,
                    ssl=self._tls if base.scheme == "https" else None,
                    server_hostname=(self._server_hostname or base.host) if base.scheme == "https" else None,
                ),
                _CONNECT_SECONDS,
            )
            return await protocol.exchange(method, base.raw_path.rstrip("/") + target, sent)
        except _FAILURES as e:
            raise ClusterUnreachable from e


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    """As kubernetes-asyncio builds it for its own connections."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context

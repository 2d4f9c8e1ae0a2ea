"""The cluster as the page's server reaches it: with the credentials of one user."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import aiohttp
from aiohttp import ClientResponse, ClientTimeout
from multidict import CIMultiDict
from yarl import URL

from registry.cluster.interface import ClusterUnreachable

_TIMEOUT: Final = ClientTimeout(total=None, sock_connect=10.0)
_FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)

# kubectl proxy's own answer where it has none of the cluster: one line of text, also about credentials
_PROXY_FAILED: Final = 500
_MOST_REASON: Final = 4096


class Upstream(Protocol):
    """`registry.cluster.upstream.UpstreamClient` is one."""

    def forward(
        self, method: str, target: str, headers: CIMultiDict[str], body: AsyncIterator[bytes] | None
    ) -> AbstractAsyncContextManager[ClientResponse]:
        """The response, whose body has not been read. Raises ClusterUnreachable until the response begins."""
        ...

    async def close(self) -> None: ...


class KubectlProxy:
    """A `kubectl proxy` that listens on a Unix socket: it has kubectl's own credentials, of any kind."""

    def __init__(self, socket: Path) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(socket), limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        # aiohttp would send a PUT or a DELETE again on a connection that broke, though it may have been executed
        self._session._retry_connection = False

    @asynccontextmanager
    async def forward(
        self, method: str, target: str, headers: CIMultiDict[str], body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[ClientResponse]:
        try:
            response = await self._session.request(
                method,
                URL(f"http://localhost{target}", encoded=True),
                headers=headers,
                data=body,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type"),
                timeout=_TIMEOUT,
                allow_redirects=False,
            )
        except _FAILURES as error:
            raise ClusterUnreachable from error
        async with response:
            if response.status == _PROXY_FAILED and response.content_type == "text/plain":
                reason = (await response.content.read(_MOST_REASON)).decode(errors="replace").strip()
                raise ClusterUnreachable(f"kubectl cannot reach the cluster: {reason}")
            yield response

    async def close(self) -> None:
        await self._session.close()

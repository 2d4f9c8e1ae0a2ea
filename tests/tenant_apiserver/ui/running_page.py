"""The page's server in the process of the test, before an upstream that records every byte of every request head."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from multidict import CIMultiDict

from registry.cluster.upstream import UpstreamClient
from tenant_apiserver.ui.application import PageServer, SessionInfo
from tests.plain_http import plain_http
from tests.tenant_apiserver.proxy.proxied_upstream import RecordingUpstream

TENANTS = "/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/tenants"
_SECONDS = 20


@dataclass(frozen=True)
class Answer:
    status: int
    headers: CIMultiDict[str]
    body: bytes


@dataclass
class RunningPage:
    """`cookie` is that of a browser that has logged in, empty before."""

    upstream: RecordingUpstream
    cluster: str
    server: PageServer
    address: str
    port: int
    cookie: str = ""

    @property
    def host(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def own_origin(self) -> dict[str, str]:
        """The headers that the page's own script sends with a write."""
        return {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin", "X-Tenant-UI": "1"}

    def login_target(self) -> str:
        """The path and query of a new URL to log in with."""
        parts = urlsplit(self.server.login_url())
        return f"{parts.path}?{parts.query}"

    async def log_in(self) -> None:
        answer = await self.get(self.login_target())
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]

    async def get(self, target: str, headers: dict[str, str] | None = None) -> Answer:
        return await self.request("GET", target, headers or {})

    async def write(self, method: str, target: str, body: bytes = b"{}") -> Answer:
        """As the page's own script does."""
        return await self.request(method, target, {**self.own_origin, "Content-Type": "application/json"}, body)

    async def request(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> Answer:
        """With the cookie, if there is one."""
        lines = [f"{method} {target} HTTP/1.1"]
        if "Host" not in headers:
            lines.append(f"Host: {self.host}")
        if self.cookie:
            lines.append(f"Cookie: {self.cookie}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return await self.send(*lines, body=body)

    async def send(self, *lines: str, body: bytes = b"") -> Answer:
        """Sends these lines of a head unchanged, and reads one response."""
        reader, writer = await self.open(*lines, body=body)
        try:
            async with asyncio.timeout(_SECONDS):
                return await read_answer(reader, bodiless=lines[0].startswith("HEAD"))
        finally:
            writer.close()

    async def open(self, *lines: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self.address, self.port)
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return reader, writer


async def read_answer(reader: asyncio.StreamReader, *, bodiless: bool = False) -> Answer:
    """Reads a head, and the body of a response with a length."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = CIMultiDict((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    length = 0 if bodiless else int(headers.get("Content-Length", "0"))
    return Answer(int(first.split(" ")[1]), headers, await reader.readexactly(length))


@asynccontextmanager
async def running_page(*, address: str = "127.0.0.1", read_only: bool = False) -> AsyncIterator[RunningPage]:
    upstream = RecordingUpstream()
    cluster = await asyncio.start_server(upstream.accept, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{cluster.sockets[0].getsockname()[1]}"
    info = SessionInfo(user="alice", cluster=url, namespace="", read_only=read_only)
    server = PageServer(
        UpstreamClient(plain_http(url)), info, how_to_log_in="start the command again for another browser"
    )
    try:
        await server.start(address)
        port = urlsplit(server.login_url()).port
        assert port is not None
        yield RunningPage(upstream, url, server, address, port)
    finally:
        await server.close()
        cluster.close()

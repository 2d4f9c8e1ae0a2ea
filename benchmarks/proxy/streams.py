"""The throughput of an upgraded connection through the proxy and through socat, in turns, and the proxy's memory.

Both end TLS, and get the bytes from the same source without TLS.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import yaml

from apiserver.tls import certificates
from benchmarks import figures
from benchmarks.figures import Row
from benchmarks.proxy.running_proxy import RunningProxy
from benchmarks.targets.processes import ChildProcess, free_port, wait_until
from benchmarks.targets.target import unverified_tls

_USER = "bench-streams"
_REQUEST = b"POST /exec HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
_BUFFER = 256 * 1024
_SAMPLE = 8 * 1024 * 1024
_START_SECONDS = 30.0


async def streams(directory: Path, *, mebibytes: int, runs: int) -> Row:
    """Raises RuntimeError without socat."""
    if (socat := shutil.which("socat")) is None:
        raise RuntimeError("socat is not installed")
    ca = certificates.make_ca("bench-streams-ca")
    async with _source(directory, mebibytes) as port:
        kubeconfig = _kubeconfig(directory, port)
        async with (
            RunningProxy.running(directory / "stream-proxy", kubeconfig=kubeconfig, client_ca=ca) as proxy,
            _relay(socat, directory, port) as relay,
        ):
            tls = proxy.endpoint_of(_USER).tls
            await wait_until("the account is known", lambda: _switches(proxy.port, tls), seconds=_START_SECONDS)
            return await _compare(proxy, relay, tls, mebibytes=mebibytes, runs=runs)


async def _compare(proxy: RunningProxy, relay: int, tls: ssl.SSLContext, *, mebibytes: int, runs: int) -> Row:
    before = proxy.process.memory_mib()[0]
    memory: list[float] = []

    def sample() -> None:
        memory.append(proxy.process.memory_mib()[0])

    cpu, through, by_socat = [], [], []
    for _ in range(runs):
        spent = proxy.process.cpu_seconds()
        through.append(await asyncio.to_thread(_receive, proxy.port, tls, mebibytes, sample))
        cpu.append(proxy.process.cpu_seconds() - spent)
        by_socat.append(await asyncio.to_thread(_receive, relay, unverified_tls(), mebibytes, lambda: None))
    ratios = [one / other for one, other in zip(through, by_socat, strict=True)]
    return figures.row(
        f"{mebibytes} MiB over an upgraded connection",
        proxy_mb_s=round(statistics.median(through)),
        socat_mb_s=round(statistics.median(by_socat)),
        ratio=round(statistics.median(ratios), 2),
        lowest=round(min(ratios), 2),
        highest=round(max(ratios), 2),
        proxy_cpu_s=round(statistics.median(cpu), 2),
        memory_mib_before=round(before),
        memory_mib_highest=round(max(memory)),
    )


def _receive(port: int, tls: ssl.SSLContext, mebibytes: int, sample: Callable[[], None]) -> float:
    """Receives all bytes, and returns the megabytes a second. Raises EOFError if some are missing."""
    expected = mebibytes * 1024 * 1024
    with _switched(port, tls) as (connection, received):
        start, sampled, buffer = time.perf_counter(), 0, bytearray(_BUFFER)
        while received < expected:
            if not (count := connection.recv_into(buffer)):
                raise EOFError(f"{received} of {expected} bytes")
            received += count
            if received - sampled > _SAMPLE:
                sample()
                sampled = received
        return expected / 1e6 / (time.perf_counter() - start)


@contextmanager
def _switched(port: int, tls: ssl.SSLContext) -> Iterator[tuple[ssl.SSLSocket, int]]:
    """A connection after a 101, and the number of bytes that came with it. Raises ConnectionRefusedError for another
    status."""
    raw = socket.create_connection(("127.0.0.1", port))
    with raw, tls.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
        connection.sendall(_REQUEST)
        head = b""
        while b"\r\n\r\n" not in head:
            if not (data := connection.recv(_BUFFER)):
                raise EOFError("no response")
            head += data
        if not head.startswith(b"HTTP/1.1 101 "):
            raise ConnectionRefusedError(head.decode(errors="replace"))
        yield connection, len(head.partition(b"\r\n\r\n")[2])


async def _switches(port: int, tls: ssl.SSLContext) -> bool:
    def switches() -> bool:
        with _switched(port, tls):
            return True

    return await asyncio.to_thread(switches)


@asynccontextmanager
async def _source(directory: Path, mebibytes: int) -> AsyncIterator[int]:
    """The port of a source of bytes."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.proxy.byte_source", str(port), str(mebibytes)]
    process = await ChildProcess.start(command, directory / "source.log")
    try:
        await wait_until("the source", lambda: _accepts(port), seconds=_START_SECONDS, child=process)
        yield port
    finally:
        await process.kill()


@asynccontextmanager
async def _relay(socat: str, directory: Path, upstream: int) -> AsyncIterator[int]:
    """The port of a socat that ends TLS before `upstream`."""
    port, pair = free_port(), certificates.make_serving(certificates.make_ca("bench-socat-ca"), ["127.0.0.1"])
    (directory / "socat.pem").write_bytes(pair.certificate + pair.key)
    listen = f"OPENSSL-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork,verify=0,cert={directory / 'socat.pem'}"
    process = await ChildProcess.start([socat, listen, f"TCP:127.0.0.1:{upstream}"], directory / "socat.log")
    try:
        await wait_until("socat", lambda: _accepts(port), seconds=_START_SECONDS, child=process)
        yield port
    finally:
        await process.kill()


async def _accepts(port: int) -> bool:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return True


def _kubeconfig(directory: Path, port: int) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    path = directory / "source.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path

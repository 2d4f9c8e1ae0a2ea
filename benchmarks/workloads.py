"""What is measured. Every workload reads all bytes that it is sent; times are seconds of one request."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from itertools import count

import aiohttp

from benchmarks.server import GROUP, Server

COLLECTION = f"{GROUP}/namespaces/tenant-root/tenants"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Client:
    """A keep-alive client with `connections` connections."""

    def __init__(self, server: Server, tls: ssl.SSLContext, connections: int) -> None:
        self._server = server
        connector = aiohttp.TCPConnector(limit=connections, ssl=tls)
        timeout = aiohttp.ClientTimeout(total=None)
        self.session = aiohttp.ClientSession(server.url, connector=connector, timeout=timeout, auto_decompress=False)

    async def get(self, path: str, *, accept: str = "application/json", gzip: bool = False) -> int:
        """Bytes of the body."""
        headers = {"Accept": accept, "Accept-Encoding": "gzip" if gzip else "identity"}
        async with self.session.get(path, headers=headers) as response:
            body = await response.read()
            response.raise_for_status()
            return len(body)

    async def create(self, name: str) -> None:
        body = {"metadata": {"name": name, "labels": {"team": "bench"}}, "spec": {"resourceQuotas": {"cpu": "1"}}}
        async with self.session.post(COLLECTION, json=body) as response:
            await response.read()
            response.raise_for_status()

    async def annotate(self, name: str, value: str) -> None:
        patch = json.dumps({"metadata": {"annotations": {"bench": value}}})
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self.session.patch(f"{COLLECTION}/{name}", data=patch, headers=headers) as response:
            await response.read()
            response.raise_for_status()


def name(index: int) -> str:
    return f"b{index:05}"


async def repeat(call: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Seconds of each of `times` calls, one after the other."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        await call()
        spent.append(time.perf_counter() - start)
    return spent


async def concurrently(call: Callable[[int], Awaitable[object]], total: int, workers: int) -> tuple[float, list[float]]:
    """Wall seconds of `total` calls by `workers`, and the seconds of each."""
    spent: list[float] = []
    numbers = iter(range(total))

    async def work() -> None:
        for number in numbers:
            start = time.perf_counter()
            await call(number)
            spent.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    return time.perf_counter() - start, spent


async def fan_out(client: Client, watchers: int, changes: int) -> list[float]:
    """Seconds from sending a change until the last of `watchers` has its event, for each of `changes`."""
    seen: dict[str, int] = {}
    complete: dict[str, asyncio.Event] = {}
    started = asyncio.Semaphore(0)

    async def watch() -> None:
        parameters = {"watch": "true", "resourceVersion": version, "fieldSelector": f"metadata.name={name(0)}"}
        async with client.session.get(COLLECTION, params=parameters) as response:
            started.release()
            async for line in response.content:
                value = json.loads(line)["object"]["metadata"].get("annotations", {}).get("bench", "")
                if value in complete:
                    seen[value] += 1
                    if seen[value] == watchers:
                        complete[value].set()

    async with client.session.get(COLLECTION, params={"limit": "1"}) as response:
        version = (await response.json())["metadata"]["resourceVersion"]
    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    for _ in tasks:
        await started.acquire()
    spent = []
    for number in range(changes):
        value = f"w{number}"
        seen[value], complete[value] = 0, asyncio.Event()
        start = time.perf_counter()
        await client.annotate(name(0), value)
        async with asyncio.timeout(30):
            await complete[value].wait()
        spent.append(time.perf_counter() - start)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return spent


fresh_names = (f"c{number:06}" for number in count())

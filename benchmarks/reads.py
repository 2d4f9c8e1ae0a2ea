"""LIST in every form, paged and filtered; GET. Bodies are parsed only after the measurement."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import orjson

from benchmarks import load, objects
from benchmarks.client import Connection, ResponseBody
from benchmarks.measurements import Measurement
from benchmarks.targets.sides import MERGE_PATCH, Side, measure_cost

_META = "g=meta.k8s.io"
FORMS = {
    "JSON": "",
    "Table": f"Accept: application/json;as=Table;v=v1;{_META}\r\n",
    "Partial": f"Accept: application/json;as=PartialObjectMetadataList;v=v1;{_META}\r\n",
}
GZIP = "Accept-Encoding: gzip\r\n"
_NAMES = 200
_PAGE = 500
_CHURN_SECONDS = 0.02
_SLOT = "07"


def repetitions(size: int) -> int:
    """Returns how often a list of so many objects is requested in a turn."""
    return max(1, min(10, 3000 // size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """LIST of the whole collection, at least `size` objects, one request after the other on one connection."""

    size: int
    form: str
    gzip: bool = False
    any_version: bool = False
    """resourceVersion=0, as informers send it: any cached state is recent enough. Without it a kube-apiserver reads
    from etcd, unless that supports progress notifications on request (3.4.31, 3.5.13)."""
    times: int

    @property
    def title(self) -> str:
        more = (", gzip" if self.gzip else "") + (", resourceVersion=0" if self.any_version else "")
        return f"LIST {self.size}, {self.form}{more}"

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        headers = FORMS[self.form] + (GZIP if self.gzip else "")
        path = side.collection + ("?resourceVersion=0" if self.any_version else "")
        measured, answers = await repeated(side, path, headers, self.times, warm=number > 0)
        for answer in answers:
            _expect(_length(orjson.loads(answer.decompressed())) >= self.size, "the list is incomplete")
        return {self.title: measured}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredLists:
    """LIST with a labelSelector that matches one object in a hundred, or none."""

    size: int
    times: int
    matches: bool = True

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        path = f"{side.collection}?labelSelector=slot%3D{_SLOT if self.matches else 'none'}"
        measured, answers = await repeated(side, path, "", self.times, warm=number > 0)
        for answer in answers:
            found = _length(orjson.loads(answer.decompressed()))
            _expect(found >= self.size // 100 if self.matches else not found, "the list is incomplete")
        return {f"LIST {'one in 100' if self.matches else 'none'} of {self.size}, labelSelector": measured}


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedLists:
    """LIST in pages of 500 while one object changes fifty times a second: the time of all pages together."""

    size: int
    times: int

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        walks: list[_Walk] = []
        async with load.connected(side.user, 1) as (connection,), churn(side):
            with measure_cost(side) as cost:
                for _ in range(self.times):
                    walks.append(await _walk(connection, side.collection))
        for walk in walks:
            _expect(len(set(walk.names)) == len(walk.names) >= self.size, "the pages are not the complete list")
        seconds = [walk.seconds for walk in walks]
        measured = Measurement(
            seconds=seconds,
            wall=sum(seconds),
            serving=cost.serving,
            cpu=cost.cpu,
            client=cost.client,
            received=walks[-1].received,
        )
        return {f"LIST {self.size} by pages of {_PAGE}, under churn": measured}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gets:
    """GET of objects that were all read before the measurement."""

    size: int
    clients: int
    times: int = 1000

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        names, answers = min(self.size, _NAMES), list[ResponseBody]()
        call = partial(_get, side=side, names=names, answers=answers)
        async with load.connected(side.user, self.clients) as connections:
            await load.distribute(connections, call, range(max(names, self.clients)))
            answers.clear()
            with measure_cost(side) as cost:
                done = await load.distribute(connections, call, range(self.times))
        for answer in answers:
            _expect(
                orjson.loads(answer.decompressed())["metadata"]["name"].startswith("b"),
                "the response is another object",
            )
        measured = Measurement(
            seconds=done.seconds,
            wall=done.wall,
            serving=cost.serving,
            cpu=cost.cpu,
            client=cost.client,
            parallel=self.clients > 1,
            received=len(answers[-1].content),
        )
        return {f"GET, {self.clients} clients, of {self.size}": measured}


async def repeated(
    side: Side, path: str, headers: str, times: int, *, warm: bool
) -> tuple[Measurement, Sequence[ResponseBody]]:
    """Repeats one request on one connection. Unless the server is `warm`, the first request is not measured."""
    answers: list[ResponseBody] = []

    async def call(connection: Connection, _: int) -> None:
        answers.append(await connection.fetch("GET", path, headers=headers))

    async with load.connected(side.user, 1) as connections:
        if not warm:
            await load.distribute(connections, call, range(1))
            answers.clear()
        with measure_cost(side) as cost:
            done = await load.distribute(connections, call, range(times))
    measured = Measurement(
        seconds=done.seconds,
        wall=done.wall,
        serving=cost.serving,
        cpu=cost.cpu,
        client=cost.client,
        received=len(answers[-1].content),
    )
    return measured, answers


async def _get(connection: Connection, number: int, *, side: Side, names: int, answers: list[ResponseBody]) -> None:
    answers.append(await connection.fetch("GET", f"{side.collection}/{objects.name('b', number % names)}"))


@dataclass(frozen=True, slots=True)
class _Walk:
    """All pages of a list. `seconds` is the time spent waiting for pages."""

    seconds: float
    names: Sequence[str]
    received: int


async def _walk(connection: Connection, collection: str) -> _Walk:
    seconds, names, token, received = 0.0, list[str](), "", 0
    while True:
        path = f"{collection}?limit={_PAGE}" + (f"&continue={token}" if token else "")
        start = time.perf_counter()
        answer = await connection.fetch("GET", path)
        seconds += time.perf_counter() - start
        page = orjson.loads(answer.decompressed())
        names += [each["metadata"]["name"] for each in page["items"]]
        received += len(answer.content)
        token = page["metadata"].get("continue", "")
        if not token:
            return _Walk(seconds, names, received)


@asynccontextmanager
async def churn(side: Side) -> AsyncIterator[None]:
    """Changes one object continuously. A change that fails ends the benchmark."""
    async with asyncio.TaskGroup() as group, load.connected(side.user, 1) as (connection,):
        task = group.create_task(_change(connection, f"{side.collection}/{objects.name('b', 0)}"))
        yield
        task.cancel()


async def _change(connection: Connection, path: str) -> None:
    while True:
        body = {"metadata": {"annotations": {"churn": str(time.monotonic())}}}
        await connection.call("PATCH", path, body, content_type=MERGE_PATCH)
        await asyncio.sleep(_CHURN_SECONDS)


def _length(document: Mapping[str, Sequence[object]]) -> int:
    return len(document["rows"] if "rows" in document else document["items"])


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)

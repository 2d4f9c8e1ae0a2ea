"""CREATE, UPDATE, PATCH and apply by many writers, each on objects of its own, so that there are no conflicts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import orjson

from benchmarks import load, objects
from benchmarks.client import Connection, Endpoint, ResponseBody, UnexpectedStatus
from benchmarks.measurements import Measurement
from benchmarks.objects import Object
from benchmarks.targets.sides import MERGE_PATCH, Side, measure_cost

_APPLY = "application/apply-patch+yaml"

Write = Callable[[Connection, int], Awaitable[ResponseBody]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """`times` writes of each verb in a turn, by `writers`; at least that many objects exist. The creates of a side have
    the numbers from `first` on."""

    writers: int
    times: int
    first: int = 0

    async def turn(self, side: Side, number: int) -> Mapping[str, Measurement]:
        found: dict[str, Measurement] = {}
        verbs = (
            ("CREATE", self._create(side, number)),
            ("UPDATE", await self._update(side, number)),
            ("PATCH", self._patch(side, number)),
            ("APPLY", self._apply(side, number)),
        )
        for verb, write in verbs:
            found[f"{verb}, {self.writers} writers"] = await self._measure(side, write)
            await side.wait_until_idle()
        return found

    async def _measure(self, side: Side, write: Write) -> Measurement:
        answers: list[ResponseBody] = []

        async def call(connection: Connection, number: int) -> None:
            answers.append(await write(connection, number))

        async with load.connected(side.user, self.writers) as connections:
            with measure_cost(side) as cost:
                done = await load.distribute(connections, call, range(self.times))
        if not all(orjson.loads(answer.decompressed())["metadata"]["resourceVersion"] for answer in answers):
            raise RuntimeError("a response is not the object")
        return Measurement(
            seconds=done.seconds,
            wall=done.wall,
            serving=cost.serving,
            cpu=cost.cpu,
            client=cost.client,
            parallel=True,
            received=len(answers[-1].content),
        )

    def _create(self, side: Side, turn: int) -> Write:
        async def create(connection: Connection, number: int) -> ResponseBody:
            name = objects.name(side.prefix, self.first + turn * self.times + number)
            return await connection.fetch("POST", side.collection, side.make(name))

        return create

    async def _update(self, side: Side, turn: int) -> Write:
        """Reads the objects first and sends them back changed, as clients do. A controller may have written a status in
        between; then the object is read again, and that time counts."""
        objects_read = await self._read_objects(side.user, side)

        async def update(connection: Connection, number: int) -> ResponseBody:
            changed, path = objects_read[number], f"{side.collection}/{objects_read[number]['metadata']['name']}"
            while True:
                changed["metadata"]["labels"]["changed"] = f"put-{turn}"
                try:
                    return await connection.fetch("PUT", path, changed)
                except UnexpectedStatus as error:
                    if error.status != HTTPStatus.CONFLICT:
                        raise
                changed = orjson.loads(await connection.call("GET", path))

        return update

    def _patch(self, side: Side, turn: int) -> Write:
        async def patch(connection: Connection, number: int) -> ResponseBody:
            body = {"metadata": {"labels": {"changed": f"patch-{turn}"}}}
            path = f"{side.collection}/{objects.name('b', number)}"
            return await connection.fetch("PATCH", path, body, content_type=MERGE_PATCH)

        return patch

    def _apply(self, side: Side, turn: int) -> Write:
        async def apply(connection: Connection, number: int) -> ResponseBody:
            name = objects.name("b", number)
            body = side.make(name)
            body["metadata"]["labels"]["changed"] = f"apply-{turn}"
            path = f"{side.collection}/{name}?fieldManager=bench&force=true"
            return await connection.fetch("PATCH", path, body, content_type=_APPLY)

        return apply

    async def _read_objects(self, user: Endpoint, side: Side) -> list[Object]:
        objects_read: list[Object] = [{}] * self.times

        async def get(connection: Connection, number: int) -> None:
            path = f"{side.collection}/{objects.name('b', number)}"
            objects_read[number] = orjson.loads(await connection.call("GET", path))

        await load.parallel(user, get, range(self.times), clients=self.writers)
        return objects_read

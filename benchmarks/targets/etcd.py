"""The data of an etcd, read and written through its JSON gateway."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from benchmarks import load
from benchmarks.client import Connection, Endpoint

# etcd takes 128 operations in a transaction, unless it is told otherwise
_OPERATIONS = 100
_CLIENTS = 8


@dataclass(frozen=True, slots=True)
class EtcdData:
    """`gateway` is the client URL of an etcd without TLS."""

    gateway: Endpoint

    async def read(self, prefix: bytes) -> Mapping[bytes, bytes]:
        """The values of all keys with the prefix."""
        question = {"key": _encode(prefix), "range_end": _encode(prefix[:-1] + bytes([prefix[-1] + 1]))}
        answer = await self.gateway.call("POST", "/v3/kv/range", question)
        return {b64decode(each["key"]): b64decode(each["value"]) for each in answer.get("kvs", ())}

    async def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Writes each key with its value."""
        blocks = [values[start : start + _OPERATIONS] for start in range(0, len(values), _OPERATIONS)]

        async def write_block(connection: Connection, number: int) -> None:
            puts = [{"request_put": {"key": _encode(key), "value": _encode(value)}} for key, value in blocks[number]]
            answer = orjson.loads(await connection.call("POST", "/v3/kv/txn", {"success": puts}))
            if not answer.get("succeeded"):
                raise RuntimeError(f"etcd did not write: {answer}")

        await load.parallel(self.gateway, write_block, range(len(blocks)), clients=min(_CLIENTS, len(blocks)))


def _encode(data: bytes) -> str:
    return b64encode(data).decode()

"""Certificate files that change are loaded again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.tls.certificates import make_serving
from apiserver.tls.file_reload import follow_file, follow_files
from apiserver.tls.server_context import ServerTls
from tests.apiserver.server.https_listener import CA, SERVING


async def test_a_changed_pair_is_loaded_once_both_files_match(server_tls: type[ServerTls], tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(SERVING.certificate)
    key.write_bytes(SERVING.key)
    tls, successor = server_tls(SERVING), make_serving(CA, ["127.0.0.1"])
    rounds = FakeSleep(
        # the key is written after its certificate
        lambda: certificate.write_bytes(successor.certificate),
        lambda: key.write_bytes(successor.key),
    )
    served = rounds.record(lambda: tls.certificate)
    with pytest.raises(asyncio.CancelledError):
        await follow_files(certificate, key, tls, sleep=rounds)
    assert served == [SERVING.certificate, SERVING.certificate, successor.certificate]


async def test_a_changed_file_is_reloaded_until_it_is_accepted(tmp_path: Path) -> None:
    path, received = tmp_path / "ca.crt", list[bytes]()

    def changed(content: bytes) -> None:
        received.append(content)
        if content == b"bad" and received.count(content) == 1:
            raise ValueError("not yet")

    rounds = FakeSleep(
        lambda: path.write_bytes(b"one"),
        lambda: None,
        lambda: path.write_bytes(b"bad"),
        lambda: None,
        path.unlink,
    )
    with pytest.raises(asyncio.CancelledError):
        await follow_file(path, changed, sleep=rounds)
    assert received == [b"one", b"bad", b"bad"]


class FakeSleep:
    """Replaces the sleep between two polls: each call makes one of `changes`; when none is left, it cancels."""

    def __init__(self, *changes: Callable[[], object]) -> None:
        self._changes = list(changes)
        self._probes: list[Callable[[], None]] = []

    def record(self, value: Callable[[], bytes]) -> list[bytes]:
        recorded: list[bytes] = []
        self._probes.append(lambda: recorded.append(value()))
        return recorded

    async def __call__(self, seconds: float) -> None:
        for probe in self._probes:
            probe()
        if not self._changes:
            raise asyncio.CancelledError
        await asyncio.to_thread(self._changes.pop(0))

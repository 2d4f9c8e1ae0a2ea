"""The target `standalone`: our server with the embedded cluster."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from apiserver.tls.certificates import KeyPair
from benchmarks.client import Endpoint
from benchmarks.targets.processes import ChildProcess, free_port
from benchmarks.targets.target import USER, Target, settings_flag, unverified_tls, user_tls


class StandaloneTarget(Target):
    title = "standalone (embedded cluster)"

    def __init__(self, directory: Path, controllers: str, settings: str) -> None:
        self._directory = directory
        self._settings = settings
        self._controllers = controllers
        self._port = free_port()

    @classmethod
    @asynccontextmanager
    async def running(
        cls, directory: Path, *, controllers: str = "*", settings: str = ""
    ) -> AsyncIterator[StandaloneTarget]:
        target = cls(directory, controllers, settings)
        await target.start()
        try:
            await target._set_up()
            yield target
        finally:
            await target.server.stop()

    async def start(self) -> None:
        flags = [
            f"--data-dir={self._directory / 'data'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            # all watches belong to one user, who may have four for each of these requests
            "--max-requests-inflight=2000",
            f"--controllers={self._controllers}",
            *settings_flag(self._directory, self._settings),
        ]
        command = [sys.executable, "-m", *self.program(), "standalone", *flags]
        self.server = await ChildProcess.start(command, self._directory / "standalone.log")

    async def _set_up(self) -> None:
        url = f"https://127.0.0.1:{self._port}"
        self.anonymous = Endpoint(url, unverified_tls())
        await self.ready()
        pki = self._directory / "data" / "pki"
        ca = KeyPair(certificate=(pki / "ca.crt").read_bytes(), key=(pki / "ca.key").read_bytes())
        self.admin = Endpoint(url, user_tls(self._directory, ca, ca.certificate, "bench-admin", ("system:masters",)))
        self.user = self.cluster_user = Endpoint(url, user_tls(self._directory, ca, ca.certificate, USER))

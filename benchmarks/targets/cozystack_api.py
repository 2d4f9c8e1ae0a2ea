"""The side of --cozystack-api: the API server of Cozystack, on the same kube-apiserver and with the same HelmReleases.

It is built with `go build ./cmd/cozystack-api` in a checkout of Cozystack. It reads its kinds from
ApplicationDefinitions when it starts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from apiserver.tls import certificates
from benchmarks.client import Endpoint, UnexpectedStatus
from benchmarks.kinds import ComparedKind
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.processes import ChildProcess, free_port, wait_until
from benchmarks.targets.sides import Restart, Side
from benchmarks.targets.target import USER, user_tls

TITLE = "cozystack-api"
DEFINITIONS = "/apis/cozystack.io/v1alpha1/applicationdefinitions"
_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CozystackApi:
    """`program` is the built cozystack-api, `definition` the file with the ApplicationDefinition of Tenants."""

    program: Path
    definition: Path

    @asynccontextmanager
    async def running(self, target: KubeTarget, directory: Path, kind: ComparedKind) -> AsyncIterator[Side]:
        """Starts the server beside `target`, until the context ends. It runs as a cluster administrator. Raises
        TimeoutError if it does not serve the kind."""
        definition = yaml.safe_load(await asyncio.to_thread(self.definition.read_text))
        await target.admin.call("POST", DEFINITIONS, definition)
        ca, port = certificates.make_ca("bench-cozystack-api"), free_port()
        user = Endpoint(f"https://127.0.0.1:{port}", user_tls(directory, target.ca, ca.certificate, USER))
        children: list[ChildProcess] = []

        async def start() -> None:
            children.append(await self._start(target, directory, ca, port))
            await _serves(kind, user, children[-1])

        async def stop() -> None:
            await children[-1].kill()

        try:
            await start()
            yield Side(
                title=TITLE,
                user=user,
                collection=kind.collection,
                make=kind.make,
                prefix="w",
                serving=lambda: {TITLE: children[-1]},
                dependencies=lambda: target.cluster_processes,
                restart=Restart(stop=stop, start=start),
            )
        finally:
            if children:
                await children[-1].kill()

    async def _start(self, target: KubeTarget, directory: Path, ca: certificates.KeyPair, port: int) -> ChildProcess:
        serving = certificates.make_serving(ca, ["127.0.0.1"])
        certificate, key = directory / "cozystack-api.crt", directory / "cozystack-api.key"
        certificate.write_bytes(serving.certificate)
        key.write_bytes(serving.key)
        kubeconfig = target.admin_kubeconfig
        flags = {
            "--kubeconfig": kubeconfig,
            "--authentication-kubeconfig": kubeconfig,
            "--authorization-kubeconfig": kubeconfig,
            "--tls-cert-file": certificate,
            "--tls-private-key-file": key,
            "--bind-address": "127.0.0.1",
            "--secure-port": port,
        }
        command: list[str | Path] = [self.program, *(f"{name}={value}" for name, value in flags.items())]
        # one of its clients reads no flag
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        return await ChildProcess.start(command, directory / "cozystack-api.log", environment=environment)


async def _serves(kind: ComparedKind, user: Endpoint, child: ChildProcess) -> None:
    async def served() -> bool:
        try:
            await user.call("GET", kind.collection)
        except UnexpectedStatus:
            return False
        return True

    await wait_until("cozystack-api", served, seconds=_START_SECONDS, child=child)

"""A server of our own on a host, with a proxy in between that hears what it asks the host, and can lie to it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web

from tests.e2e.support.clusters import GROUP_VERSION, PATIENCE, E2eCluster
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.recording_proxy import RecordingProxy

_NAME = "replica"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of our server to its host, with every header of it."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def dry_run(self) -> bool:
        """By the query, or by the DeleteOptions in the body."""
        options = json.loads(self.body) if self.method == "DELETE" and self.body else {}
        return "All" in parse_qs(urlsplit(self.target).query).get("dryRun", options.get("dryRun") or [])


@dataclass(frozen=True, slots=True)
class Lie:
    """What is answered in the host's place, after so many seconds."""

    status: int = 201
    body: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


Liar = Callable[[Asked], Lie | None]
"""None where the host itself is asked."""


class Between(RecordingProxy):
    def __init__(self, cluster: E2eCluster) -> None:
        super().__init__(cluster.url, cluster.admin)
        self.asked: list[Asked] = []
        self.liar: Liar | None = None

    async def _forward(self, name: str, request: web.Request, body: bytes) -> web.StreamResponse:
        asked = Asked(request.method, request.raw_path, tuple(request.headers.items()), body)
        self.asked.append(asked)
        lie = self.liar(asked) if self.liar is not None else None
        if lie is None:
            return await super()._forward(name, request, body)
        await asyncio.sleep(lie.seconds)
        return web.json_response(lie.body, status=lie.status)


@dataclass(frozen=True, slots=True)
class Replica:
    process: Process
    between: Between
    url: str
    cluster: E2eCluster

    def client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """Straight at it, with the client certificate of a user; the administrator's if none is named."""
        identity = self.cluster.identity(user, groups) if user else self.cluster.admin
        tls = ssl._create_unverified_context()
        tls.load_cert_chain(identity.kubeconfig.with_suffix(".crt"), identity.kubeconfig.with_suffix(".key"))
        return Client(self.url, tls, {})

    def nobody(self) -> Client:
        return Client(self.url, ssl._create_unverified_context(), {})

    def asked(self, part: str) -> list[Asked]:
        """What it has asked the host of a path with this in it."""
        return [each for each in tuple(self.between.asked) if part in each.path]

    @contextmanager
    def lied_to(self, liar: Liar) -> Iterator[None]:
        self.between.liar = liar
        try:
            yield
        finally:
            self.between.liar = None


@contextmanager
def replica_of(cluster: E2eCluster, directory: Path, *flags: str) -> Iterator[Replica]:
    """It runs no controllers, so that it writes nothing but what it is asked to."""
    if cluster.kind == "external":
        pytest.skip("nobody can stand between a server that runs already and its host")
    between, port = Between(cluster), free_port()
    where = [f"--kubeconfig={between.add_server(_NAME, directory)}", f"--cert-dir={directory / 'certs'}"]
    address = ["--bind-address=127.0.0.1", f"--secure-port={port}", "--controllers=none"]
    # all that it would ever log, to be searched for what may not be in there
    process = run_command("serve", *where, *address, *flags, "-v=10", log=directory / f"{_NAME}.log")
    made = Replica(process, between, f"https://127.0.0.1:{port}", cluster)
    try:
        wait_until("the replica is ready", lambda: _is_ready(made), seconds=PATIENCE, processes=[process])
        yield made
    finally:
        process.stop()
        between.close()


def _is_ready(replica: Replica) -> bool:
    client = replica.client()
    try:
        return client.get("/readyz").status == 200 and client.get(f"{GROUP_VERSION}/tenants").status == 200
    except OSError:
        return False

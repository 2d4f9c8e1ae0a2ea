"""A second server on a cluster, behind a proxy that records its requests to the cluster and can fake the responses."""

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

from tests.e2e.support.clusters.cluster import GROUP_VERSION, PATIENCE, E2eCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.recording_proxy import RecordingProxy

_NAME = "replica"


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """A request of our server to the cluster, with all its headers."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def dry_run(self) -> bool:
        """True if the query or the DeleteOptions in the body request a dry run."""
        options = json.loads(self.body) if self.method == "DELETE" and self.body else {}
        return "All" in parse_qs(urlsplit(self.target).query).get("dryRun", options.get("dryRun") or [])


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """A response in place of the cluster's, sent after `seconds`."""

    status: int = 201
    body: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


FakeResponder = Callable[[ClusterRequest], FakeResponse | None]
"""Returns None for a request that is forwarded to the cluster."""


class InterceptingProxy(RecordingProxy):
    """Records all requests in `requests`, and responds in place of the cluster where `respond` does."""

    def __init__(self, cluster: E2eCluster) -> None:
        super().__init__(cluster.url, cluster.admin)
        self.requests: list[ClusterRequest] = []
        self.respond: FakeResponder | None = None

    async def _forward(self, name: str, request: web.Request, body: bytes) -> web.StreamResponse:
        recorded = ClusterRequest(request.method, request.raw_path, tuple(request.headers.items()), body)
        self.requests.append(recorded)
        fake = self.respond(recorded) if self.respond is not None else None
        if fake is None:
            return await super()._forward(name, request, body)
        await asyncio.sleep(fake.seconds)
        return web.json_response(fake.body, status=fake.status)


@dataclass(frozen=True, slots=True)
class Replica:
    """A running server of ours on `cluster`, reachable at `url`."""

    process: Process
    proxy: InterceptingProxy
    url: str
    cluster: E2eCluster

    def client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """A client that connects directly, with the client certificate of this user or else of the administrator."""
        identity = self.cluster.identity(user, groups) if user else self.cluster.admin_with_certificate
        tls = ssl._create_unverified_context()
        tls.load_cert_chain(identity.kubeconfig.with_suffix(".crt"), identity.kubeconfig.with_suffix(".key"))
        return Client(self.url, tls, {})

    def anonymous_client(self) -> Client:
        return Client(self.url, ssl._create_unverified_context(), {})

    def requests_to(self, part: str) -> list[ClusterRequest]:
        """Its requests to the cluster whose path contains `part`."""
        return [each for each in tuple(self.proxy.requests) if part in each.path]

    @contextmanager
    def with_fake_responses(self, respond: FakeResponder) -> Iterator[None]:
        self.proxy.respond = respond
        try:
            yield
        finally:
            self.proxy.respond = None


@contextmanager
def started_replica(cluster: E2eCluster, directory: Path, *flags: str) -> Iterator[Replica]:
    """Starts it without controllers, so that all its writes are those of requests."""
    if cluster.kind == "external":
        pytest.skip("a proxy cannot be put between an external server and its cluster")
    proxy, port = InterceptingProxy(cluster), free_port()
    where = [f"--kubeconfig={proxy.add_server(_NAME, directory)}", f"--cert-dir={directory / 'certs'}"]
    address = ["--bind-address=127.0.0.1", f"--secure-port={port}", "--controllers=none"]
    # the most verbose log, which tests search for secrets
    process = run_command("serve", *where, *address, *flags, "-v=10", log=directory / f"{_NAME}.log")
    replica = Replica(process, proxy, f"https://127.0.0.1:{port}", cluster)
    try:
        wait_until("the replica is ready", lambda: _is_ready(replica), seconds=PATIENCE, processes=[process])
        yield replica
    finally:
        process.stop()
        proxy.close()


def _is_ready(replica: Replica) -> bool:
    client = replica.client()
    try:
        return client.get("/readyz").status == 200 and client.get(f"{GROUP_VERSION}/tenants").status == 200
    except OSError:
        return False

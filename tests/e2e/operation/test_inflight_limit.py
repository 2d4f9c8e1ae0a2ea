"""Requests over --max-requests-inflight get a 429 with Retry-After until others have finished."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.raw_tls import RawTls

LIMIT = 2


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """An embedded cluster with a very low limit."""
    started = EmbeddedCluster(tmp_path)
    started.stop()
    flags = [f"--data-dir={started.data}", "--bind-address=127.0.0.1", f"--secure-port={started.port}"]
    started.server = run_command("standalone", *flags, f"--max-requests-inflight={LIMIT}", log=tmp_path / "limited.log")
    try:
        wait_until("the server is serving", lambda: "Serving on" in started.server.log(), processes=[started.server])
        yield started
    finally:
        started.server.stop()


def begin_write(connection: RawTls) -> None:
    """Starts a write without sending its body."""
    fields = {"Content-Type": "application/json", "Content-Length": "2", "Expect": "100-continue"}
    connection.send_request_head("POST", tenants_path(ROOT), fields)
    assert connection.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")


@pytest.fixture
def limited_client(limited: EmbeddedCluster) -> Client:
    """A client of a user who may do everything in the root namespace and is not exempt as a cluster administrator."""
    limited.grant("slow", "cluster-admin", ROOT)
    return limited.client("slow")


def test_requests_over_the_limit_are_rejected_with_retry_after(
    limited: EmbeddedCluster, limited_client: Client
) -> None:
    version = limited_client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    with ExitStack() as stack:
        # watches are not counted
        for _ in range(2 * LIMIT):
            watch = stack.enter_context(RawTls(limited_client))
            watch.send_request_head("GET", f"{tenants_path(ROOT)}?watch=true&resourceVersion={version}")
            assert watch.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        unfinished = [stack.enter_context(RawTls(limited_client)) for _ in range(LIMIT)]
        for each in unfinished:
            begin_write(each)
        rejected = limited_client.get(tenants_path(ROOT))
        status = rejected.expect(429)
        assert (status["reason"], status["details"]["retryAfterSeconds"]) == ("TooManyRequests", 1)
        assert rejected.headers["Retry-After"] == "1"
        # cluster administrators and probes are exempt
        assert limited.client().get(tenants_path(ROOT)).status == 200
        assert limited_client.get("/livez").status == 200
        unfinished[0].send(b"{}")
        assert unfinished[0].read_until(b"}\n").startswith(b"HTTP/1.1 422")
        # the client has the response a moment before the server counts the request as finished
        wait_until("its slot is free", lambda: limited_client.get(tenants_path(ROOT)).status == 200)


def test_aborted_requests_free_their_slots(limited: EmbeddedCluster, limited_client: Client) -> None:
    with ExitStack() as stack:
        for _ in range(LIMIT):
            begin_write(stack.enter_context(RawTls(limited_client)))
        assert limited_client.get(tenants_path(ROOT)).status == 429
    wait_until("there is a free slot", lambda: limited_client.get(tenants_path(ROOT)).status == 200)
    assert "Traceback" not in limited.server.log()

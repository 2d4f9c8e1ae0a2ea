"""More requests than --max-requests-inflight: 429 with Retry-After, until there is room again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.support.clusters import ROOT, EmbeddedCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import run_command, wait_until
from tests.e2e.support.raw_tls import RawTls

LIMIT = 2


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A host of the test's own with very little room."""
    made = EmbeddedCluster(tmp_path)
    made.stop()
    flags = [f"--data-dir={made.data}", "--bind-address=127.0.0.1", f"--secure-port={made.port}"]
    made.server = run_command("standalone", *flags, f"--max-requests-inflight={LIMIT}", log=tmp_path / "limited.log")
    try:
        wait_until("it serves", lambda: "Serving on" in made.server.log(), processes=[made.server])
        yield made
    finally:
        made.server.stop()


def begin_write(connection: RawTls) -> None:
    """A write whose body does not come."""
    fields = {"Content-Type": "application/json", "Content-Length": "2", "Expect": "100-continue"}
    connection.send_request_head("POST", tenants_path(ROOT), fields)
    assert connection.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")


@pytest.fixture
def slow(limited: EmbeddedCluster) -> Client:
    """A user who may do everything in the root namespace, and is no cluster admin."""
    limited.grant("slow", "cluster-admin", ROOT)
    return limited.client("slow")


def test_requests_over_the_limit_are_rejected_with_retry_after(limited: EmbeddedCluster, slow: Client) -> None:
    version = slow.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    with ExitStack() as stack:
        # watches are not counted
        for _ in range(2 * LIMIT):
            watch = stack.enter_context(RawTls(slow))
            watch.send_request_head("GET", f"{tenants_path(ROOT)}?watch=true&resourceVersion={version}")
            assert watch.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        held = [stack.enter_context(RawTls(slow)) for _ in range(LIMIT)]
        for each in held:
            begin_write(each)
        refused = slow.get(tenants_path(ROOT))
        status = refused.expect(429)
        assert (status["reason"], status["details"]["retryAfterSeconds"]) == ("TooManyRequests", 1)
        assert refused.headers["Retry-After"] == "1"
        # who repairs things, and probes, are let in
        assert limited.client().get(tenants_path(ROOT)).status == 200
        assert slow.get("/livez").status == 200
        held[0].send(b"{}")
        assert held[0].read_until(b"}\n").startswith(b"HTTP/1.1 422")
        assert slow.get(tenants_path(ROOT)).status == 200


def test_aborted_requests_free_their_slots(limited: EmbeddedCluster, slow: Client) -> None:
    with ExitStack() as stack:
        for _ in range(LIMIT):
            begin_write(stack.enter_context(RawTls(slow)))
        assert slow.get(tenants_path(ROOT)).status == 429
    wait_until("there is room", lambda: slow.get(tenants_path(ROOT)).status == 200)
    assert "Traceback" not in limited.server.log()

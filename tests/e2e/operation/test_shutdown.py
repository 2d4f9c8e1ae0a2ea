"""Shutdown by a signal: readyz fails, connections end cleanly, requests in flight finish, and the status is 0."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import manifest

WATCHES = 200
IDLE = 20
# a graceful shutdown takes at most this long
LIMIT = 10.0
LAST_CHUNK = b"0\r\n\r\n"


def watch_target(client: Client) -> str:
    version = client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    return f"{tenants_path(ROOT)}?watch=true&resourceVersion={version}"


def exit_limit(client: Client) -> float:
    """The time that a shutdown may take on this machine, in seconds; measured before it."""
    return Pace(client).limit(LIMIT)


def begin_post(connection: RawTls, length: int) -> None:
    """Starts a POST and waits until the server asks for the body."""
    fields = {"Content-Type": "application/json", "Content-Length": str(length), "Expect": "100-continue"}
    connection.send_request_head("POST", tenants_path(ROOT), fields)
    assert connection.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")


def is_shutting_down(own_embedded: EmbeddedCluster) -> bool:
    return "shutting down" in own_embedded.server.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_many_watches_and_idle_connections_end_cleanly(own_embedded: EmbeddedCluster, number: signal.Signals) -> None:
    client = own_embedded.client()
    target, limit = watch_target(client), exit_limit(client)
    with ExitStack() as stack:
        watches = [stack.enter_context(RawTls(client)) for _ in range(WATCHES)]
        for each in watches:
            each.send_request_head("GET", target)
        for each in watches:
            assert each.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        idle = [stack.enter_context(RawTls(client)) for _ in range(IDLE)]
        for each in idle[: IDLE // 2]:
            each.send_request_head("GET", "/livez")
            assert each.read_until(b"ok").startswith(b"HTTP/1.1 200")
        own_embedded.server.signal(number)
        assert {each.read_to_end()[-5:] for each in watches} == {LAST_CHUNK}
        assert {each.read_to_end() for each in idle} == {b""}
        assert own_embedded.server.wait(seconds=limit) == 0
    assert "Traceback" not in own_embedded.server.log()


def test_a_request_in_flight_finishes(own_embedded: EmbeddedCluster) -> None:
    body, limit = json.dumps(manifest("late")).encode(), exit_limit(own_embedded.client())
    with RawTls(own_embedded.client()) as connection:
        begin_post(connection, len(body))
        connection.send(body[:10])
        own_embedded.server.signal(signal.SIGTERM)
        wait_until("the server is shutting down", lambda: is_shutting_down(own_embedded))
        connection.send(body[10:])
        answer = connection.read_to_end()
    assert answer.startswith(b"HTTP/1.1 201"), f"{answer!r}\n{own_embedded.server.tail()}"
    assert own_embedded.server.wait(seconds=limit) == 0
    own_embedded.start()
    assert own_embedded.client().get(tenants_path(ROOT, "late")).status == 200


def test_shutdown_does_not_wait_for_a_missing_body(own_embedded: EmbeddedCluster) -> None:
    limit = exit_limit(own_embedded.client())
    with RawTls(own_embedded.client()) as connection:
        begin_post(connection, 99)
        own_embedded.server.signal(signal.SIGTERM)
        assert own_embedded.server.wait(seconds=limit) == 0


def test_shutdown_does_not_wait_for_an_unfinished_handshake(own_embedded: EmbeddedCluster) -> None:
    limit = exit_limit(own_embedded.client())
    with socket.create_connection(("127.0.0.1", own_embedded.port)):
        own_embedded.server.signal(signal.SIGTERM)
        assert own_embedded.server.wait(seconds=limit) == 0


def test_repeated_signals_do_no_harm(own_embedded: EmbeddedCluster) -> None:
    client = own_embedded.client()
    stopped, limit = threading.Event(), exit_limit(client)

    def send_signals() -> None:
        while not stopped.is_set() and not own_embedded.server.ended:
            own_embedded.server.signal(signal.SIGTERM)
            own_embedded.server.signal(signal.SIGINT)
            time.sleep(0.005)

    with RawTls(client) as watch:
        watch.send_request_head("GET", watch_target(client))
        watch.read_until(b"\r\n\r\n")
        signaller = threading.Thread(target=send_signals)
        signaller.start()
        try:
            assert watch.read_to_end()[-5:] == LAST_CHUNK
            assert own_embedded.server.wait(seconds=limit) == 0
        finally:
            stopped.set()
            signaller.join()
    assert "Traceback" not in own_embedded.server.log()


def test_acknowledged_writes_survive_a_shutdown(own_embedded: EmbeddedCluster) -> None:
    acknowledged: list[str] = []
    limit = exit_limit(own_embedded.client())

    def write() -> None:
        client, number = own_embedded.client(), 0
        while True:
            name = f"t{number}"
            try:
                status = client.request("POST", tenants_path(ROOT), manifest(name)).status
            except OSError:
                return
            assert status in (201, 429, 503)
            if status == 201:
                acknowledged.append(name)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    wait_until("some writes are acknowledged", lambda: len(acknowledged) >= 10)
    own_embedded.server.signal(signal.SIGTERM)
    assert own_embedded.server.wait(seconds=limit) == 0
    writer.join(timeout=30)
    own_embedded.start()
    items = own_embedded.client().get(tenants_path(ROOT)).expect(200)["items"]
    assert set(acknowledged) <= {item["metadata"]["name"] for item in items}


def test_readyz_fails_before_the_port_closes_behind_an_aggregator(kube: KubeCluster, tmp_path: Path) -> None:
    port = free_port()
    flags = [f"--kubeconfig={kube.account.kubeconfig}", f"--secure-port={port}", "--controllers=none"]
    process = run_command("serve", *flags, "--bind-address=127.0.0.1", log=tmp_path / "log")
    direct = kube.direct_client()
    client = Client(f"https://127.0.0.1:{port}", direct.tls, direct.headers)

    def readiness() -> int:
        try:
            return client.get("/readyz").status
        except OSError:
            return 0

    try:
        wait_until("the server is ready", lambda: readiness() == 200, seconds=PATIENCE, processes=[process])
        limit = exit_limit(client)
        with RawTls(client) as watch, RawTls(client) as unfinished:
            watch.send_request_head("GET", watch_target(client))
            watch.read_until(b"\r\n\r\n")
            # a request in progress keeps the port open for some more seconds, which a slow machine needs
            begin_post(unfinished, 2)
            process.signal(signal.SIGTERM)
            wait_until("readyz fails", lambda: readiness() != 200)
            assert readiness() == 500
            assert client.get("/livez").status == 200
            assert client.get(tenants_path(ROOT)).status == 200
            # accepted, it would end at once, and client-go would list again
            refused = client.get(tenants_path(ROOT), query={"watch": "true"})
            assert refused.expect(429)["message"] == "apiserver is shutting down"
            assert (refused.headers["Retry-After"], refused.headers["Connection"]) == ("1", "close")
            assert watch.read_to_end()[-5:] == LAST_CHUNK
            # ends the shutdown early; how requests in progress end is tested above
            unfinished.send(b"{}")
            unfinished.read_to_end()
        assert process.wait(seconds=limit) == 0
    finally:
        process.stop()

"""Expired continue tokens, on a server that keeps almost no watch history (WIRE-J12, WIRE-D60)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import manifest

LIST = tenants_path(ROOT)
COUNT = 12
LIMIT = 4
_HISTORY = "--watch-history-size=8Ki"
_WALKS = 20


def wait_until_served(process: Process, client: Client) -> Client:
    def is_served() -> bool:
        try:
            # the root tenant is created a moment later
            body = manifest("probe")
            return client.request("POST", LIST, body, query={"dryRun": "All"}).status == 201
        except OSError:
            return False

    wait_until("Tenants are served", is_served, processes=[process])
    return client


def start_standalone(directory: Path) -> tuple[Process, Client]:
    port, data = free_port(), directory / "data"
    flags = [f"--data-dir={data}", "--bind-address=127.0.0.1", f"--secure-port={port}", _HISTORY]
    process = run_command("standalone", *flags, log=directory / "log")
    wait_until("the kubeconfig is written", (data / "kubeconfig").is_file, processes=[process])
    admin = credentials.from_kubeconfig(data / "kubeconfig")
    return process, Client(admin.server, admin.tls, {})


def start_second_replica(kube: KubeCluster, directory: Path) -> tuple[Process, Client]:
    """Starts a second replica, which runs no controllers."""
    port = free_port()
    process = run_command(
        "serve",
        f"--kubeconfig={kube.account.kubeconfig}",
        f"--cert-dir={directory / 'pki'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--controllers=none",
        _HISTORY,
        log=directory / "log",
    )
    wait_until("the CA is created", (directory / "pki" / "ca.crt").is_file, processes=[process])
    tls = credentials.tls_context((directory / "pki" / "ca.crt").read_text())
    tls.check_hostname = False
    admin = kube.admin_with_certificate.kubeconfig
    tls.load_cert_chain(admin.with_suffix(".crt"), admin.with_suffix(".key"))
    return process, Client(f"https://127.0.0.1:{port}", tls, {})


@pytest.fixture
def short_history(cluster: E2eCluster, tmp_path: Path) -> Iterator[Client]:
    process, client = (
        start_second_replica(cluster, tmp_path) if isinstance(cluster, KubeCluster) else start_standalone(tmp_path)
    )
    try:
        yield wait_until_served(process, client)
    finally:
        status = process.stop()
    assert status == 0, process.tail()


@pytest.fixture
def collection(short_history: Client, unique: str) -> Iterator[str]:
    """The path of COUNT Tenants in a namespace of their own, where no other test creates or deletes any."""
    parent = short_history.request("POST", LIST, manifest(unique)).expect(201)
    namespace = parent["status"]["namespace"]
    path, children = tenants_path(namespace), [manifest(f"t{number:02d}", namespace) for number in range(COUNT)]

    def accepts_children() -> bool:
        return short_history.request("POST", path, children[0], query={"dryRun": "All"}).status == 201

    wait_until("the namespace exists", accepts_children)
    for child in children:
        short_history.request("POST", path, child).expect(201)
    yield path
    foreground = {"propagationPolicy": "Foreground"}
    for each in (*(f"{path}/{child['metadata']['name']}" for child in children), f"{LIST}/{unique}"):
        short_history.request("DELETE", each, query=foreground)


def page(client: Client, path: str, token: str = "") -> dict[str, Any]:
    query = {"limit": LIMIT, **({"continue": token} if token else {})}
    listed: dict[str, Any] = client.get(path, query=query).expect(200)
    return listed


def test_an_expired_token_is_answered_with_a_fresh_one(short_history: Client, collection: str) -> None:
    all_names = [item["metadata"]["name"] for item in short_history.get(collection).expect(200)["items"]]
    first = page(short_history, collection)
    token, version = first["metadata"]["continue"], first["metadata"]["resourceVersion"]
    assert [item["metadata"]["name"] for item in first["items"]] == all_names[:LIMIT]

    # snapshots of lists in progress are retained, but only a limited number of them
    for number in range(_WALKS):
        patch = {"metadata": {"annotations": {"round": str(number)}}}
        merge = "application/merge-patch+json"
        short_history.request("PATCH", f"{collection}/{all_names[-1]}", patch, content_type=merge).expect(200)
        page(short_history, collection)
    status = short_history.get(collection, query={"limit": LIMIT, "continue": token}).expect(410)
    assert (status["reason"], status["code"]) == ("Expired", 410)
    assert status["message"].startswith("The provided continue parameter is too old to display a consistent list")
    fresh = status["metadata"]["continue"]
    assert fresh not in ("", token)

    walked, versions = list(all_names[:LIMIT]), set[str]()
    while fresh:
        following = page(short_history, collection, fresh)
        walked += [item["metadata"]["name"] for item in following["items"]]
        versions.add(following["metadata"]["resourceVersion"])
        assert following["metadata"].get("remainingItemCount") == (len(all_names) - len(walked) or None)
        fresh = following["metadata"].get("continue", "")
    assert walked == all_names
    assert len(versions) == 1
    assert version not in versions

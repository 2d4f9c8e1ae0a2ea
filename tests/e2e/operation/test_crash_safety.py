"""SIGKILL during writes on the embedded cluster: acknowledged writes survive, versions increase, watches resume."""

from __future__ import annotations

import http.client
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.clusters.stored_data import check_integrity
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import manifest

WRITERS = 4
MERGE = "application/merge-patch+json"


@dataclass(slots=True)
class Acknowledged:
    """The acknowledged writes of a writer: last version and annotation of each object, and deleted objects."""

    versions: dict[str, int] = field(default_factory=dict)
    rounds: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    # the object of the request without a response, which may or may not have been executed
    pending: str = ""

    @property
    def count(self) -> int:
        return len(self.versions) + len(self.deleted)


def write(client: Client, number: int, acknowledged: Acknowledged) -> None:
    """Creates, changes and deletes Tenants and ConfigMaps until the server is killed."""
    try:
        iteration = 0
        while True:
            name = f"w{number}x{iteration}"
            path = tenants_path(ROOT) if iteration % 2 else f"/api/v1/namespaces/{ROOT}/configmaps"
            body = manifest(name) if iteration % 2 else {"metadata": {"name": name}}
            acknowledged.pending = name
            _record(acknowledged, client.request("POST", path, body).expect(201))
            change = {"metadata": {"annotations": {"round": str(iteration)}}}
            _record(acknowledged, client.request("PATCH", f"{path}/{name}", change, content_type=MERGE).expect(200))
            acknowledged.rounds[name] = str(iteration)
            if iteration % 4 == 2:
                client.request("DELETE", f"{path}/{name}").expect(200)
                acknowledged.deleted.add(name)
                del acknowledged.versions[name], acknowledged.rounds[name]
            iteration += 1
    except (OSError, EOFError, http.client.HTTPException):
        # a response may be cut in the middle
        return


def _record(acknowledged: Acknowledged, obj: dict[str, Any]) -> None:
    acknowledged.versions[obj["metadata"]["name"]] = int(obj["metadata"]["resourceVersion"])


def list_all(client: Client) -> dict[str, dict[str, Any]]:
    """Tenants and ConfigMaps of the root namespace, by name."""
    paths = tenants_path(ROOT), f"/api/v1/namespaces/{ROOT}/configmaps"
    items = [item for path in paths for item in client.get(path).expect(200)["items"]]
    return {item["metadata"]["name"]: item for item in items}


@pytest.mark.parametrize("least", [5, 60])
def test_acknowledged_writes_survive_a_kill_and_versions_increase(own_embedded: EmbeddedCluster, least: int) -> None:
    acknowledged = [Acknowledged() for _ in range(WRITERS)]
    writers = [threading.Thread(target=write, args=(own_embedded.client(), n, acknowledged[n])) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    own_embedded.wait_until("writes are acknowledged", lambda: sum(each.count for each in acknowledged) >= least)
    own_embedded.server.kill()
    for writer in writers:
        writer.join(timeout=60)
    assert check_integrity(own_embedded.data) == "ok"
    own_embedded.start()
    found = list_all(own_embedded.client())
    for each in acknowledged:
        for name, version in each.versions.items():
            if name == each.pending and name not in found:
                # its deletion had been requested
                continue
            metadata = found[name]["metadata"]
            assert int(metadata["resourceVersion"]) >= version
            if name in each.rounds:
                assert metadata["annotations"]["round"] == each.rounds[name]
        assert not each.deleted & found.keys()
    last = max(version for each in acknowledged for version in each.versions.values())
    made = own_embedded.client().request(
        "POST", f"/api/v1/namespaces/{ROOT}/configmaps", {"metadata": {"name": "after"}}
    )
    assert int(made.expect(201)["metadata"]["resourceVersion"]) > last


def test_a_watch_resumes_after_a_kill_or_is_expired(own_embedded: EmbeddedCluster) -> None:
    client = own_embedded.client()
    path = f"/api/v1/namespaces/{ROOT}/configmaps"
    old = client.get(path).expect(200)["metadata"]["resourceVersion"]
    for number in range(5):
        client.request("POST", path, {"metadata": {"name": f"before{number}"}}).expect(201)
    current = client.get(path).expect(200)["metadata"]["resourceVersion"]
    own_embedded.server.kill()
    own_embedded.start()
    client = own_embedded.client()
    client.request("POST", path, {"metadata": {"name": "after"}}).expect(201)
    names = {name for name, _ in _watch_events(client, path, current)}
    assert names in ({"after"}, {""})
    seen = _watch_events(client, path, old)
    if seen != [("", 410)]:
        assert [name for name, _ in seen][:5] == [f"before{number}" for number in range(5)]


def _watch_events(client: Client, path: str, version: str) -> list[tuple[str, int]]:
    """The events since a resource version: the name of each object, and the code of an error."""
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"}
    with client.stream(path, query=query) as frames:
        objects = [frame["object"] for frame in frames]
    return [(obj["metadata"].get("name", ""), obj.get("code", 0)) for obj in objects]


def test_a_paginated_list_continues_after_a_kill_or_is_expired(own_embedded: EmbeddedCluster) -> None:
    client = own_embedded.client()
    path = f"/api/v1/namespaces/{ROOT}/configmaps"
    for number in range(5):
        client.request("POST", path, {"metadata": {"name": f"c{number}"}}).expect(201)
    first = client.get(path, query={"limit": 2}).expect(200)
    own_embedded.server.kill()
    own_embedded.start()
    rest = own_embedded.client().get(path, query={"limit": 500, "continue": first["metadata"]["continue"]})
    if rest.status == 410:
        assert rest.json()["metadata"]["continue"]
        return
    listed = [item["metadata"]["name"] for item in [*first["items"], *rest.expect(200)["items"]]]
    assert [name for name in listed if name.startswith("c")] == [f"c{number}" for number in range(5)]


def test_acknowledged_writes_survive_repeated_kills(own_embedded: EmbeddedCluster) -> None:
    acknowledged: set[str] = set()
    for iteration in range(3):
        latest = Acknowledged()
        writer = threading.Thread(target=write, args=(own_embedded.client(), iteration, latest))
        writer.start()
        wait_until("writes are acknowledged", lambda latest=latest: latest.count >= 3)  # type: ignore[misc]
        own_embedded.server.kill()
        writer.join(timeout=60)
        acknowledged |= latest.rounds.keys() - {latest.pending}
        own_embedded.start()
        assert acknowledged <= list_all(own_embedded.client()).keys()
    assert own_embedded.stop() == 0
    assert check_integrity(own_embedded.data) == "ok"

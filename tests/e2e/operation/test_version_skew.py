"""Two versions beside each other, as during a rollout: an earlier commit and this one, with the same account, on one
cluster, and each after the other.

EARLIER is the last commit before Tenants were stored as they are sent. It stored all defaults of the schema.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY, Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.server_fixtures import prepared_kube_cluster

EARLIER = "9e35b49bbe098be16dff43eca594789433bf7d0d"
PACKAGES = ("admission", "apiserver", "controller", "registry", "tenant_apiserver")
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
MERGE = "application/merge-patch+json"


@dataclass
class Replica:
    """A server, and an administrator's client that bypasses the aggregator."""

    process: Process
    client: Client

    def create(self, name: str, **spec: Any) -> int:
        body = {
            "apiVersion": "apps.cozystack.io/v1alpha1",
            "kind": "Tenant",
            "metadata": {"name": name, "namespace": ROOT},
            "spec": spec,
        }
        return self.client.request_with_retries("POST", tenants_path(ROOT), body).status

    def tenants(self) -> dict[str, tuple[Any, Any]]:
        """Labels and spec, by name."""
        found = self.client.get(tenants_path(ROOT)).expect(200)["items"]
        return {each["metadata"]["name"]: (each["metadata"].get("labels"), each["spec"]) for each in found}


class Rollout:
    """A cluster with the rights of this version, on which replicas of both versions run."""

    def __init__(self, kube: KubeCluster, earlier: Path) -> None:
        self.kube = kube
        self._earlier = earlier
        # the certificate of the Secret, which both versions serve with
        self._ca = kube.directory / "serving-ca.crt"
        secret = "/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert"
        self._ca.write_bytes(base64.b64decode(kube.client().get(secret).expect(200)["data"]["ca.crt"]))

    def start(self, version: str, *, registered: bool = False) -> Replica:
        """`version` is "earlier" or "present". The APIServices lead to the replica that is `registered`: without one,
        Kubernetes deletes no Namespace."""
        port = self.kube.port if registered else free_port()
        log = self.kube.directory / f"{version}-{port}.log"
        flags = [
            "serve",
            f"--kubeconfig={self.kube.account.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--root-host={ROOT_HOST}",
            "--leader-elect",
        ]
        if version == "earlier":
            # the packages of this checkout are in the working directory, which comes first without PYTHONSAFEPATH
            environment = {"PYTHONPATH": str(self._earlier), "PYTHONSAFEPATH": "1"}
            command = [sys.executable, "-m", "tenant_apiserver", *flags]
            process = Process("the earlier version", command, log=log, environment=environment)
        else:
            process = run_command(*flags, log=log)
        replica = Replica(process, self.kube.client_at(port, self._ca))
        wait_until(
            f"the {version} version is ready",
            lambda: replica.client.serves("/readyz"),
            seconds=120,
            processes=[process],
        )
        return replica

    def releases(self) -> dict[str, Any]:
        found = self.kube.client().get(RELEASES).expect(200)["items"]
        return {each["metadata"]["name"]: (each["metadata"]["generation"], each["spec"]) for each in found}

    def wait_for_namespace(self, name: str, replica: Replica) -> None:
        path = f"/api/v1/namespaces/tenant-{name}"
        wait_until(
            f"{name} has its Namespace",
            lambda: self.kube.client().get(path).status == 200,
            seconds=120,
            processes=[replica.process],
        )


@pytest.fixture
def rollout(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollout]:
    earlier = _checked_out(tmp_path / "earlier")
    kube = prepared_kube_cluster(tmp_path, tmp_path_factory)
    try:
        assert kube.server.stop() == 0
        yield Rollout(kube, earlier)
    finally:
        kube.stop()


def _checked_out(folder: Path) -> Path:
    command = ["git", f"--git-dir={REPOSITORY / '.git'}", "archive", EARLIER, *PACKAGES]
    done = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
    if done.returncode != 0:
        pytest.skip(f"this checkout does not have commit {EARLIER[:7]}: {done.stderr.decode().strip()}")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=done.stdout, timeout=60, check=True)
    return folder


def _stop(replica: Replica) -> None:
    assert replica.process.stop() == 0, replica.process.tail()
    assert "Traceback" not in replica.process.log()


def test_replicas_of_two_versions_serve_the_same_tenants_and_lead_one_after_the_other(rollout: Rollout) -> None:
    earlier = rollout.start("earlier", registered=True)
    for name in ("old1", "old2", "old3"):
        assert earlier.create(name, host=f"{name}.example.org") == 201
    rollout.wait_for_namespace("old1", earlier)
    present = rollout.start("present")
    stored = rollout.releases()
    for name in ("new1", "new2", "new3"):
        assert present.create(name, host=f"{name}.example.org") == 201
    _check_both_serve_all(earlier, present)
    _check_each_reads_the_claims_of_the_other(earlier, present)
    _check_each_writes_what_the_other_has_stored(earlier, present)
    # neither rewrites what nobody has changed
    after = rollout.releases()
    kept = {name for name in stored if name not in ("tenant-old2", "tenant-old3")}
    assert {name: after[name] for name in kept} == {name: stored[name] for name in kept}
    # the rollout goes on, and is undone
    _stop(earlier)
    assert present.create("upgraded", host="upgraded.example.org") == 201
    rollout.wait_for_namespace("upgraded", present)
    back = rollout.start("earlier")
    _stop(present)
    assert back.create("undone", host="undone.example.org") == 201
    rollout.wait_for_namespace("undone", back)
    assert {"old1", "new1", "upgraded", "undone"} <= back.tenants().keys()
    final = rollout.releases()
    assert {name: final[name] for name in kept} == {name: stored[name] for name in kept}
    _stop(back)


def _check_both_serve_all(earlier: Replica, present: Replica) -> None:
    names = {"old1", "old2", "old3", "new1", "new2", "new3"}

    def both_serve_all() -> bool:
        return all(names <= each.tenants().keys() for each in (earlier, present))

    wait_until("both serve all Tenants", both_serve_all, seconds=60)
    of_earlier, of_present = earlier.tenants(), present.tenants()
    assert {name: of_earlier[name] for name in names} == {name: of_present[name] for name in names}


def _check_each_reads_the_claims_of_the_other(earlier: Replica, present: Replica) -> None:
    """A host that one has accepted is refused by the other."""
    assert earlier.create("first", host="shared1.example.org") == 201
    assert present.create("second", host="shared1.example.org") == 422
    assert present.create("third", host="shared2.example.org") == 201
    assert earlier.create("fourth", host="shared2.example.org") == 422


def _check_each_writes_what_the_other_has_stored(earlier: Replica, present: Replica) -> None:
    for replica, name in ((present, "old2"), (earlier, "new2")):
        patch = {"spec": {"resourceQuotas": {"cpu": "1"}}}
        replica.client.request("PATCH", tenants_path(ROOT, name), patch, content_type=MERGE).expect(200)
    for replica, name in ((present, "old3"), (earlier, "new3")):
        assert replica.client.request("DELETE", tenants_path(ROOT, name)).status in (200, 202)

    def both_show_it() -> bool:
        found = [each.tenants() for each in (earlier, present)]
        patched = [each[name][1].get("resourceQuotas") for each in found for name in ("old2", "new2")]
        return patched == [{"cpu": "1"}] * 4 and not any({"old3", "new3"} & each.keys() for each in found)

    wait_until("both show what the other has written", both_show_it, seconds=120)

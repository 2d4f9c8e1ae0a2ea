"""The platform's Package in end-to-end tests: installed while our server runs, changed as an administrator would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import COZYSTACK_CRDS
from tests.e2e.support.http.https_client import Client

PACKAGE = "cozystack.cozystack-platform"
PACKAGES = "/apis/cozystack.io/v1alpha1/packages"


def serve_packages(cluster: E2eCluster, crds: Path) -> None:
    """Installs the CustomResourceDefinition."""
    definition = crds / COZYSTACK_CRDS / "cozystack.io_packages.yaml"
    if not definition.is_file():
        pytest.skip(f"no {definition}: set TEST_CRD_DIR to a folder that also has the CRDs of Cozystack")
    cluster.kubectl("apply", "--server-side", f"--filename={definition}")
    cluster.wait_until_served(PACKAGES)


def patch(cluster: E2eCluster, values: dict[str, Any]) -> None:
    body = json.dumps({"spec": {"components": {"platform": {"values": values}}}})
    cluster.kubectl("patch", "pkg", PACKAGE, "--type", "merge", "--patch", body)


def package_events(cluster: E2eCluster, *reasons: str) -> list[tuple[str, str]]:
    """The type and the note of each Event about the Package with one of these reasons, the oldest first."""
    items = cluster.client().get("/apis/events.k8s.io/v1/namespaces/default/events").expect(200)["items"]
    about = [each for each in items if each["regarding"].get("name") == PACKAGE and each["reason"] in reasons]
    return [(each["type"], each["note"]) for each in sorted(about, key=lambda each: str(each["eventTime"]))]


def readyz_line(cluster: E2eCluster, check: str, client: Client | None = None) -> str:
    """The line of one check, as the administrator or the client sees it; readyz must pass."""
    answer = (client or cluster.direct_client()).get("/readyz?verbose")
    assert answer.status == 200, answer.content
    [line] = [each for each in answer.content.decode().splitlines() if f"]{check} " in each]
    return line


def root_condition(cluster: E2eCluster, type_: str) -> dict[str, Any] | None:
    status = cluster.client().get(tenants_path(ROOT, "root")).expect(200).get("status", {})
    return next((each for each in status.get("conditions", ()) if each["type"] == type_), None)

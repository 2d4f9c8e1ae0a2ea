"""Installs the policies of the five layers for the duration of tests; existing ones stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.e2e.support.admission.policies import BINDINGS as BINDINGS_PATH
from tests.e2e.support.admission.policies import POLICIES as POLICIES_PATH
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster
from tests.e2e.support.gateways import COLLECTIONS
from tests.e2e.support.gateways import path as collection_path
from tests.e2e.support.http.https_client import Client
from tests.policies.case_table import BINDINGS, POLICIES

_VICTIM = "victim.example"
# objects with a hostname that the root tenant does not have
_PROBES = {
    "httproutes": {"hostnames": [_VICTIM], "parentRefs": [{"name": "cozystack"}]},
    "gateways": {
        "gatewayClassName": "cilium",
        "listeners": [{"name": "http", "port": 80, "protocol": "HTTP", "hostname": _VICTIM}],
    },
}


@contextmanager
def policies_installed(cluster: E2eCluster) -> Iterator[None]:
    """Creates the policies and their bindings. They are enforced inside the context, and forgotten after it: a
    kube-apiserver notices both a moment later."""
    client, created = cluster.client(), list[str]()
    try:
        for path, documents in ((POLICIES_PATH, POLICIES), (BINDINGS_PATH, BINDINGS)):
            for document in documents.values():
                created += _install(client, path, document)
        cluster.wait_until("the policies are enforced", lambda: set(_probe(client)) == {403})
        yield
    finally:
        for path in reversed(created):
            client.request("DELETE", path)
        if created:
            cluster.wait_until("the policies are forgotten", lambda: set(_probe(client)) == {201})


def _probe(client: Client) -> Iterator[int]:
    """The status of the creation of each probe in the root namespace."""
    for plural, spec in _PROBES.items():
        version, kind = COLLECTIONS[plural]
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "policy-probe"}, "spec": spec}
        yield client.request("POST", collection_path(plural, ROOT), body, query={"dryRun": "All"}).status


def _install(client: Client, path: str, document: Mapping[str, Any]) -> list[str]:
    answer = client.request("POST", path, dict(document))
    if answer.status == 409:
        return []
    answer.expect(201)
    return [f"{path}/{document['metadata']['name']}"]

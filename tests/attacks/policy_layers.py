"""Installs the policies of the five layers for the duration of tests; existing ones stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.e2e.support.clusters import E2eCluster
from tests.e2e.support.https_client import Client
from tests.e2e.support.policies import BINDINGS as BINDINGS_PATH
from tests.e2e.support.policies import POLICIES as POLICIES_PATH
from tests.policies.case_table import BINDINGS, POLICIES


@contextmanager
def policies_installed(cluster: E2eCluster) -> Iterator[None]:
    """Creates the policies and their bindings. The caller waits until a policy that it needs is enforced."""
    client, created = cluster.client(), list[str]()
    try:
        for path, documents in ((POLICIES_PATH, POLICIES), (BINDINGS_PATH, BINDINGS)):
            for document in documents.values():
                created += _install(client, path, document)
        yield
    finally:
        for path in reversed(created):
            client.request("DELETE", path)


def _install(client: Client, path: str, document: Mapping[str, Any]) -> list[str]:
    answer = client.request("POST", path, dict(document))
    if answer.status == 409:
        return []
    answer.expect(201)
    return [f"{path}/{document['metadata']['name']}"]

"""The manifests of the five layers, in force while tests ask for them; left alone where they are there already."""

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
    """Whoever needs one of them waits until it refuses what it should."""
    client, made = cluster.client(), list[str]()
    try:
        for path, documents in ((POLICIES_PATH, POLICIES), (BINDINGS_PATH, BINDINGS)):
            for document in documents.values():
                made += _install(client, path, document)
        yield
    finally:
        for path in reversed(made):
            client.request("DELETE", path)


def _install(client: Client, path: str, document: Mapping[str, Any]) -> list[str]:
    answer = client.request("POST", path, dict(document))
    if answer.status == 409:
        return []
    answer.expect(201)
    return [f"{path}/{document['metadata']['name']}"]

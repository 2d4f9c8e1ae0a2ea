"""A stand-alone server with 10,000 tenants, which are in its database before it starts."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from apiserver.meta.resource import Key
from registry.names import FINDINGS_ANNOTATION
from registry.sqlite.database import Database, Write
from registry.sqlite.statements import StorageKey
from registry.tenant.convert import to_release
from registry.tenant.release_settings import ReleaseSettings
from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.tenant_objects import tenant

GROUPS, GROUP_SIZE = 100, 99
COUNT = GROUPS * (GROUP_SIZE + 1)
"""Of the tenants besides the root: each group is a tenant with its children."""
_RELEASES = "helmreleases.helm.toolkit.fluxcd.io"
_TIME = "2026-01-02T03:04:05Z"
_CONDITIONS = ("AccessReady", "GatewayReady", "IsolationReady", "NamespaceReady", "QuotaReady", "Ready")


class LargeCluster(EmbeddedCluster):
    """No controller runs: nothing changes unless the test changes it."""

    flags = ("--controllers=none",)

    def __init__(self, directory: Path) -> None:
        data = directory / "data"
        data.mkdir(mode=0o700, parents=True)
        # in a thread, as the test may have an event loop
        with ThreadPoolExecutor(max_workers=1) as executor:
            executor.submit(asyncio.run, _store(data / "host.db")).result()
        super().__init__(directory)


async def _store(path: Path) -> None:
    database = Database(path)
    await database.open()
    try:
        await asyncio.gather(*(database.write(each) for each in _writes()))
    finally:
        await database.close()


def _writes() -> Iterator[Write]:
    namespace = {"metadata": {"name": ROOT, "uid": str(uuid.uuid4()), "creationTimestamp": _TIME}}
    yield Write(type="ADDED", target=StorageKey("namespaces", Key("", ROOT)), object=namespace)
    yield _write("root", ROOT, ROOT_HOST, {})
    for group in range(GROUPS):
        name = f"g{group:03}"
        yield _write(name, ROOT, f"{name}.{ROOT_HOST}", {"cpu": "100", "memory": "200Gi"})
        for number in range(GROUP_SIZE):
            child = f"t{number:03}"
            yield _write(child, f"tenant-{name}", f"{child}.{name}.{ROOT_HOST}", {"cpu": "1"})


def _write(name: str, namespace: str, host: str, quotas: dict[str, str]) -> Write:
    """Stores a Tenant as the reconciler leaves it."""
    stored = to_release(tenant(name, namespace, spec={"resourceQuotas": quotas}), None, ReleaseSettings())
    metadata = stored["metadata"]
    metadata.update(uid=str(uuid.uuid4()), creationTimestamp=_TIME, generation=1)
    metadata["annotations"] = {**metadata.get("annotations", {}), FINDINGS_ANNOTATION: json.dumps(_findings(host))}
    content = {key: value for key, value in stored.items() if key not in ("apiVersion", "kind")}
    return Write(type="ADDED", target=StorageKey(_RELEASES, Key(namespace, metadata["name"])), object=content)


def _findings(host: str) -> dict[str, Any]:
    ready = {"status": "True", "reason": "Reconciled", "message": "the tenant is up to date"}
    ready.update(lastTransitionTime=_TIME)
    return {
        "host": {"value": host, "namespace": ROOT},
        "services": dict.fromkeys(("etcd", "ingress", "monitoring", "seaweedfs"), ROOT),
        "conditions": [{"type": each, "observedGeneration": 1, **ready} for each in _CONDITIONS],
    }

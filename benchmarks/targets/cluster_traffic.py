"""The requests that our server sends to the cluster, according to the cluster's own metrics."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.client import Endpoint
from benchmarks.progress import Progress

# Our server uses these resources; kube-apiserver itself continuously requests others, above all Leases.
_RESOURCES = ("helmreleases", "namespaces", "subjectaccessreviews", "tokenreviews")
WRITTEN = (
    *("helmreleases", "namespaces", "networkpolicies", "secrets", "serviceaccounts", "roles", "rolebindings"),
    *("resourcequotas", "limitranges", "events", "configmaps"),
)
"""The resources that the controllers write for a Tenant."""
QUIET_SECONDS = 3.0
_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Numbers of requests by verb and resource, and of open watches."""

    requests: Mapping[str, float]
    watches: float

    def since(self, before: Traffic) -> Mapping[str, float]:
        found = {name: count - before.requests.get(name, 0) for name, count in self.requests.items()}
        return {name: count for name, count in sorted(found.items()) if count}

    def writes(self) -> float:
        return sum(count for name, count in self.requests.items() if name.startswith(_WRITES))


async def read_traffic(cluster: Endpoint, resources: Container[str] = _RESOURCES) -> Traffic:
    """`cluster` must have the credentials of a user who may read /metrics."""
    requests: defaultdict[str, float] = defaultdict(float)
    watches = 0.0
    for family in text_string_to_metric_families(await cluster.text("/metrics")):
        for sample in family.samples:
            if sample.labels.get("resource") not in resources:
                continue
            if sample.name == "apiserver_longrunning_requests":
                watches += sample.value
            elif sample.name == "apiserver_request_total":
                requests[_name(sample.labels)] += sample.value
    return Traffic(requests, watches)


async def wait_until_quiet(cluster: Endpoint, resources: Container[str] = _RESOURCES) -> None:
    """Waits until our server has written nothing for QUIET_SECONDS."""
    written, progress = -1.0, Progress("writes of our server, which continue")
    while (now := (await read_traffic(cluster, resources)).writes()) != written:
        written = now
        progress.reach(int(written))
        await asyncio.sleep(QUIET_SECONDS)


def _name(labels: Mapping[str, str]) -> str:
    subresource = f"/{labels['subresource']}" if labels.get("subresource") else ""
    return f"{labels['verb']} {labels['resource']}{subresource}"

"""What our server asks of the host, as the host itself counts it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.client import Endpoint

# What we ask for; the host's own components ask for other things all the time, Leases above all.
_RESOURCES = ("helmreleases", "namespaces", "subjectaccessreviews", "tokenreviews")
QUIET_SECONDS = 3.0
_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests by verb and resource, and the watches that are open."""

    requests: Mapping[str, float]
    watches: float

    def since(self, before: Traffic) -> Mapping[str, float]:
        found = {name: count - before.requests.get(name, 0) for name, count in self.requests.items()}
        return {name: count for name, count in sorted(found.items()) if count}

    def writes(self) -> float:
        return sum(count for name, count in self.requests.items() if name.startswith(_WRITES))


async def read_traffic(cluster: Endpoint, resources: Collection[str] = _RESOURCES) -> Traffic:
    """`host` is asked as somebody who may read /metrics."""
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


async def wait_until_quiet(cluster: Endpoint, resources: Collection[str] = _RESOURCES) -> None:
    """Wait until our server has written nothing for QUIET_SECONDS."""
    written = -1.0
    while (now := (await read_traffic(cluster, resources)).writes()) != written:
        written = now
        await asyncio.sleep(QUIET_SECONDS)


def _name(labels: Mapping[str, str]) -> str:
    subresource = f"/{labels['subresource']}" if labels.get("subresource") else ""
    return f"{labels['verb']} {labels['resource']}{subresource}"

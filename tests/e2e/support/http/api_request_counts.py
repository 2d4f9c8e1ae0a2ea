"""Requests to a cluster, counted by its own metrics."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from tests.e2e.support.clusters.cluster import PATIENCE, E2eCluster

QUIET_SECONDS = 4.0
_REQUEST = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)


def count_requests(cluster: E2eCluster, resources: Collection[str]) -> Counter[tuple[str, str, str]]:
    """Counts the requests for these resources by (verb, resource, code)."""
    text = cluster.client().get("/metrics").content.decode()
    counts: Counter[tuple[str, str, str]] = Counter()
    for labels, value in _REQUEST.findall(text):
        values = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if values.get("resource") in resources:
            counts[values["verb"].upper(), values["resource"], values["code"]] += int(float(value))
    return counts


def wait_until_quiet(cluster: E2eCluster, writes: Callable[[E2eCluster], Counter[Any]]) -> None:
    """Waits until there has been no write for QUIET_SECONDS."""
    seen, since = writes(cluster), time.monotonic()

    def is_quiet() -> bool:
        nonlocal seen, since
        now = writes(cluster)
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_SECONDS

    cluster.wait_until("there are no more writes", is_quiet, seconds=2 * PATIENCE)

"""What a host was asked for, as it counts that itself."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from tests.e2e.support.clusters import PATIENCE, E2eCluster
from tests.e2e.support.processes import wait_until

QUIET_SECONDS = 4.0
_REQUEST = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)


def count_requests(cluster: E2eCluster, resources: Collection[str]) -> Counter[tuple[str, str, str]]:
    """Requests for these resources: (verb, resource, code)."""
    text = cluster.client().get("/metrics").content.decode()
    counted: Counter[tuple[str, str, str]] = Counter()
    for labels, value in _REQUEST.findall(text):
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if named.get("resource") in resources:
            counted[named["verb"].upper(), named["resource"], named["code"]] += int(float(value))
    return counted


def wait_until_quiet(cluster: E2eCluster, writes: Callable[[E2eCluster], Counter[Any]]) -> None:
    """Until there was no write for QUIET_SECONDS."""
    seen, since = writes(cluster), time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        now = writes(cluster)
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_SECONDS

    wait_until("nothing is written any more", quiet, seconds=2 * PATIENCE, processes=cluster.processes)

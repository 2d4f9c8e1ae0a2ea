"""The time that a server of the groups takes until it answers through kube-apiserver."""

from __future__ import annotations

import asyncio
import time

from apiserver.meta.errors import StatusError
from registry.cluster.interface import APISERVICES, reason_for_log
from tenant_apiserver.lifecycle.facts import VERSION, api_service_name
from tenant_apiserver.lifecycle.reader import ReadableCluster
from tenant_apiserver.lifecycle.serving import is_available

_POLL_SECONDS = 0.5
# the conditions of an APIService are those of its former server for a moment
_STEADY_POLLS = 6


async def becomes_available(cluster: ReadableCluster, group: str, timeout: float) -> str:
    """Waits until the APIService is available and its discovery is answered for a while. Returns the reason why it is
    not, or an empty text."""
    deadline = time.monotonic() + timeout
    steady = 0
    while steady < _STEADY_POLLS:
        why = await unavailable(cluster, group)
        if why and time.monotonic() > deadline:
            return why
        steady = 0 if why else steady + 1
        await asyncio.sleep(_POLL_SECONDS)
    return ""


async def unavailable(cluster: ReadableCluster, group: str) -> str:
    """The reason why nobody answers for the group now, or why that cannot be found out; empty if somebody does."""
    try:
        available, why = is_available(await cluster.get(APISERVICES, "", api_service_name(group)))
        if not available:
            return why or "it is not available"
        await cluster.discover(f"{group}/{VERSION}")
    except StatusError as error:
        return reason_for_log(error)
    return ""

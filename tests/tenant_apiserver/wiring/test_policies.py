from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from admission.policy.compiled_policy import ParamKind
from admission.policy.params import ConfigurationError
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.interface import ClusterResource
from registry.cluster.outage_log import OutageLog
from tenant_apiserver.wiring.policies import DiscoverableCluster, InformerParamSource
from tests.virtual_time import virtual

LIMITS = ParamKind("example.org/v1", "Limit")


class ClusterOfLimits:
    """Serves the kind Limit, whose list gets `response`, or none as long as it is None."""

    def __init__(self, response: StatusError | None) -> None:
        self._response = response
        self.outages = OutageLog()

    async def discover(self, api_version: str) -> Object:
        return {"resources": [{"name": "limits", "kind": "Limit", "namespaced": True}]}

    async def watch(self, resource: ClusterResource, namespace: str, **options: Any) -> AsyncIterator[Any]:
        await self.each_list_item(resource, namespace)
        yield

    async def list(self, resource: ClusterResource, namespace: str, **options: Any) -> Object:
        await self.each_list_item(resource, namespace)
        return {}

    async def each_list_item(self, resource: ClusterResource, namespace: str, **options: Any) -> str:
        if self._response is None:
            await asyncio.Event().wait()
        assert self._response is not None
        raise self._response


class PoliciesWithLimits:
    param_kinds = frozenset((LIMITS,))

    def subscribe(self, listener: object) -> None:
        """The policies never change."""


@asynccontextmanager
async def running_source(cluster: ClusterOfLimits) -> AsyncIterator[InformerParamSource]:
    source = InformerParamSource(cast(DiscoverableCluster, cluster), PoliciesWithLimits())  # type: ignore[arg-type]
    task = asyncio.create_task(source.run())
    yield source
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_a_policy_is_not_judged_by_its_failure_policy_while_its_parameters_are_listed() -> None:
    """With failurePolicy Ignore, every write would bypass the policy at a start."""
    async with running_source(ClusterOfLimits(None)) as source:
        with pytest.raises(errors.TooManyRequests):
            await source.objects(LIMITS)


@virtual
async def test_a_failure_policy_applies_to_parameters_that_may_not_be_listed() -> None:
    forbidden = StatusError(403, "Forbidden", "limits is forbidden")
    async with running_source(ClusterOfLimits(forbidden)) as source:
        with pytest.raises(ConfigurationError, match="not yet synced"):
            await source.objects(LIMITS)

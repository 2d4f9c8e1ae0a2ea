"""python -m benchmarks.webhooks: what ten configured webhooks add to a write that none of them is about.

No server: both plugins look at one request over and over, as they do before and behind all others.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry

from admission.webhook.dispatch import Surroundings
from admission.webhook.facts import Endpoint
from admission.webhook.held import HeldWebhooks
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.admission import Attributes
from apiserver.authorization import NO_OPINION, AccessAttributes, Decision
from apiserver.context import RequestContext, User
from apiserver.request_info import Query, RequestInfo
from apiserver.resource import Object
from registry.types import tenant_resource

_WEBHOOKS = 10
_WRITES = 20_000
_TENANT: Object = {
    "apiVersion": "apps.cozystack.io/v1alpha1",
    "kind": "Tenant",
    "metadata": {"name": "one", "namespace": "tenant-root", "labels": {f"label-{n}": "value" for n in range(10)}},
    "spec": {"host": "one.example.org"},
}
_NAMESPACE: Object = {"metadata": {"name": "tenant-root", "labels": {"kind": "tenant"}}}


class _Namespaces:
    async def synced(self, seconds: float) -> bool:
        return True

    def get(self, name: str) -> Object | None:
        return _NAMESPACE

    async def live(self, name: str) -> Object | None:
        return None


class _Nobody:
    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return NO_OPINION

    async def post(self, endpoint: Endpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        raise AssertionError("no webhook is about the request")


def _configurations() -> list[Object]:
    """As those of a cluster are: for other resources, other namespaces and other objects."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    selectors: tuple[dict[str, Any], ...] = (
        {"rules": [pods]},
        {"rules": [everything], "namespaceSelector": {"matchLabels": {"inject": "yes"}}},
        {"rules": [everything], "objectSelector": {"matchLabels": {"inject": "yes"}}},
    )
    return [
        {
            "metadata": {"name": f"webhook-{n}"},
            "webhooks": [{"name": f"w{n}.example.com", **selectors[n % len(selectors)]}],
        }
        for n in range(_WEBHOOKS)
    ]


def _write() -> Attributes:
    path = "/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/tenants/one"
    info = RequestInfo(method="PUT", path=path, verb="update", is_resource=True)
    return Attributes(
        operation="UPDATE",
        resource=tenant_resource(),
        namespace="tenant-root",
        name="one",
        object=_TENANT,
        old_object=_TENANT,
        user=User(name="alice", groups=("system:authenticated",)),
        context=RequestContext(http=make_mocked_request("PUT", path), info=info, query=Query(""), audit_id="benchmark"),
    )


async def main() -> None:
    synced = asyncio.Event()
    synced.set()
    held = HeldWebhooks(synced=synced)
    held.configurations.replace(_configurations(), 1)
    surroundings = Surroundings(
        caller=_Nobody(),
        namespaces=_Namespaces(),
        authorizer=_Nobody(),
        metrics=WebhookMetrics(CollectorRegistry()),
    )
    mutating, validating = MutatingWebhooks(held, surroundings), ValidatingWebhooks(held, surroundings)
    request, times = _write(), []
    for _ in range(_WRITES):
        started = time.perf_counter()
        await mutating.admit(request)
        await validating.validate(request)
        times.append((time.perf_counter() - started) * 1e6)
    spread = statistics.quantiles(times, n=100)
    print(f"ten webhooks of each kind, none asked: median {spread[49]:.0f} us, p99 {spread[98]:.0f} us a write")


if __name__ == "__main__":
    asyncio.run(main())

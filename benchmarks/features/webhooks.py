"""python -m benchmarks.features.webhooks: the time that ten webhooks add to a write that none of them matches.

No server runs: both plugins process one request repeatedly.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from prometheus_client import CollectorRegistry

from admission.webhook.accessor import WebhookEndpoint
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.dispatcher import WebhookDependencies
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.meta.resource import Object
from benchmarks.command_line import parse_no_options, run
from benchmarks.features.admission_request import NoOpinionAuthorizer, SingleNamespaceSource, update_request

_WEBHOOKS = 10
_WRITES = 20_000


class _NeverCalled:
    async def post(self, endpoint: WebhookEndpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        raise AssertionError("no webhook matches the request")


def _configurations() -> list[Object]:
    """Returns configurations like those of a cluster: for other resources, other namespaces and other objects."""
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


async def main() -> None:
    source = WebhookSource()
    await source.configurations.replace(_configurations(), 1)
    webhook_dependencies = WebhookDependencies(
        caller=_NeverCalled(),
        namespaces=SingleNamespaceSource(),
        authorizer=NoOpinionAuthorizer(),
        metrics=WebhookMetrics(CollectorRegistry()),
    )
    mutating, validating = (
        MutatingWebhooks(source, webhook_dependencies),
        ValidatingWebhooks(source, webhook_dependencies),
    )
    request, times = update_request(), []
    for _ in range(_WRITES):
        started = time.perf_counter()
        await mutating.admit(request)
        await validating.validate(request)
        times.append((time.perf_counter() - started) * 1e6)
    spread = statistics.quantiles(times, n=100)
    print(f"ten webhooks of each kind, none called: median {spread[49]:.0f} us, p99 {spread[98]:.0f} us a write")


if __name__ == "__main__":
    parse_no_options("python -m benchmarks.features.webhooks", __doc__)
    run(main())

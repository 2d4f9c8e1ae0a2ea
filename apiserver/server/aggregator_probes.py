"""The time of the aggregator's last probe: while an APIService leads here, each kube-apiserver asks for the discovery
document of its group version, and again at least every half minute.

An APIService that leads elsewhere ends that, whoever has changed it, and no right on APIServices is needed to notice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge

from apiserver.request.context import RequestContext

AGGREGATOR = "system:kube-aggregator"
"""The user of the probes (kube-aggregator, remote_available_controller.go), whom only a front proxy can name."""
_GROUP_VERSION = re.compile(r"/apis/(?P<group>[^/]+)/(?P<version>[^/]+)/?")


class AggregatorProbes:
    """A responder that answers nothing. A group version has no series before its first probe."""

    def __init__(
        self, registry: CollectorRegistry, served: Callable[[], list[str]], *, clock: Callable[[], float] = time.time
    ) -> None:
        """`served` returns the paths of discovery: others are no probes."""
        self._served = served
        self._clock = clock
        self._last = Gauge(
            "apiserver_aggregator_probe_timestamp_seconds",
            "When an aggregator last probed the group version, in seconds of the epoch.",
            ["group", "version"],
            registry=registry,
        )

    async def respond(self, context: RequestContext) -> web.Response | None:
        """Returns None."""
        path = context.info.path
        if context.user.name != AGGREGATOR or path.removesuffix("/") not in self._served():
            return None
        if found := _GROUP_VERSION.fullmatch(path):
            self._last.labels(found["group"], found["version"]).set(self._clock())
        return None

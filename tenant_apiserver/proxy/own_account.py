"""The user name by which the cluster knows the proxy."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from apiserver.meta.errors import StatusError
from registry.cluster.interface import ClusterClient, reason_for_log

_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_RETRY_SECONDS = 2.0
MALFORMED: Final = (LookupError, TypeError, AttributeError, ValueError)
"""The errors of reading a document that has another form than it should."""
_logger = logging.getLogger("tenant_apiserver")


class OwnAccount:
    """`name` is empty until the cluster has answered."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self.name = ""
        self.known = asyncio.Event()

    def check(self) -> None:
        """A health check: requests are refused until the name is known."""
        if not self.name:
            raise RuntimeError("the cluster has not said yet which account the proxy has")

    async def find(self) -> None:
        """Asks until the cluster answers."""
        while not self.name:
            try:
                review = await self._cluster.review(_PATH, _REVIEW)
                self.name = str(review["status"]["userInfo"]["username"])
                self.known.set()
            except (StatusError, *MALFORMED) as error:
                reason = reason_for_log(error) if isinstance(error, StatusError) else "its answer names no user"
                _logger.warning("cannot ask the cluster for the own account, trying again: %s", reason)
                await asyncio.sleep(_RETRY_SECONDS)

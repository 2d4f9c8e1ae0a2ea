"""Logs that the connection to the cluster is lost once, instead of once for each kind that is watched over it."""

from __future__ import annotations

import asyncio
import logging

_logger = logging.getLogger(__name__)
# One kind whose watch fails for long must not hide that the others are lost, too.
_AGAIN_SECONDS = 300.0


class OutageLog:
    """Shared by the informers of a client. An outage is logged when the first of them loses the connection, and its end
    when all have it again."""

    def __init__(self) -> None:
        self._lost: set[object] = set()
        self._seen: set[object] = set()
        self._logged_at = 0.0

    def lost(self, informer: object, message: str) -> None:
        """Logs the message, as a warning only if none has been logged for this outage in the last five minutes."""
        if informer in self._lost:
            return
        now = asyncio.get_running_loop().time()
        is_news = not self._lost or now >= self._logged_at + _AGAIN_SECONDS
        _logger.log(logging.WARNING if is_news else logging.DEBUG, "%s", message)
        if is_news:
            self._logged_at = now
        self._lost.add(informer)
        self._seen.add(informer)

    def answered(self, informer: object) -> None:
        """The cluster has answered this informer again."""
        if informer in self._lost and len(self._lost) == 1:
            _logger.info("kube-apiserver answers again: %d informers go on, or list what they missed", len(self._seen))
        self.forget(informer)

    def forget(self, informer: object) -> None:
        """The informer has ended."""
        self._lost.discard(informer)
        if not self._lost:
            self._seen.clear()

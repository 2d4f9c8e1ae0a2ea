"""Logs why a resource cannot be watched: each kind of error once, until it can be watched again."""

from __future__ import annotations

import asyncio
import logging
import math

from apiserver.meta.errors import StatusError
from registry.cluster.interface import FORBIDDEN, ClusterUnreachable, reason_for_log
from registry.cluster.outage_log import OutageLog

_logger = logging.getLogger(__name__)
# A kube-apiserver that has just started refuses what it allows once it has read RBAC and the CRDs.
LASTING_SECONDS = 10.0
# In which a kube-apiserver that has restarted no longer has the versions of before.
_RESUMING_SECONDS = 60.0


class FailureLog:
    """The log of one informer. An error that follows another one is logged once it has lasted for ten seconds."""

    def __init__(self, plural: str, outages: OutageLog) -> None:
        self._plural = plural
        self._outages = outages
        self._kind: object = None
        self._due = 0.0
        self._logged = False
        self._recovered_at = -math.inf

    def failed(self, error: StatusError, *, if_forbidden: str = "") -> None:
        """Logs the error, or `if_forbidden`, unless it is of the same kind as the last one that was logged."""
        kind, now = _kind(error), asyncio.get_running_loop().time()
        if kind != self._kind:
            self._due = now if self._kind is None else now + LASTING_SECONDS
            self._kind, self._logged = kind, False
        message = f"informer of {self._plural}: the watch failed: {reason_for_log(error)}"
        if kind is ClusterUnreachable:
            self._outages.lost(self, message)
        elif not self._logged and now >= self._due:
            self._logged = True
            self._outages.answered(self)
            if error.code == FORBIDDEN and if_forbidden:
                _logger.info("%s", if_forbidden)
            else:
                _logger.warning("%s", message)

    def lists_again(self, version: int) -> None:
        """Logs that a version is gone; after an outage, only for debugging."""
        is_usual = asyncio.get_running_loop().time() < self._recovered_at + _RESUMING_SECONDS
        level = logging.DEBUG if is_usual else logging.INFO
        _logger.log(level, "informer of %s: version %d is not available, listing again", self._plural, version)

    def recovered(self) -> None:
        self._kind, self._recovered_at = None, asyncio.get_running_loop().time()
        self._outages.answered(self)

    def ended(self) -> None:
        self._outages.forget(self)


def _kind(error: StatusError) -> object:
    """Errors of one kind have the same remedy."""
    return type(error) if isinstance(error, ClusterUnreachable) else error.code

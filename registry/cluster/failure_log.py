"""Logs why a resource cannot be watched: each kind of error once, until it can be watched again."""

from __future__ import annotations

import asyncio
import logging

from apiserver.meta.errors import StatusError
from registry.cluster.interface import FORBIDDEN, ClusterUnreachable, reason_for_log

_logger = logging.getLogger(__name__)
# A kube-apiserver that has just started refuses what it allows once it has read RBAC and the CRDs.
_LASTING_SECONDS = 10.0


class FailureLog:
    """The log of one informer. An error that follows another one is logged once it has lasted for ten seconds."""

    def __init__(self, plural: str) -> None:
        self._plural = plural
        self._kind: object = None
        self._due = 0.0
        self._logged = False

    def failed(self, error: StatusError, *, if_forbidden: str = "") -> None:
        """Logs the error, or `if_forbidden`, unless it is of the same kind as the last one that was logged."""
        kind, now = _kind(error), asyncio.get_running_loop().time()
        if kind != self._kind:
            self._due = now if self._kind is None else now + _LASTING_SECONDS
            self._kind, self._logged = kind, False
        if self._logged or now < self._due:
            return
        self._logged = True
        if error.code == FORBIDDEN and if_forbidden:
            _logger.info("%s", if_forbidden)
        else:
            _logger.warning("informer of %s: the watch failed: %s", self._plural, reason_for_log(error))

    def recovered(self) -> None:
        self._kind = None


def _kind(error: StatusError) -> object:
    """Errors of one kind have the same remedy."""
    return type(error) if isinstance(error, ClusterUnreachable) else error.code

"""Undoes writes that another replica has excluded in the meantime."""

from __future__ import annotations

import logging

from admission.tenant.claims.claim import ProposedWrite
from admission.tenant.claims.metrics import ClaimMetrics
from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.application.release_backend import ReleaseBackend
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.names import release_name
from registry.tenant.convert_errors import TENANTS
from registry.tenant.summary import summarize

_ATTEMPTS = 8
_logger = logging.getLogger(__name__)


class Withdrawal:
    def __init__(self, *, cluster: ClusterClient, backend: ReleaseBackend, metrics: ClaimMetrics) -> None:
        self._cluster = cluster
        self._backend = backend
        self._metrics = metrics

    async def undo(self, write: ProposedWrite, stored: Object) -> int:
        """Deletes a created Tenant, or sets its host and quotas back, and returns the resourceVersion of the latter, 0
        if nothing was set back. Raises ServiceUnavailable if the result is not known."""
        self._metrics.withdrawal()
        _logger.info("withdrawing the %s of tenant %s/%s", "creation" if write.creates else "update", *write.key)
        try:
            if write.creates:
                await self._delete(write, stored["metadata"]["uid"])
                return 0
            return await self._set_back(write)
        except StatusError as e:
            _logger.warning("tenant %s/%s, which another one excludes, cannot be withdrawn: %s", *write.key, e)
            raise errors.ServiceUnavailable("the result of the write is not known", retry_after=1) from e

    async def _delete(self, write: ProposedWrite, uid: str) -> None:
        namespace, name = write.key.namespace, release_name(write.key.name)
        try:
            await self._cluster.delete(HELMRELEASES, namespace, name, options={"preconditions": {"uid": uid}})
        except StatusError as e:
            # another client has deleted it, and perhaps created a new one
            if e.code not in (404, 409):
                raise

    async def _set_back(self, write: ProposedWrite) -> int:
        assert write.old is not None
        for _ in range(_ATTEMPTS):
            current = await self._backend.read(write.key, live=True)
            if current is None or current["metadata"]["uid"] != write.old.uid:
                return 0
            found, undone = summarize(current, write.key), dict[str, object]()
            # a field that another client has changed since then is not reverted, and no default is stored
            if found.host == write.new.host:
                undone["host"] = write.old.host or None
            if found.quotas == write.new.quotas:
                undone["resourceQuotas"] = dict(write.old.quotas) or None
            if not undone:
                return 0
            restored = deep_copy(current)
            spec = {**restored["spec"], **undone}
            restored["spec"] = {field: value for field, value in spec.items() if field not in undone or value}
            try:
                stored = await self._backend.update(write.key, restored, current, dry_run=False)
            except errors.Conflict:
                # the controllers write the status
                continue
            return int(stored["metadata"]["resourceVersion"])
        raise errors.Conflict(TENANTS, write.key.name)

"""Observes which of the ClusterRoles that we bind exist. A binding to a missing role grants nothing, and every rejected
request of a tenant's people then ends in "not found" instead of a reason."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from registry.cluster.event_handlers import SyncingHandler

ACCESS_READY = "AccessReady"
ROLE_MISSING = "ClusterRoleMissing"

_logger = logging.getLogger(__name__)


class BoundRoles(SyncingHandler):
    """A handler of the informer of ClusterRoles. `on_change` is called when one of `names` is found to be missing, and
    when it is back."""

    def __init__(self, names: Sequence[str], *, on_change: Callable[[], None]) -> None:
        self._names = tuple(names)
        self._present: set[str] = set()
        self._listed = False
        self._on_change = on_change

    @property
    def missing(self) -> Sequence[str]:
        """Empty until the roles have been listed."""
        return [name for name in self._names if name not in self._present] if self._listed else []

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        before, self._listed = self.missing, False
        await super().replace(items, rv)
        self._listed = True
        if before != self.missing:
            self._report()

    def _known_keys(self) -> Iterable[Key]:
        return (Key("", name) for name in self._present)

    def _sync(self, key: Key, obj: Object | None) -> None:
        if key.name not in self._names or (key.name in self._present) == (obj is not None):
            return
        if obj is not None:
            self._present.add(key.name)
        else:
            self._present.discard(key.name)
        if self._listed:
            self._report()

    def _report(self) -> None:
        if missing := self.missing:
            _logger.warning("missing in the cluster: %s", describe_missing(missing))
        self._on_change()


def missing_role_findings(missing: Sequence[str]) -> Sequence[Finding]:
    return [Finding(ACCESS_READY, "False", ROLE_MISSING, describe_missing(missing))] if missing else []


def describe_missing(names: Sequence[str]) -> str:
    """The remedy included: those who read it are the administrators of the cluster."""
    one = len(names) == 1
    return (
        f"the ClusterRole{'' if one else 's'} {', '.join(names)}, to which the tenants' people are bound, "
        f"{'does' if one else 'do'} not exist; apply manifests/overlays/cozy-tenant-roles"
    )

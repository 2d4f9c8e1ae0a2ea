"""Every Namespace has a ServiceAccount `default`, as on a cluster: what runs without naming an account runs as it."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.meta import errors
from apiserver.meta.resource import Key
from registry.embedded.auth.secret_tokens import SERVICEACCOUNTS
from registry.embedded.worker import Worker
from registry.sqlite.backend import NAMESPACES, SqliteBackend
from registry.sqlite.database import Change, Database

DEFAULT = "default"


class DefaultServiceAccountController:
    def __init__(self, *, database: Database, backends: Mapping[str, SqliteBackend]) -> None:
        self._database = database
        self._namespaces = backends[NAMESPACES]
        self._accounts = backends[SERVICEACCOUNTS]
        self._worker: Worker[str] = Worker("default service accounts", self._process)

    def load(self) -> None:
        """Look at what is stored, and follow what happens from then on."""
        for cached in self._namespaces.cache:
            self._worker.add(cached.key.name)
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    async def join(self) -> None:
        """Until everything known so far is dealt with."""
        await self._worker.join()

    def _on_change(self, change: Change) -> None:
        key = change.place.key
        if change.place.resource == NAMESPACES and change.type == "ADDED":
            self._worker.add(key.name)
        elif change.place.resource == SERVICEACCOUNTS and change.type == "DELETED" and key.name == DEFAULT:
            self._worker.add(key.namespace)

    async def _process(self, name: str) -> None:
        namespace = await self._namespaces.read(Key("", name), live=True)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        try:
            await self._accounts.create({"metadata": {"name": DEFAULT, "namespace": name}}, dry_run=False)
        except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
            # it is there, or the Namespace is on its way out
            return

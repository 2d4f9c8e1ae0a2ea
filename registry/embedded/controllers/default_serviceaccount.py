"""Creates the ServiceAccount `default` in every Namespace: pods that name no account run as it."""

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
        """Queues all stored Namespaces and subscribes to changes."""
        for cached in self._namespaces.cache:
            self._worker.add(cached.key.name)
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    async def join(self) -> None:
        """Waits until every queued Namespace has been processed."""
        await self._worker.join()

    def _on_change(self, change: Change) -> None:
        key = change.target.key
        if change.target.resource == NAMESPACES and change.type == "ADDED":
            self._worker.add(key.name)
        elif change.target.resource == SERVICEACCOUNTS and change.type == "DELETED" and key.name == DEFAULT:
            self._worker.add(key.namespace)

    async def _process(self, name: str) -> None:
        namespace = await self._namespaces.read(Key("", name), live=True)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return
        try:
            await self._accounts.create({"metadata": {"name": DEFAULT, "namespace": name}}, dry_run=False)
        except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
            # the account exists already, or the Namespace is being deleted
            return

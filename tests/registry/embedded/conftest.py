"""The embedded host's kinds, ready for use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from registry.embedded.api_groups import serve_kinds
from registry.rbac.role_index import RoleIndex
from registry.sqlite.database import Database
from tests.registry.embedded.embedded_storages import Kinds


@pytest.fixture
async def kinds(tmp_path: Path) -> AsyncIterator[Kinds]:
    """All kinds, with a Namespace `ns`."""
    database = Database(tmp_path / "host.db")
    await database.open()
    kinds = Kinds(database, serve_kinds(database), RoleIndex())
    for each in kinds.served:
        await each.backend.load()
    await kinds.create("namespaces", {"metadata": {"name": "ns"}})
    yield kinds
    await database.close()

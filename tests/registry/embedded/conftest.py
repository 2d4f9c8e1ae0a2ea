"""The API of the embedded cluster over a database in a temporary directory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from admission.cel.schema_rules import SchemaRuleCompiler
from admission.policy.expression_errors import expression_errors
from registry.embedded.api_groups import build_served_versions
from registry.rbac.role_index import RoleIndex
from registry.sqlite.database import Database
from tests.registry.embedded.embedded_storages import EmbeddedApi


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[EmbeddedApi]:
    """All kinds, with a Namespace `ns`."""
    database = Database(tmp_path / "cluster.db")
    await database.open()
    api = EmbeddedApi(database, build_served_versions(database, SchemaRuleCompiler(), expression_errors), RoleIndex())
    for each in api.served:
        await each.backend.load()
    await api.serve_shipped_kinds()
    await api.create("namespaces", {"metadata": {"name": "ns"}})
    yield api
    await database.close()

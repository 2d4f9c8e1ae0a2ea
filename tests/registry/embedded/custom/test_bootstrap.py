"""Every start creates the definitions that this release ships, and replaces unchanged ones of an earlier release."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from admission.cel.schema_rules import SchemaRuleCompiler
from admission.policy.expression_errors import expression_errors
from apiserver.meta.resource import Key
from registry.embedded.api_groups import build_served_versions, primary_backends
from registry.embedded.custom import shipped
from registry.embedded.custom.bootstrap import SHIPPED_SPEC, bootstrap_definitions
from registry.embedded.custom.conditions import is_true
from registry.embedded.custom.definition_kind import DEFINITIONS
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Database
from registry.tenantgateway.types import tenantgateway_crd
from tests.registry.embedded.custom.definitions import version, widgets

WIDGETS = Key("", "widgets.example.com")


@pytest.fixture
async def definitions(tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    """The stored definitions of a new cluster: none."""
    database = Database(tmp_path / "cluster.db")
    await database.open()
    backend = primary_backends(build_served_versions(database, SchemaRuleCompiler(), expression_errors))[DEFINITIONS]
    await backend.load()
    yield backend
    await database.close()


class Release:
    """A release of the server that ships these definitions besides TenantGateways."""

    def __init__(self, definitions: SqliteBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        self._definitions = definitions
        self._monkeypatch = monkeypatch

    async def start(self, *crds: dict[str, Any]) -> None:
        self._monkeypatch.setattr(shipped, "definitions", lambda: crds)
        await bootstrap_definitions(self._definitions)

    async def stored(self, key: Key = WIDGETS) -> dict[str, Any]:
        found = await self._definitions.read(key, live=True)
        assert found is not None
        return found

    async def edit(self, **changes: Any) -> None:
        current = await self.stored()
        await self._definitions.update(WIDGETS, {**current, **changes}, current, dry_run=False)


@pytest.fixture
def release(definitions: SqliteBackend, monkeypatch: pytest.MonkeyPatch) -> Release:
    return Release(definitions, monkeypatch)


NEWER = widgets(version(), version("v2"))


async def test_a_new_cluster_has_the_definitions_of_other_projects_and_tenantgateways(
    definitions: SqliteBackend,
) -> None:
    await bootstrap_definitions(definitions)
    stored = [cached.object() for cached in definitions.cache]
    names = {each["metadata"]["name"] for each in stored}
    assert {"helmreleases.helm.toolkit.fluxcd.io", "httproutes.gateway.networking.k8s.io"} < names
    assert {"certificates.cert-manager.io", "workloadmonitors.cozystack.io"} < names
    assert tenantgateway_crd()["metadata"]["name"] in names
    assert all(is_true(each, "Established") for each in stored)
    assert all(each["metadata"]["annotations"][SHIPPED_SPEC] for each in stored)
    assert all(each["status"]["storedVersions"] for each in stored)


async def test_another_start_of_the_same_release_writes_nothing(release: Release) -> None:
    await release.start(widgets())
    before = await release.stored()
    await release.start(widgets())
    assert await release.stored() == before


async def test_a_newer_definition_replaces_an_unchanged_one(release: Release) -> None:
    await release.start(widgets())
    before = await release.stored()
    await release.start(NEWER)
    after = await release.stored()
    assert [each["name"] for each in after["spec"]["versions"]] == ["v1", "v2"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["metadata"]["annotations"][SHIPPED_SPEC] != before["metadata"]["annotations"][SHIPPED_SPEC]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_versions_that_were_stored_before_stay_stored_versions(release: Release) -> None:
    await release.start(widgets())
    await release.start(widgets(version("v2"), version()))
    assert (await release.stored())["status"]["storedVersions"] == ["v1", "v2"]


async def test_an_order_of_keys_that_kubectl_changed_is_no_change(release: Release) -> None:
    await release.start(widgets())
    spec = (await release.stored())["spec"]
    await release.edit(spec=dict(reversed(spec.items())))
    await release.start(NEWER)
    assert len((await release.stored())["spec"]["versions"]) == 2


@pytest.mark.parametrize("annotated", [True, False], ids=["of an earlier release", "created by a user"])
async def test_a_definition_that_a_user_has_written_is_not_replaced(release: Release, annotated: bool) -> None:
    await release.start(widgets())
    current = await release.stored()
    if annotated:
        await release.edit(spec={**current["spec"], "scope": "Cluster"})
    else:
        await release.edit(metadata={**current["metadata"], "annotations": {}})
    before = await release.stored()
    await release.start(NEWER)
    assert await release.stored() == before


async def test_annotations_of_users_survive_a_replacement(release: Release) -> None:
    await release.start(widgets())
    metadata = (await release.stored())["metadata"]
    await release.edit(metadata={**metadata, "annotations": {**metadata["annotations"], "team": "a"}})
    await release.start(NEWER)
    assert (await release.stored())["metadata"]["annotations"]["team"] == "a"

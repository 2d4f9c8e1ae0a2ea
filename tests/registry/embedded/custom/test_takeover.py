"""A definition never takes over a kind that the cluster has without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.meta.resource import GroupKind, GroupResource, Key
from apiserver.request.options import DeleteOptions
from registry.application.release_errors import ApplicationNames
from registry.embedded.cluster import EmbeddedCluster
from registry.embedded.custom.definition_kind import GROUP
from registry.embedded.custom.names import NO_NAMES
from tests.registry.embedded.custom.definitions import definition, version
from tests.registry.embedded.embedded_storages import no_admission, request_context
from tests.registry.embedded.test_cluster import RBAC, running, storage

CRDS = "customresourcedefinitions"
KINDS_OF_THE_CLUSTER = [
    pytest.param(RBAC, "clusterroles", "ClusterRole", id="a built-in kind"),
    pytest.param(GROUP, CRDS, "CustomResourceDefinition", id="definitions"),
    pytest.param("apps.cozystack.io", "tenants", "Tenant", id="an aggregated kind"),
    pytest.param("authentication.k8s.io", "tokenreviews", "TokenReview", id="a review"),
    pytest.param(RBAC, "clusterrolls", "ClusterRole", id="the kind with another plural"),
]


class Takeover:
    """A definition of a kind that the cluster has already, in a version that it does not have."""

    def __init__(self, cluster: EmbeddedCluster, group: str, plural: str, kind: str) -> None:
        self._cluster = cluster
        self._name = f"{plural}.{group}"
        self._definition = definition(plural, kind, group=group, versions=[version("v9", storage=True)])
        self._definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}

    @property
    def _storage(self) -> Any:
        return storage(self._cluster.group_versions(self._cluster.authorizer), GROUP, "v1", CRDS)

    async def create(self) -> None:
        crd = {each: self._definition[each] for each in ("metadata", "spec")}
        await self._storage.create(request_context(), crd, no_admission, dry_run=False)

    async def delete(self) -> None:
        await self._storage.delete(request_context(), Key("", self._name), DeleteOptions(), no_admission)
        await until(lambda: self._stored is None)

    async def until_established(self, status: str) -> None:
        await until(lambda: self._established == status)

    @property
    def is_served(self) -> bool:
        return any(each.version == "v9" for each in self._cluster.group_versions(self._cluster.authorizer))

    @property
    def _stored(self) -> dict[str, Any] | None:
        cache = next(each for each in self._cluster.caches if each.resource.plural == CRDS)
        found = cache.peek(Key("", self._name))
        return None if found is None else found.object()

    @property
    def _established(self) -> str:
        conditions = ((self._stored or {}).get("status") or {}).get("conditions") or ()
        return next((each["status"] for each in conditions if each["type"] == "Established"), "")

    def others(self) -> set[tuple[str, str]]:
        """The kinds and names of all other objects."""
        found = {(cache.resource.kind, cached.key.name) for cache in self._cluster.caches for cached in cache}
        return found - {("CustomResourceDefinition", self._name)}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("group", "plural", "kind"), KINDS_OF_THE_CLUSTER)
async def test_a_definition_never_takes_over_a_kind_of_the_cluster(
    tmp_path: Path, group: str, plural: str, kind: str
) -> None:
    async with running(tmp_path / "cluster.db") as cluster:
        takeover = Takeover(cluster, group, plural, kind)
        before = takeover.others()
        await takeover.create()
        await takeover.until_established("False")
        assert not takeover.is_served
        await takeover.delete()
        assert before <= takeover.others()


@pytest.mark.parametrize(("group", "plural", "kind"), KINDS_OF_THE_CLUSTER)
async def test_a_takeover_that_an_earlier_release_accepted_ends_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, plural: str, kind: str
) -> None:
    path = tmp_path / "cluster.db"
    with monkeypatch.context() as earlier:
        earlier.setattr("registry.embedded.cluster.BuiltInNames.of", lambda served: NO_NAMES)
        async with running(path) as cluster:
            takeover = Takeover(cluster, group, plural, kind)
            before = takeover.others()
            await takeover.create()
            await until(lambda: takeover.is_served)
    async with running(path) as cluster:
        takeover = Takeover(cluster, group, plural, kind)
        assert not takeover.is_served
        await takeover.until_established("False")
        await takeover.delete()
        assert before <= takeover.others()


async def test_the_names_of_an_application_are_free_once_nothing_describes_it(tmp_path: Path) -> None:
    group = "apps.cozystack.io"
    names = ApplicationNames(GroupResource(group, "boxes"), GroupKind(group, "Box"), "box-")
    async with running(tmp_path / "cluster.db") as cluster:
        cluster.own_by_releases([names])
        takeover = Takeover(cluster, group, "boxes", "Box")
        await takeover.create()
        await takeover.until_established("False")
        cluster.own_by_releases([])
        await takeover.until_established("True")
        assert takeover.is_served

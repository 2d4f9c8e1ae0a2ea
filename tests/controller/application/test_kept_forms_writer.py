"""The leader keeps the forms of kinds that are in force in a ConfigMap, which every replica reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from controller.application.kept_forms_writer import KeptFormsReader, KeptFormsReconciler
from registry.application.definition import ApplicationDefinition
from registry.application.kept_forms import NAME, read_sources
from tests.registry.application.applications import definition

KEY = Key("cozy-system", NAME)
REDIS, OTHER = definition(), definition(name="other", kind="Other", plural="others", prefix="other-")


class ConfigMapWriter:
    """A ClusterWriter whose writes the reader sees at once."""

    def __init__(self, reader: KeptFormsReader) -> None:
        self._reader = reader
        self.writes: list[str] = []

    async def create(self, res: Any, desired: Object) -> Object:
        self.writes.append("create")
        stored = {**desired, "metadata": {**desired["metadata"], "resourceVersion": "1"}}
        self._reader.apply("ADDED", stored, 1)
        return stored

    async def patch(self, res: Any, observed: Object, changes: Object) -> Object:
        self.writes.append("patch")
        data = {**observed["binaryData"], **changes["binaryData"]}
        stored = {**observed, "binaryData": {key: value for key, value in data.items() if value is not None}}
        self._reader.apply("MODIFIED", stored, 2)
        return stored


class KeptFormsWorld:
    def __init__(self) -> None:
        self.reader = KeptFormsReader()
        self.writer = ConfigMapWriter(self.reader)
        self.forms: Mapping[str, ApplicationDefinition] | None = None
        self.now = 0.0
        self.delays: list[float] = []
        self._reconciler = KeptFormsReconciler(
            writer=cast(Any, self.writer),
            reader=self.reader,
            forms=lambda: self.forms,
            later=self.delays.append,
            clock=lambda: self.now,
        )

    async def reconcile(self, **forms: ApplicationDefinition) -> None:
        self.forms = forms
        await self._reconciler.reconcile(KEY)
        await self._reconciler.reconcile(KEY)


async def test_the_forms_in_force_are_written_once() -> None:
    world = KeptFormsWorld()
    await world.reader.replace([], 0)
    await world.reconcile(redis=REDIS, other=OTHER)
    await world.reconcile(redis=REDIS)
    await world.reconcile(redis=REDIS)
    assert world.writer.writes == ["create", "patch"]
    taken = world.reader.take()
    assert taken is not None
    assert dict(read_sources(taken)) == {"redis": REDIS.source}
    assert world.reader.take() is None


async def test_a_configmap_without_a_form_is_not_created() -> None:
    """Kubernetes would record no field manager of it, nor of the forms that are added later."""
    world = KeptFormsWorld()
    await world.reader.replace([], 0)
    await world.reconcile()
    assert world.writer.writes == []
    await world.reconcile(redis=REDIS)
    await world.reconcile()
    assert world.writer.writes == ["create", "patch"]


async def test_nothing_is_written_before_the_forms_and_the_configmap_are_known() -> None:
    world = KeptFormsWorld()
    world.reader.set_cluster_error(errors.ServiceUnavailable("down"))
    await world.reconcile(redis=REDIS)
    await world.reader.replace([], 0)
    world.forms = None
    await world._reconciler.reconcile(KEY)
    assert world.writer.writes == []


async def test_a_configmap_that_cannot_be_read_delays_no_kind(caplog: pytest.LogCaptureFixture) -> None:
    world = KeptFormsWorld()
    assert not world.reader.settled.is_set()
    world.reader.set_cluster_error(errors.ServiceUnavailable("down"))
    assert world.reader.settled.is_set()
    assert f"ConfigMap {NAME} cannot be read" in caplog.text


async def test_a_deleted_configmap_is_written_again() -> None:
    world = KeptFormsWorld()
    await world.reader.replace([], 0)
    await world.reconcile(redis=REDIS)
    stored = world.reader.observed
    assert stored is not None
    assert dict(read_sources(stored)) == {"redis": REDIS.source}
    world.reader.apply("DELETED", stored, 2)
    await world.reconcile(redis=REDIS)
    assert world.reader.observed == stored


async def test_two_writers_do_not_fight_for_the_configmap(caplog: pytest.LogCaptureFixture) -> None:
    """Leaders of two versions can be different replicas, and each stores what it has decided."""
    world = KeptFormsWorld()
    await world.reader.replace([], 0)
    await world.reconcile(redis=REDIS)
    for _ in range(600):
        world.now += 1.0
        stored = world.reader.observed
        assert stored is not None
        world.reader.apply("MODIFIED", {**stored, "binaryData": {"redis": "theirs"}}, 3)
        await world.reconcile(redis=REDIS)
    assert 8 <= len(world.writer.writes) <= 14
    assert all(0 < each <= 256 for each in world.delays)
    assert caplog.text.count("another client undoes each write") == 1
    # a decision of its own does not wait
    count = len(world.writer.writes)
    await world.reconcile(redis=REDIS, other=OTHER)
    assert len(world.writer.writes) == count + 1


async def test_after_a_calm_the_first_change_of_others_is_undone_at_once() -> None:
    world = KeptFormsWorld()
    await world.reader.replace([], 0)
    await world.reconcile(redis=REDIS)
    for _ in range(3):
        world.now += 1000.0
        stored = world.reader.observed
        assert stored is not None
        world.reader.apply("DELETED", stored, 3)
        await world.reconcile(redis=REDIS)
    assert world.writer.writes == ["create"] * 4

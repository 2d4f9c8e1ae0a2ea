"""Writes send only what differs, and only for the observed state of objects that are ours."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.runtime.apply import (
    ClusterWriter,
    ControllerOwner,
    ForeignObject,
    covers,
    create_merge_patch,
    merge_owner_references,
    missing_fields,
)
from controller.runtime.freshness import StaleObservation
from controller.runtime.write_gate import LeaseGate, NotLeading, OpenGate
from registry.cluster.interface import CONFIGMAPS
from tests.fake_cluster import FakeCluster

OWNER = ControllerOwner(api_version="v1", kind="Thing", name="mine", uid="u1")


def desired(data: dict[str, Any]) -> Object:
    return {"metadata": {"name": "cm", "namespace": "ns", "ownerReferences": [OWNER.reference()]}, "data": data}


def stored(cluster: FakeCluster) -> Object:
    found = cluster.peek(CONFIGMAPS, "ns", "cm")
    assert found is not None
    return found


@pytest.fixture
def writer(cluster: FakeCluster) -> ClusterWriter:
    return ClusterWriter(cluster=cluster, gate=OpenGate())


async def ensure(writer: ClusterWriter, data: dict[str, Any], observed: Object | None) -> Object:
    return await writer.ensure(CONFIGMAPS, lambda current: desired(data), observed=observed, owner=OWNER)


async def test_a_missing_object_is_created_without_the_fields_that_must_be_absent(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    await ensure(writer, {"a": "1", "b": None}, None)

    created = stored(cluster)
    assert (created["apiVersion"], created["kind"], created["data"]) == ("v1", "ConfigMap", {"a": "1"})
    assert [write.field_manager for write in cluster.writes] == ["tenant-controller"]


async def test_a_second_pass_writes_nothing(cluster: FakeCluster, writer: ClusterWriter) -> None:
    observed = await ensure(writer, {"a": "1", "b": None}, None)
    cluster.clear_writes()

    assert await ensure(writer, {"a": "1", "b": None}, observed) == observed
    assert (cluster.writes, writer.writes) == ([], 1)


async def test_an_object_that_others_change_all_the_time_is_patched_without_its_version(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    observed = await ensure(writer, {"a": "1"}, None)
    await ensure(writer, {"b": "1"}, observed)

    with pytest.raises(errors.Conflict):
        await ensure(writer, {"a": "2"}, observed)
    await writer.ensure(CONFIGMAPS, lambda current: desired({"a": "2"}), observed=observed, owner=OWNER, is_busy=True)

    assert stored(cluster)["data"] == {"a": "2", "b": "1"}


async def test_a_patch_keeps_the_fields_of_others(cluster: FakeCluster, writer: ClusterWriter) -> None:
    foreign = {"name": "cm", "namespace": "ns", "labels": {"theirs": "x"}, "finalizers": ["theirs/f"]}
    reference = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u2"}
    cluster.add(
        CONFIGMAPS,
        {"metadata": {**foreign, "ownerReferences": [reference, OWNER.reference()]}, "data": {"a": "0", "z": "9"}},
    )

    await ensure(writer, {"a": "1"}, stored(cluster))

    after = stored(cluster)
    assert after["data"] == {"a": "1", "z": "9"}
    assert after["metadata"]["labels"] == {"theirs": "x"}
    assert after["metadata"]["finalizers"] == ["theirs/f"]
    assert after["metadata"]["ownerReferences"] == [reference, OWNER.reference()]


async def test_a_foreign_object_is_never_written(cluster: FakeCluster, writer: ClusterWriter) -> None:
    cluster.add(CONFIGMAPS, {"metadata": {"name": "cm", "namespace": "ns"}, "data": {"a": "0"}})

    with pytest.raises(ForeignObject, match="ConfigMap cm exists and is not owned by Thing mine; rename or delete it"):
        await ensure(writer, {"a": "1"}, stored(cluster))

    assert cluster.writes == []


async def test_a_foreign_object_that_the_cache_has_not_seen_is_not_written_either(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    cluster.add(CONFIGMAPS, {"metadata": {"name": "cm", "namespace": "ns"}, "data": {"a": "0"}})

    with pytest.raises(ForeignObject):
        await ensure(writer, {"a": "1"}, None)

    assert stored(cluster)["data"] == {"a": "0"}


async def test_our_own_object_that_the_cache_has_not_seen_is_updated(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    cluster.add(CONFIGMAPS, desired({"a": "0"}))

    await ensure(writer, {"a": "1"}, None)

    assert stored(cluster)["data"] == {"a": "1"}


async def test_a_stale_observation_is_a_conflict(cluster: FakeCluster, writer: ClusterWriter) -> None:
    cluster.add(CONFIGMAPS, desired({"a": "0"}))
    observed = stored(cluster)
    cluster.add(CONFIGMAPS, {**desired({"a": "5"}), "metadata": {**observed["metadata"]}})

    with pytest.raises(StatusError) as raised:
        await ensure(writer, {"a": "1"}, observed)

    assert (raised.value.code, stored(cluster)["data"]) == (409, {"a": "5"})


async def test_nothing_is_sent_for_an_object_that_our_own_last_write_has_changed_since(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    observed = await ensure(writer, {"a": "1"}, None)
    later = await ensure(writer, {"a": "2"}, observed)

    for write in (
        ensure(writer, {"a": "3"}, observed),
        writer.write_status(CONFIGMAPS, observed, {"a": "3"}),
        writer.delete(CONFIGMAPS, observed),
    ):
        with pytest.raises(StaleObservation):
            await write
    assert (writer.writes, stored(cluster)["data"]) == (2, {"a": "2"})

    await ensure(writer, {"a": "3"}, later)
    assert stored(cluster)["data"] == {"a": "3"}


async def test_nothing_is_written_through_a_closed_gate(cluster: FakeCluster) -> None:
    writer = ClusterWriter(cluster=cluster, gate=LeaseGate())
    cluster.add(CONFIGMAPS, desired({"a": "0"}))

    for write in (
        writer.create(CONFIGMAPS, desired({})),
        writer.patch(CONFIGMAPS, stored(cluster), {}),
        writer.delete(CONFIGMAPS, stored(cluster)),
    ):
        with pytest.raises(NotLeading):
            await write
    assert (cluster.writes, writer.writes) == ([], 0)


async def test_only_the_observed_state_is_deleted(cluster: FakeCluster, writer: ClusterWriter) -> None:
    cluster.add(CONFIGMAPS, desired({"a": "0"}))
    observed = stored(cluster)
    await ensure(writer, {"a": "1"}, observed)

    with pytest.raises(StatusError) as raised:
        await writer.delete(CONFIGMAPS, observed)
    assert raised.value.code == 409

    await writer.delete(CONFIGMAPS, stored(cluster))
    assert cluster.peek(CONFIGMAPS, "ns", "cm") is None


async def test_an_object_that_we_have_deleted_is_not_deleted_again_while_finalizers_block_it(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    cluster.add(CONFIGMAPS, {**desired({}), "metadata": {**desired({})["metadata"], "finalizers": ["theirs/f"]}})
    observed = stored(cluster)
    await writer.delete(CONFIGMAPS, observed)

    with pytest.raises(StaleObservation):
        await writer.delete(CONFIGMAPS, observed)
    assert writer.writes == 1


async def test_deleting_a_missing_object_succeeds(cluster: FakeCluster, writer: ClusterWriter) -> None:
    cluster.add(CONFIGMAPS, desired({}))
    observed = stored(cluster)
    await writer.delete(CONFIGMAPS, observed)

    await writer.delete(CONFIGMAPS, observed)


@pytest.mark.parametrize(
    ("current", "desired", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing differs"),
        pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"x": 3}}, {"a": {"x": 3}}, id="only what differs"),
        pytest.param({}, {"a": {"x": 1, "y": None}}, {"a": {"x": 1}}, id="a new map without nulls"),
        pytest.param({"a": {"x": 1}}, {"a": {"x": None, "z": None}}, {"a": {"x": None}}, id="a field to remove"),
        pytest.param({}, {"a": {"x": None}}, {}, id="no map of nulls only"),
        pytest.param({}, {"a": {}}, {"a": {}}, id="an empty map is a value"),
        pytest.param(
            {"a": [{"x": 1, "y": 2}]},
            {"a": [{"x": 1, "y": None}]},
            {"a": [{"x": 1}]},
            id="nulls in list items",
        ),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, {"a": [2, 1]}, id="lists are replaced"),
        pytest.param({"a": [{"x": 1, "defaulted": True}]}, {"a": [{"x": 1}]}, {}, id="defaults in items"),
        pytest.param({"a": "1"}, {"a": 1}, {"a": 1}, id="types differ"),
        pytest.param({"a": True}, {"a": 1}, {"a": 1}, id="true is not 1"),
        pytest.param({"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}, id="a map in place of a value"),
    ],
)
def test_only_differences_are_in_the_patch(current: Object, desired: Object, expected: Object) -> None:
    assert create_merge_patch(current, desired) == expected


def test_an_absent_field_covers_none_only() -> None:
    assert covers({}, {"a": None})
    assert not covers({}, {"a": {}})


def test_a_reference_to_a_former_owner_of_the_same_name_is_replaced() -> None:
    former = {"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "old"}
    other = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "other"}
    new = {"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "new"}

    assert merge_owner_references([former, other], [new]) == [other, new]


def test_an_existing_reference_keeps_its_fields() -> None:
    present = {"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "u", "blockOwnerDeletion": True}

    assert merge_owner_references([present], [{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "u"}]) == [
        present
    ]


def test_an_object_has_one_controller() -> None:
    """kube-apiserver rejects a second one."""
    other = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "other", "controller": True}
    new = {"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "new", "controller": True}

    assert merge_owner_references([other], [new]) == [other, {**new, "controller": False}]
    assert merge_owner_references([{**new, "uid": "old"}], [new]) == [new]


def test_a_reference_of_an_earlier_version_gets_the_missing_fields() -> None:
    present = {"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "u"}
    new = {**present, "controller": True, "blockOwnerDeletion": True}

    assert merge_owner_references([present], [new]) == [new]


def test_missing_fields_change_no_present_field() -> None:
    desired = {"labels": {"a": "1", "b": "2", "c": None}, "list": [1], "other": "x"}
    current = {"labels": {"a": "9"}, "list": [2]}

    assert missing_fields(desired, current) == {"labels": {"b": "2"}, "other": "x"}


async def test_the_status_of_the_observed_state_is_written_by_its_subresource(
    cluster: FakeCluster, writer: ClusterWriter
) -> None:
    observed = await ensure(writer, {"a": "1"}, None)
    written = await writer.write_status(CONFIGMAPS, observed, {"phase": "good"})
    assert written is not None
    assert (written["status"], written["data"]) == ({"phase": "good"}, {"a": "1"})
    assert cluster.writes[-1].subresource == "status"
    with pytest.raises(StatusError) as raised:
        await writer.write_status(CONFIGMAPS, observed, {"phase": "outdated"})
    assert raised.value.code == 409


async def test_the_status_of_a_missing_object_is_not_written(cluster: FakeCluster, writer: ClusterWriter) -> None:
    observed = await ensure(writer, {"a": "1"}, None)
    await cluster.delete(CONFIGMAPS, "ns", "cm")
    assert await writer.write_status(CONFIGMAPS, observed, {"phase": "late"}) is None

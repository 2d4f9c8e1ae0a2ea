"""Changes that the controllers would make, as users see them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES, SECRETS, ClusterResource
from registry.explain.diff.changes import PlannedChange, ShownChange, diff_status, shown_change, shown_changes

_NAMESPACE: Object = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "tenant-alice", "labels": {"a": "b"}},
}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _created(resource: ClusterResource, name: str) -> PlannedChange:
    return PlannedChange(resource, Key("", name), None, {"metadata": {"name": name}})


async def _found(changes: Sequence[PlannedChange], visible: Sequence[bool]) -> list[tuple[ShownChange, bool]]:
    return list(zip(await shown_changes(changes), visible, strict=True))


async def test_a_change_of_what_nobody_is_shown_is_none() -> None:
    unchanged = PlannedChange(NAMESPACES, Key("", "tenant-alice"), {**_NAMESPACE, "status": {}}, _NAMESPACE)
    created = _created(NAMESPACES, "tenant-bob")
    assert [each.change for each in await shown_changes([unchanged, created])] == [created]


def test_what_only_the_cluster_sets_is_no_difference() -> None:
    observed = {**_NAMESPACE, "metadata": {**_NAMESPACE["metadata"], "uid": "1", "resourceVersion": "2"}, "status": {}}
    assert shown_change(PlannedChange(NAMESPACES, Key("", "tenant-alice"), observed, _NAMESPACE)) is None


@pytest.mark.parametrize(
    ("max_bytes", "shown", "truncated"), [(10_000, ["a", "b"], False), (200, ["a"], True), (20, [], True)]
)
async def test_an_answer_has_a_limited_size(max_bytes: int, shown: list[str], truncated: bool) -> None:
    found = await _found([_created(NAMESPACES, name) for name in ("x", "a", "b")], [False, True, True])
    status = await diff_status(found, ["late"], truncated=False, max_bytes=max_bytes)
    assert [each["object"]["name"] for each in status["changes"]] == shown
    assert (status["hidden"], status["truncated"], status["problems"]) == (1, truncated, ["late"])


@pytest.mark.parametrize(("max_changes", "hidden", "truncated"), [(1, 1, True), (2, 2, True), (3, 2, False)])
async def test_an_answer_has_a_limited_number_of_changes(max_changes: int, hidden: int, truncated: bool) -> None:
    found = await _found([_created(NAMESPACES, name) for name in "abc"], [False, False, True])
    status = await diff_status(found, [], truncated=False, max_changes=max_changes)
    assert (status["hidden"], len(status["changes"]), status["truncated"]) == (hidden, max_changes - hidden, truncated)


@pytest.mark.parametrize("position", [0, 1])
async def test_objects_for_hostnames_of_all_tenants_at_a_gateway_leave_no_trace_if_they_are_hidden(
    position: int,
) -> None:
    """Their number would tell how many hostnames hidden tenants have; so would a place that they take of others."""
    gateway = _created(ClusterResource("gateway.networking.k8s.io", "v1", "gateways", "Gateway"), "cozystack")
    sets = ClusterResource("gateway.networking.k8s.io", "v1", "listenersets", "ListenerSet")
    certificates = ClusterResource("cert-manager.io", "v1", "certificates", "Certificate")
    many = [_created(sets, "s"), *(_created(certificates, f"c{number}") for number in range(70))]
    answers = []
    for each in ([], many):
        changes, visible = each[:], [False] * len(each)
        changes[position * len(each) :] = [gateway, _created(NAMESPACES, "n"), *changes[position * len(each) :]]
        visible[position * len(each) :] = [False, True, *visible[position * len(each) :]]
        answers.append(await diff_status(await _found(changes, visible), [], truncated=False, max_changes=2))
    assert answers[0] == answers[1]
    assert (answers[0]["hidden"], len(answers[0]["changes"]), answers[0]["truncated"]) == (1, 1, False)
    shown = await diff_status(await _found(many, [True] * len(many)), [], truncated=False)
    assert len(shown["changes"]) == len(many)


def test_the_values_of_a_secret_are_masked_and_two_that_differ_are_told_apart() -> None:
    def secret(data: dict[str, str]) -> Object:
        return {"metadata": {"name": "s", "annotations": {_LAST_APPLIED: "hush"}}, "data": data, "stringData": data}

    before, after = (
        secret({"same": "x", "old": "hush", "gone": "hush"}),
        secret({"same": "x", "old": "HUSH", "new": "y"}),
    )
    found = shown_change(PlannedChange(SECRETS, Key("tenant-alice", "s"), before, after))
    assert found is not None
    assert found["before"]["data"] == {"same": "***", "old": "*** (before)", "gone": "***"}
    assert found["after"]["stringData"] == {"same": "***", "old": "*** (after)", "new": "***"}
    for some in (found, shown_change(PlannedChange(SECRETS, Key("a", "s"), None, after))):
        assert "hush" not in str(some).lower()

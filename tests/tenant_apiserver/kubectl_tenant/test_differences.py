"""Answers of `tenants/diff` as unified diffs."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES, SECRETS, ClusterResource
from registry.explain.diff.changes import PlannedChange, PlannedChanges, diff_status, shown_change
from tenant_apiserver.kubectl_tenant.differences import (
    as_stored_before,
    has_differences,
    render_differences,
    render_notes,
)

_NAMESPACE: Object = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "tenant-alice", "labels": {"a": "b"}},
}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_EXPECTED = """\
--- LIVE/v1.Namespace..tenant-alice
+++ PLANNED/v1.Namespace..tenant-alice
@@ -2,5 +2,5 @@
 kind: Namespace
 metadata:
   labels:
-    a: b
+    a: c
   name: tenant-alice
--- LIVE/gateway.cozystack.io.v1alpha1.TenantGateway.tenant-alice.cozystack
+++ PLANNED/gateway.cozystack.io.v1alpha1.TenantGateway.tenant-alice.cozystack
@@ -1,2 +0,0 @@
-metadata:
-  name: cozystack
"""


def _answer(*changes: Object, **status: Any) -> Object:
    return {"kind": "TenantDiff", "status": {"format": 1, "changes": list(changes), "hidden": 0, **status}}


def _change(before: Object | None, after: Object | None) -> Object:
    found = shown_change(PlannedChange(NAMESPACES, Key("", "tenant-alice"), before, after))
    assert found is not None
    return found


def test_each_object_has_a_unified_diff_under_its_name() -> None:
    changed = {**_NAMESPACE, "metadata": {"name": "tenant-alice", "labels": {"a": "c"}}}
    gateway = {
        "object": {
            "apiVersion": "gateway.cozystack.io/v1alpha1",
            "kind": "TenantGateway",
            "namespace": "tenant-alice",
            "name": "cozystack",
        },
        "action": "delete",
        "before": {"metadata": {"name": "cozystack"}},
    }
    answer = _answer(_change(_NAMESPACE, changed), gateway)
    assert render_differences(answer) == _EXPECTED
    assert has_differences(answer)
    painted = render_differences(answer, colour=True)
    assert "\x1b[31m-    a: b\x1b[0m\n\x1b[32m+    a: c\x1b[0m" in painted


def test_nothing_is_printed_where_nothing_differs() -> None:
    assert (render_differences(_answer()), render_notes(_answer()), has_differences(_answer())) == ("", "", False)


@pytest.mark.parametrize(("hidden", "text"), [(1, "1 object that"), (3, "3 objects that")])
def test_hidden_objects_are_counted_and_are_differences(hidden: int, text: str) -> None:
    answer = _answer(hidden=hidden, truncated=True, problems=["no domain"])
    assert has_differences(answer)
    assert render_notes(answer) == (
        f"note: no domain\nnote: {text} you may not see would change, too\n"
        "note: there are more tenants below, or more objects, which were not looked at\n"
    )


def test_what_only_the_cluster_sets_is_no_difference() -> None:
    observed = {**_NAMESPACE, "metadata": {**_NAMESPACE["metadata"], "uid": "1", "resourceVersion": "2"}, "status": {}}
    assert shown_change(PlannedChange(NAMESPACES, Key("", "tenant-alice"), observed, _NAMESPACE)) is None


@pytest.mark.parametrize(
    ("max_bytes", "shown", "truncated"), [(10_000, ["a", "b"], False), (200, ["a"], True), (20, [], True)]
)
async def test_an_answer_has_a_limited_size(max_bytes: int, shown: list[str], truncated: bool) -> None:
    changes = [PlannedChange(NAMESPACES, Key("", name), None, {"metadata": {"name": name}}) for name in ("x", "a", "b")]
    status = await diff_status(PlannedChanges(changes, ["late"]), [False, True, True], max_bytes=max_bytes)
    assert [each["object"]["name"] for each in status["changes"]] == shown
    assert (status["hidden"], status["truncated"], status["problems"]) == (1, truncated, ["late"])


async def test_objects_for_hostnames_of_all_tenants_at_a_gateway_are_not_counted() -> None:
    """Their number would tell how many hostnames hidden tenants have."""

    def deleted(resource: ClusterResource, name: str) -> PlannedChange:
        return PlannedChange(resource, Key("tenant-alice", name), {"metadata": {"name": name}}, None)

    gateway = deleted(ClusterResource("gateway.networking.k8s.io", "v1", "gateways", "Gateway"), "cozystack")
    sets = ClusterResource("gateway.networking.k8s.io", "v1", "listenersets", "ListenerSet")
    certificates = ClusterResource("cert-manager.io", "v1", "certificates", "Certificate")
    many = [deleted(sets, "s"), *(deleted(certificates, f"c{number}") for number in range(70))]
    answers = [
        await diff_status(PlannedChanges([gateway, *each]), [False] * (1 + len(each)), max_bytes=10_000)
        for each in ([], many)
    ]
    assert answers[0] == answers[1]
    assert answers[0]["hidden"] == 1
    shown = await diff_status(PlannedChanges(many), [True] * len(many), max_bytes=100_000)
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


def test_the_annotation_of_apply_is_as_it_was() -> None:
    applied = {"metadata": {"name": "alice", "annotations": {_LAST_APPLIED: "new", "a": "b"}}}
    assert as_stored_before(applied, None)["metadata"]["annotations"] == {"a": "b"}
    stored = {"metadata": {"annotations": {_LAST_APPLIED: "old"}}}
    assert as_stored_before(applied, stored)["metadata"]["annotations"] == {_LAST_APPLIED: "old", "a": "b"}
    assert as_stored_before({"metadata": {"annotations": {_LAST_APPLIED: "new"}}}, {})["metadata"] == {}

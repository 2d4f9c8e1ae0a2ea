"""Answers of `tenants/diff` as unified diffs."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES
from registry.explain.diff.changes import PlannedChange, shown_change
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


def test_the_annotation_of_apply_is_as_it_was() -> None:
    applied = {"metadata": {"name": "alice", "annotations": {_LAST_APPLIED: "new", "a": "b"}}}
    assert as_stored_before(applied, None)["metadata"]["annotations"] == {"a": "b"}
    stored = {"metadata": {"annotations": {_LAST_APPLIED: "old"}}}
    assert as_stored_before(applied, stored)["metadata"]["annotations"] == {_LAST_APPLIED: "old", "a": "b"}
    assert as_stored_before({"metadata": {"annotations": {_LAST_APPLIED: "new"}}}, {})["metadata"] == {}

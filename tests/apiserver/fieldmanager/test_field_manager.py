"""Field ownership and server-side apply."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.fieldmanager.field_manager import FieldManager, managed_fields_error, same_content
from apiserver.meta.errors import ApplyConflict, BadRequest
from apiserver.meta.resource import Object, Resource
from apiserver.patch.json_and_merge import merge_patch
from tests.apiserver.fieldmanager.endpoint import NOW, TENANTS, THEN, TYPE, Endpoint, named


def test_a_create_owns_everything_and_every_container() -> None:
    endpoint = Endpoint()
    created = endpoint.create({"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"host": "h"}})
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Update",
            "apiVersion": "apps.cozystack.io/v1alpha1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {".": {}, "f:etcd": {}, "f:host": {}, "f:resourceQuotas": {}},
            },
        }
    ]


def test_an_apply_owns_leaves_only() -> None:
    endpoint = Endpoint()
    endpoint.apply({"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"ports": [{"port": 1}]}})
    assert json.dumps(endpoint.owned("m1"), separators=(",", ":")) == (
        '{"f:metadata":{"f:labels":{"f:a":{}}},'
        '"f:spec":{"f:ports":{"k:{\\"port\\":1,\\"protocol\\":\\"TCP\\"}":{".":{},"f:port":{}}}}}'
    )


def test_defaults_are_unowned_after_an_apply_and_another_manager_may_set_them() -> None:
    endpoint = Endpoint()
    endpoint.apply(named(spec={"host": "a"}))
    assert endpoint.live["spec"]["etcd"] is False
    endpoint.apply(named(spec={"etcd": True}), "m2")
    assert endpoint.live["spec"]["etcd"] is True


def test_a_conflict_names_manager_version_and_field() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"host": "a"}), "creator")
    with pytest.raises(ApplyConflict) as raised:
        endpoint.apply(named(spec={"host": "b"}))
    assert raised.value.message == (
        'Apply failed with 1 conflict: conflict with "creator" using apps.cozystack.io/v1alpha1: .spec.host'
    )
    assert raised.value.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "creator" using apps.cozystack.io/v1alpha1',
                "field": ".spec.host",
            }
        ]
    }


def test_conflicts_with_several_managers_are_grouped_and_sorted() -> None:
    endpoint = Endpoint()
    endpoint.apply(named(spec={"host": "a", "ports": [{"port": 1, "name": "p"}]}), "b")
    endpoint.apply(named(spec={"etcd": True, "set": ["x"]}), "a")
    with pytest.raises(ApplyConflict) as raised:
        endpoint.apply(named(spec={"host": "z", "etcd": False, "ports": [{"port": 1, "name": "q"}], "set": ["x"]}), "c")
    assert raised.value.message == (
        'Apply failed with 3 conflicts: conflicts with "a":\n- .spec.etcd\n'
        'conflicts with "b":\n- .spec.host\n- .spec.ports[port=1,protocol="TCP"].name'
    )


def test_conflicts_are_counted_where_their_names_would_be_too_long() -> None:
    """ATTACK-19: thousands of fields can have a long path each."""
    endpoint = Endpoint()
    labels = {f"{number}{'k' * 50_000}": "a" for number in range(9)}
    endpoint.apply({"metadata": {"name": "x", "labels": labels}}, "m1")
    with pytest.raises(ApplyConflict, match="Apply failed with 9 conflicts: conflicts with") as raised:
        endpoint.apply({"metadata": {"name": "x", "labels": dict.fromkeys(labels, "b")}}, "m2")
    assert len(raised.value.causes) == 6
    assert raised.value.message.endswith("k\nand 3 more")


def test_a_forced_apply_takes_the_field_over() -> None:
    endpoint = Endpoint()
    endpoint.apply(named(spec={"host": "a", "gateway": True}), "first")
    endpoint.apply(named(spec={"host": "b"}), "second", force=True)
    assert endpoint.live["spec"]["host"] == "b"
    assert endpoint.owned("first") == {"f:spec": {"f:gateway": {}}}
    assert endpoint.owned("second") == {"f:spec": {"f:host": {}}}


def test_appliers_of_the_same_value_share_the_field() -> None:
    endpoint = Endpoint()
    endpoint.apply(named(spec={"host": "a"}), "first")
    endpoint.apply(named(spec={"host": "a"}), "second")
    endpoint.apply(named(spec={}), "first")
    assert endpoint.live["spec"]["host"] == "a"
    endpoint.apply(named(spec={}), "second")
    assert endpoint.live["spec"]["host"] == ""


def test_an_update_takes_a_field_from_its_applier_who_then_cannot_remove_it() -> None:
    endpoint = Endpoint()
    endpoint.apply(named(spec={"count": 3}), "applier")
    endpoint.merge({"spec": {"count": 4}}, "controller")
    assert endpoint.owned("applier") is None
    endpoint.apply(named(spec={}), "applier")
    assert endpoint.live["spec"]["count"] == 4


def test_finalizers_are_a_set_of_which_each_applier_removes_its_own() -> None:
    endpoint = Endpoint()
    endpoint.apply({"metadata": {"name": "x", "finalizers": ["a/b"]}}, "m1")
    endpoint.apply({"metadata": {"name": "x", "finalizers": ["c/d"]}}, "m2")
    assert endpoint.live["metadata"]["finalizers"] == ["a/b", "c/d"]
    endpoint.apply({"metadata": {"name": "x", "finalizers": []}}, "m1")
    assert endpoint.live["metadata"]["finalizers"] == ["c/d"]
    endpoint.apply(named(), "m2")
    assert "finalizers" not in endpoint.live["metadata"]


def test_items_of_a_map_stay_empty_while_another_applier_owns_them() -> None:
    endpoint = Endpoint()
    endpoint.apply(named(spec={"nested": {"j": {"x": "1"}}}), "m1")
    endpoint.apply(named(spec={"nested": {"j": {}}}), "m2")
    endpoint.apply(named(spec={}), "m1")
    assert endpoint.live["spec"]["nested"] == {"j": {}}
    endpoint.apply(named(spec={}), "m2")
    assert "nested" not in endpoint.live["spec"]


def test_applying_twice_changes_nothing_not_even_a_time() -> None:
    endpoint = Endpoint()
    first = copy.deepcopy(endpoint.apply(named(spec={"host": "a"})))
    config = {**TYPE, **named(spec={"host": "a"})}
    again = endpoint.manager.apply(endpoint.live, config, manager="m1", force=False, now="2030-01-01T00:00:00Z")
    assert again == first


def test_an_update_that_changes_nothing_keeps_the_time() -> None:
    endpoint = Endpoint()
    first = endpoint.create(named(spec={"host": "a"}))
    again = endpoint.manager.update(first, copy.deepcopy(first), manager="other", now="2030-01-01T00:00:00Z")
    assert again == first


@pytest.mark.parametrize("reset", [pytest.param([], id="an empty list"), pytest.param([{}], id="an empty entry")])
def test_tracking_ends_on_request_and_begins_again_with_the_next_apply(reset: list[Any]) -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"host": "a"}))
    endpoint.merge({"metadata": {"managedFields": reset}})
    assert "managedFields" not in endpoint.live["metadata"]
    endpoint.merge({"spec": {"host": "b"}})
    assert "managedFields" not in endpoint.live["metadata"]
    with pytest.raises(ApplyConflict, match='conflict with "before-first-apply" using'):
        endpoint.apply(named(spec={"host": "c"}))
    endpoint.apply(named(spec={"host": "c"}), force=True)
    assert endpoint.owned("before-first-apply", "Update") == {"f:spec": {".": {}, "f:etcd": {}, "f:resourceQuotas": {}}}


def test_invalid_managed_fields_in_a_request_are_replaced_by_the_stored_ones() -> None:
    endpoint = Endpoint()
    created = copy.deepcopy(endpoint.create(named(spec={"host": "a"})))
    endpoint.merge({"metadata": {"managedFields": [{"manager": "x", "operation": "Guess"}]}})
    assert endpoint.live["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_an_update_starts_from_the_managed_fields_of_the_request() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"host": "a"}), "helm")
    entry = {**endpoint.live["metadata"]["managedFields"][0], "manager": "flux", "operation": "Apply", "time": THEN}
    endpoint.merge({"metadata": {"managedFields": [entry]}})
    assert [each["manager"] for each in endpoint.live["metadata"]["managedFields"]] == ["flux"]


def test_invalid_stored_managed_fields_do_not_prevent_an_apply() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"host": "a"}))
    endpoint.live["metadata"]["managedFields"] = [{"operation": 3}]
    endpoint.apply(named(spec={"gateway": True}))
    assert endpoint.owned("m1") == {"f:spec": {"f:gateway": {}}}
    assert endpoint.owned("before-first-apply", "Update") is not None


def test_the_oldest_of_more_than_ten_updaters_are_merged() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"resourceQuotas": {"k0": 1}}), "m0")
    for n in range(1, 13):
        endpoint.merge({"spec": {"resourceQuotas": {f"k{n}": n}}}, f"m{n}")
    managers = [entry["manager"] for entry in endpoint.live["metadata"]["managedFields"]]
    assert managers == ["ancient-changes", "m12", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"]
    quotas = endpoint.owned("ancient-changes", "Update")["f:spec"]["f:resourceQuotas"]
    assert list(quotas) == [".", "f:k0", "f:k1", "f:k10", "f:k11"]


def test_a_reset_field_is_owned_by_nobody() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"host": "a"}, status={"namespace": "n"}))
    endpoint.apply(named(status={"namespace": "q"}), "m2")
    assert endpoint.owned("m1", "Update") == {"f:spec": {".": {}, "f:etcd": {}, "f:host": {}, "f:resourceQuotas": {}}}
    assert endpoint.owned("m2") is None


def test_a_subresource_has_its_own_entries_and_is_named_in_conflicts() -> None:
    manager = FieldManager(TENANTS, reset_fields=("spec", "metadata"))
    live = Endpoint().create(named(spec={"host": "a"}))
    ready = {**TYPE, "metadata": {"name": "x", "labels": {"a": "b"}}, "status": {"conditions": [condition("True")]}}
    first = manager.apply(live, ready, manager="c", force=False, now=NOW, subresource="status")
    entry = next(each for each in first["metadata"]["managedFields"] if each["manager"] == "c")
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"] == {
        "f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}}
    }
    other = {**TYPE, "metadata": {"name": "x"}, "status": {"conditions": [condition("False")]}}
    with pytest.raises(ApplyConflict) as raised:
        manager.apply(first, other, manager="d", force=False, now=NOW, subresource="status")
    assert raised.value.message == (
        'Apply failed with 1 conflict: conflict with "c" with subresource "status": '
        '.status.conditions[type="Ready"].status'
    )


def condition(status: str) -> Object:
    return {"type": "Ready", "status": status}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param([], "error decoding patch: an applied configuration must be an object", id="a list"),
        pytest.param(
            {"kind": "Foo", "metadata": {}},
            "invalid object type: apps.cozystack.io/v1alpha1, Kind=Foo",
            id="another kind",
        ),
        pytest.param({"apiVersion": None, "kind": None}, "invalid object type: /, Kind=", id="no kind"),
        pytest.param(
            {"metadata": {"managedFields": []}}, "metadata.managedFields must be nil", id="empty managedFields"
        ),
        pytest.param(
            named(spec={"bar": {"x": 1}}),
            "failed to create typed patch object (/x; apps.cozystack.io/v1alpha1, Kind=Tenant): "
            ".spec.bar: field not declared in schema",
            id="an unknown field",
        ),
        pytest.param(
            {"metadata": {"name": "x", "namespace": "n", "unknownMeta": 1}},
            "failed to create typed patch object (n/x; apps.cozystack.io/v1alpha1, Kind=Tenant): "
            ".metadata.unknownMeta: field not declared in schema",
            id="unknown metadata",
        ),
        pytest.param(
            {"metadata": "x"},
            "failed to create typed patch object (/; apps.cozystack.io/v1alpha1, Kind=Tenant): "
            ".metadata: expected map, got &{x}",
            id="metadata that is not an object",
        ),
        pytest.param(
            named(spec={"set": ["a", "a"], "ports": [{"port": 1}, {"port": 1}]}),
            "failed to create typed patch object (/x; apps.cozystack.io/v1alpha1, Kind=Tenant): errors:\n"
            '  .spec.set: duplicate entries for key [="a"]\n'
            '  .spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
            id="duplicates",
        ),
    ],
)
def test_an_invalid_configuration_is_a_bad_request(config: Any, message: str) -> None:
    body = {**TYPE, **config} if isinstance(config, dict) else config
    with pytest.raises(BadRequest) as raised:
        FieldManager(TENANTS).apply(None, body, manager="m", force=False, now=NOW)
    assert raised.value.message == message


def test_a_deeply_nested_configuration_is_rejected() -> None:
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="nested too deeply"):
        FieldManager(TENANTS).apply(None, {**TYPE, **named(spec={"free": deep})}, manager="m", force=False, now=NOW)


def test_an_object_that_does_not_match_the_schema_keeps_the_stored_managers() -> None:
    endpoint = Endpoint()
    created = copy.deepcopy(endpoint.create(named(spec={"host": "a"})))
    wrong = {**created, "spec": {"host": 1}}
    updated = endpoint.manager.update(created, wrong, manager="m2", now=NOW)
    assert updated["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_fields_recorded_in_a_version_that_is_not_served_are_dropped() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"host": "a"}))
    old = {**endpoint.live["metadata"]["managedFields"][0], "manager": "old", "apiVersion": "apps.cozystack.io/v0"}
    endpoint.live["metadata"]["managedFields"].append(old)
    endpoint.merge({"spec": {"host": "b"}}, "m2")
    assert [each["manager"] for each in endpoint.live["metadata"]["managedFields"]] == ["m1", "m2"]


def test_arguments_are_not_modified() -> None:
    endpoint = Endpoint()
    endpoint.create(named(spec={"set": ["a"]}))
    live, new = copy.deepcopy(endpoint.live), copy.deepcopy(endpoint.live)
    new["spec"]["set"] = ["b"]
    config = {**TYPE, **named(spec={"set": ["c"], "free": {"a": [1]}})}
    before = copy.deepcopy((live, new, config))
    endpoint.manager.update(live, new, manager="m", now=NOW)
    applied = endpoint.manager.apply(live, config, manager="m", force=True, now=NOW)
    assert (live, new, config) == before
    applied["spec"]["free"]["a"].append(2)
    applied["spec"]["set"].append("z")
    assert (live, new, config) == before


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param({"metadata": {"resourceVersion": "9"}}, True, id="resourceVersion"),
        pytest.param({"spec": {"host": "b"}}, False, id="a field"),
        pytest.param({"spec": {"etcd": 0}}, False, id="a number for a boolean"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, False, id="a label"),
    ],
)
def test_same_content_ignores_only_versions_and_times(change: Object, same: bool) -> None:
    obj = Endpoint().create(named(spec={"host": "a", "etcd": False}))
    assert same_content(obj, merge_patch(obj, change)) is same


def test_same_content_ignores_times_in_managed_fields_but_not_managers() -> None:
    obj = Endpoint().create(named(spec={"host": "a"}))
    later, renamed = copy.deepcopy(obj), copy.deepcopy(obj)
    later["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    renamed["metadata"]["managedFields"][0]["manager"] = "other"
    assert same_content(obj, later)
    assert not same_content(obj, renamed)


def test_invalid_managed_fields_are_reported() -> None:
    assert managed_fields_error({"metadata": {"managedFields": [{"operation": "x"}]}}) != ""
    assert managed_fields_error(Endpoint().create(named())) == ""


FREE = Resource(
    group="g", version="v1", kind="K", plural="ks", singular="k", namespaced=True, preserve_unknown_fields=True
)
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "b"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
)
specs = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@settings(max_examples=60, deadline=None)
@given(base=specs, config=specs)
def test_applying_the_same_configuration_again_changes_nothing(base: Object, config: Object) -> None:
    manager = FieldManager(FREE)
    names = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x", "uid": "u"}}
    live = manager.create({**names, "spec": base}, manager="creator", now=THEN)
    patch = {**names, "spec": config}
    once = manager.apply(live, patch, manager="m", force=True, now=NOW)
    assert manager.apply(once, patch, manager="m", force=False, now="2030-01-01T00:00:00Z") == once


@settings(max_examples=60, deadline=None)
@given(base=specs, config=specs)
def test_fields_left_out_of_the_next_apply_are_removed(base: Object, config: Object) -> None:
    manager = FieldManager(FREE)
    names = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}}
    live = manager.apply(None, {**names, "left": base}, manager="first", force=False, now=THEN)
    both = manager.apply(live, {**names, "right": config}, manager="second", force=True, now=NOW)
    after = manager.apply(both, names, manager="second", force=False, now=NOW)
    assert "right" not in after
    assert after.get("left") == live.get("left")

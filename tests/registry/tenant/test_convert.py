"""A Tenant is converted to a HelmRelease and back."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from apiserver.json import deep
from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from apiserver.meta.resource import Object
from apiserver.schema.pruning_and_defaulting import object_schema, prune
from registry import names
from registry.application.release_metadata import mark_unconfirmed
from registry.tenant.convert import NotATenant, selectable_labels, tenant_key, to_release, to_tenant
from registry.tenant.spec import unreadable_paths
from registry.tenant.types import tenant_resource
from tests.registry.tenant.converted_objects import DEFAULTS, SETTINGS, release, tenant


def test_a_new_tenant_is_stored_like_in_cozystack() -> None:
    stored = to_release(tenant(metadata={"labels": {"team": "x"}}), None, SETTINGS)
    assert stored == {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {
            "name": "tenant-alice",
            "namespace": "tenant-root",
            "labels": {
                "apps.cozystack.io/application.kind": "Tenant",
                "apps.cozystack.io/application.group": "apps.cozystack.io",
                "apps.cozystack.io/application.name": "alice",
                "sharding.fluxcd.io/key": "tenants",
                "apps.cozystack.io-team": "x",
            },
        },
        "spec": {
            "chartRef": {
                "kind": "ExternalArtifact",
                "name": "cozystack-tenant-application-default-tenant",
                "namespace": "cozy-system",
            },
            "interval": "5m0s",
            "maxHistory": 5,
            "install": {"timeout": "15m0s", "strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}},
            "upgrade": {"timeout": "15m0s", "strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}},
            "valuesFrom": [{"kind": "Secret", "name": "cozystack-values"}],
            "values": DEFAULTS,
        },
    }


def test_a_tenant_shows_only_its_own_part_of_the_helmrelease() -> None:
    shown = to_tenant(release(status={"lastAttemptedRevision": "0.1.0+abc", "conditions": []}))
    assert shown == {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {
            "name": "alice",
            "namespace": "tenant-root",
            "uid": "u-1",
            "resourceVersion": "41",
            "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"team": "x"},
            "annotations": {"note": "hello"},
            "finalizers": ["example.org/hold"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "u-0"}],
        },
        "spec": {**DEFAULTS, "etcd": True, "own": [1]},
        "status": {
            "namespace": "tenant-alice",
            "observedGeneration": -1,
            "version": "0.1.0+abc",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "Unknown",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "Progressing",
                    "message": "no controller has looked at the tenant yet; if that lasts, check that Flux "
                    "or a tenant-apiserver runs controllers",
                }
            ],
        },
    }


@pytest.mark.parametrize("label", ["root", "tenant-root"])
def test_the_root_is_read_with_both_forms_of_the_name_label(label: str) -> None:
    stored = release(metadata={"name": "tenant-root"})
    stored["metadata"]["labels"][names.APPLICATION_NAME_LABEL] = label
    shown = to_tenant(stored)
    assert (shown["metadata"]["name"], shown["status"]["namespace"]) == ("root", "tenant-root")


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": {}}, id="no labels"),
        pytest.param({"name": "alice"}, id="another name"),
        pytest.param({"name": "tenant-"}, id="not the name of a Tenant"),
    ],
)
def test_another_helmrelease_is_not_a_tenant(metadata: dict[str, Any]) -> None:
    with pytest.raises(NotATenant):
        tenant_key(release(metadata=metadata))


def test_writing_back_an_unchanged_tenant_changes_nothing() -> None:
    stored = release()
    assert to_release(to_tenant(stored), stored, SETTINGS) == stored


def test_hidden_parts_of_the_helmrelease_survive_a_write() -> None:
    stored = release()
    before = copy.deepcopy(stored)
    written = to_release(tenant(spec={"host": "a.example"}), stored, SETTINGS)
    assert stored == before
    assert written["metadata"] == {
        "name": "tenant-alice",
        "namespace": "tenant-root",
        "uid": "u-1",
        "resourceVersion": "41",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {
            key: value for key, value in stored["metadata"]["labels"].items() if key != "apps.cozystack.io-team"
        },
        "annotations": {"foreign.example/a": "1"},
        "finalizers": [names.FLUX_FINALIZER, names.TENANT_FINALIZER],
    }
    assert written["spec"] == {
        "suspend": True,
        "chartRef": {"name": "mine"},
        "values": {"host": "a.example", "etcd": False, "_cluster": {"a": 1}},
    }


def test_a_client_cannot_add_a_hidden_finalizer() -> None:
    wanted = tenant(metadata={"finalizers": [names.TENANT_FINALIZER, "example.org/mine", names.FLUX_FINALIZER]})
    assert to_release(wanted, None, SETTINGS)["metadata"]["finalizers"] == ["example.org/mine"]


@pytest.mark.parametrize(
    ("gateway", "values"),
    [
        pytest.param(None, {}, id="absent"),
        pytest.param(False, {"gateway": False}, id="false"),
        pytest.param(True, {"gateway": True}, id="true"),
    ],
)
def test_absent_false_and_true_gateways_are_distinguished(gateway: bool | None, values: dict[str, bool]) -> None:
    wanted = tenant(spec={} if gateway is None else {"gateway": gateway})
    for current in (None, release(spec={"values": {"gateway": True}}), release(spec={"values": {"gateway": False}})):
        stored = to_release(wanted, current, SETTINGS)
        assert {key: value for key, value in stored["spec"]["values"].items() if key == "gateway"} == values
        assert to_tenant(stored)["spec"] == wanted["spec"]


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        pytest.param(None, {}, id="no spec gives no values"),
        pytest.param({}, {"values": {}}, id="an empty spec"),
        pytest.param({"etcd": False}, {"values": {"etcd": False}}, id="a default that was sent"),
        pytest.param(
            {"addons": {"vpn": [1, None]}, "host": None},
            {"values": {"addons": {"vpn": [1, None]}, "host": None}},
            id="undocumented keys and nulls",
        ),
    ],
)
def test_a_new_tenant_has_the_values_that_were_sent(spec: Any, values: dict[str, Any]) -> None:
    sent = {**tenant(), "spec": spec}
    stored = to_release(sent, None, SETTINGS)
    assert {key: value for key, value in stored["spec"].items() if key == "values"} == values
    undocumented = {key: value for key, value in (spec or {}).items() if key not in DEFAULTS}
    assert to_tenant(stored)["spec"] == {**DEFAULTS, **undocumented}


@pytest.mark.parametrize(
    ("stored", "spec", "values"),
    [
        pytest.param({}, DEFAULTS, {}, id="defaults that were shown"),
        pytest.param({}, {"host": "a.example"}, {"host": "a.example"}, id="only what was sent"),
        pytest.param({**DEFAULTS}, {**DEFAULTS, "etcd": True}, {**DEFAULTS, "etcd": True}, id="values of before stay"),
        pytest.param({"host": 5}, {"etcd": True}, {"host": 5, "etcd": True}, id="omitting what cannot be read"),
        pytest.param({"own": [1]}, {}, {}, id="an undocumented key that was shown is omitted"),
        pytest.param({"own": {"a": 1, "b": 2}}, {"own": {"a": 1, "b": 3}}, {"own": {"a": 1, "b": 3}}, id="and changed"),
        pytest.param({"_x": 1}, {"own": 1}, {"_x": 1, "own": 1}, id="the platform's keys stay"),
        pytest.param({"resourceQuotas": {"cpu": 0.5}}, {"resourceQuotas": {"cpu": "0.5", "pods": 1}},
                     {"resourceQuotas": {"cpu": 0.5, "pods": 1}}, id="a quota beside another one"),
    ],
)  # fmt: skip
def test_an_update_changes_only_what_the_client_changed(stored: Object, spec: Object, values: Object) -> None:
    written = to_release({**tenant(), "spec": spec}, release(spec={"values": stored}), SETTINGS)
    assert written["spec"]["values"] == values


def test_a_default_that_changes_later_takes_effect_unless_it_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    implicit, explicit = (to_release({**tenant(), "spec": spec}, None, SETTINGS) for spec in ({}, {"host": ""}))
    monkeypatch.setattr("registry.tenant.spec._DEFAULTS", {**DEFAULTS, "host": "later.example"})
    assert [to_tenant(each)["spec"]["host"] for each in (implicit, explicit)] == ["later.example", ""]


def test_values_of_a_wrong_type_are_hidden_reported_and_preserved() -> None:
    values = {
        "host": 5,
        "etcd": "true",
        "ingress": 0,
        "gateway": "yes",
        "resourceQuotas": {"cpu": {"no": 1}, "memory": "1Gi", "pods": True, "ratio": 0.5},
    }
    stored = release(spec={"values": values})
    shown = to_tenant(stored)
    assert shown["spec"] == {**DEFAULTS, "resourceQuotas": {"memory": "1Gi", "ratio": "0.5"}}
    assert unreadable_paths(stored) == [
        "spec.values.host",
        "spec.values.etcd",
        "spec.values.ingress",
        "spec.values.gateway",
        "spec.values.resourceQuotas[cpu]",
        "spec.values.resourceQuotas[pods]",
    ]
    shown["spec"]["resourceQuotas"] = {"memory": "2Gi", "ratio": "0.5"}
    written = to_release(shown, stored, SETTINGS)["spec"]["values"]
    assert written == {**values, "resourceQuotas": {**values["resourceQuotas"], "memory": "2Gi"}}  # type: ignore[dict-item]


@pytest.mark.parametrize("levels", [100, 126, 127, 200, 300])
def test_undocumented_values_that_nest_too_deeply_are_hidden_reported_and_preserved(levels: int) -> None:
    """ATTACK-13: a Tenant that is shown with them could not be written any more."""
    text = '{"a":' * levels + "1" + "}" * levels
    stored = release(spec={"values": {"odd": {}, "own": 1}})
    stored = deep.loads(deep.dumps(stored).replace(b'"odd":{}', f'"odd":{text}'.encode()))
    shown = to_tenant(stored)
    is_shown = levels <= 126
    assert ("odd" in shown["spec"], unreadable_paths(stored)) == (is_shown, [] if is_shown else ["spec.values.odd"])
    assert prune(object_schema(tenant_resource()), shown)["spec"] == shown["spec"]
    written = to_release({**shown, "spec": {**shown["spec"], "etcd": True}}, stored, SETTINGS)
    assert written["spec"]["values"] == {**stored["spec"]["values"], "etcd": True}
    assert to_release(to_tenant(stored), stored, SETTINGS) == stored


@pytest.mark.parametrize("values", [None, [], "text"])
def test_values_that_are_not_a_map_read_as_defaults_until_a_field_is_set(values: object) -> None:
    stored = release(spec={"values": values})
    assert to_tenant(stored)["spec"] == DEFAULTS
    assert to_release(to_tenant(stored), stored, SETTINGS) == stored
    assert to_release(tenant(spec={"etcd": True}), stored, SETTINGS)["spec"]["values"] == {"etcd": True}


def test_a_valid_helmrelease_has_no_unreadable_paths() -> None:
    assert unreadable_paths(release()) == []


def test_findings_of_the_reconciler_override_the_status_of_helm() -> None:
    findings = {
        "host": {"value": "alice.example.org", "namespace": "tenant-root", "later": 1},
        "gateway": {"value": True, "namespace": "tenant-root"},
        "services": {"etcd": "tenant-root", "later": "x"},
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Ours", "observedGeneration": 3},
            {"type": "HostConflict", "status": "True", "observedGeneration": 3},
        ],
        "externalIPsCount": 2,
    }
    own = [
        {"type": "Ready", "status": "False", "reason": "Theirs"},
        {"type": "Released", "status": "True"},
        {"type": "TestSuccess", "status": "True"},
    ]
    stored = release(
        metadata={"annotations": {names.FINDINGS_ANNOTATION: orjson.dumps(findings).decode()}},
        status={"conditions": own},
    )
    shown = to_tenant(stored)
    assert "annotations" not in shown["metadata"]
    assert shown["status"] == {
        "namespace": "tenant-alice",
        "observedGeneration": 3,
        "host": {"value": "alice.example.org", "namespace": "tenant-root"},
        "gateway": {"value": True, "namespace": "tenant-root"},
        "services": {"etcd": "tenant-root"},
        "conditions": [
            {"type": "HostConflict", "status": "True", "observedGeneration": 3},
            {"type": "Ready", "status": "True", "reason": "Ours", "observedGeneration": 3},
            {"type": "Released", "status": "True"},
        ],
        "externalIPsCount": 2,
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"host":1,"conditions":{},"externalIPsCount":true}', '{"gateway":{}}']
)
def test_invalid_findings_are_ignored(text: str) -> None:
    stored = release(metadata={"annotations": {names.FINDINGS_ANNOTATION: text}})
    assert to_tenant(stored)["status"] == to_tenant(release())["status"]


def test_managed_fields_are_stored_in_a_hidden_annotation() -> None:
    managed = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:host": {}}}}]
    stored = to_release(tenant(metadata={"managedFields": managed}), None, SETTINGS)
    assert "managedFields" not in stored["metadata"]
    shown = to_tenant(stored)["metadata"]
    assert shown["managedFields"] == managed
    assert "annotations" not in shown


@pytest.mark.parametrize("levels", [200, 1000, 5000])
def test_too_deeply_nested_managed_fields_are_not_shown(levels: int) -> None:
    """Otherwise the Tenant could not be encoded, and lists would fail."""
    metadata = {"annotations": {names.MANAGED_FIELDS_ANNOTATION: "[" * levels + "]" * levels}}
    assert "managedFields" not in to_tenant(release(metadata=metadata))["metadata"]


def test_managed_fields_are_dropped_if_annotations_would_be_too_large() -> None:
    managed = [{"manager": "kubectl", "fieldsV1": {"f:" + "x" * 200_000: {}}}]
    wanted = tenant(metadata={"annotations": {"large": "y" * 100_000}, "managedFields": managed})
    assert to_tenant(to_release(wanted, None, SETTINGS))["metadata"]["annotations"] == {"large": "y" * 100_000}
    assert "managedFields" not in to_tenant(to_release(wanted, None, SETTINGS))["metadata"]


def test_an_unconfirmed_write_is_marked_until_the_next_one_replaces_the_mark() -> None:
    key = names.UNCONFIRMED_ANNOTATION
    stored = to_release(tenant(), None, SETTINGS)
    mark_unconfirmed(stored, "one-1")
    assert stored["metadata"]["annotations"][key] == "one-1"
    assert "annotations" not in to_tenant(stored)["metadata"]
    assert to_release(to_tenant(stored), stored, SETTINGS)["metadata"]["annotations"][key] == "one-1"
    mark_unconfirmed(stored, "two-7")
    assert stored["metadata"]["annotations"][key] == "two-7"
    forged = to_release(tenant(metadata={"annotations": {key: "mine"}}), None, SETTINGS)
    assert key not in forged["metadata"]["annotations"]


def test_annotations_of_the_user_that_leave_no_room_keep_the_mark_out() -> None:
    user = {"large": "y" * (ANNOTATIONS_LIMIT - len(names.USER_KEY_PREFIX) - len("large") - 10)}
    stored = to_release(tenant(metadata={"annotations": user}), None, SETTINGS)
    mark_unconfirmed(stored, "one-1")
    assert names.UNCONFIRMED_ANNOTATION not in stored["metadata"]["annotations"]


def test_a_user_cannot_set_keys_of_the_platform() -> None:
    keys = {names.APPLICATION_KIND_LABEL: "Other", names.SHARD_LABEL: "mine"}
    stored = to_release(
        tenant(metadata={"labels": keys, "annotations": {names.FINDINGS_ANNOTATION: "{}"}}), None, SETTINGS
    )
    assert tenant_key(stored).name == "alice"
    assert stored["metadata"]["labels"][names.SHARD_LABEL] == "tenants"
    assert names.FINDINGS_ANNOTATION not in stored["metadata"]["annotations"]
    assert to_tenant(stored)["metadata"]["labels"] == keys


def test_selectors_match_shown_labels_long_labels_and_labels_of_the_release() -> None:
    long_key = "k" * 63
    wanted = tenant(metadata={"labels": {"team": "x", long_key: "y"}})
    stored = to_release(wanted, release(), SETTINGS)
    labels = selectable_labels(stored, to_tenant(stored))
    assert labels["team"] == "x"
    assert labels[long_key] == "y"
    assert labels["foreign"] == "label"
    assert labels["sharding.fluxcd.io/key"] == "another"
    assert labels["kubernetes.io/metadata.name"] == "alice"


def test_the_app_version_is_stored_and_can_be_cleared() -> None:
    stored = to_release(tenant(appVersion="1.2.3"), release(), SETTINGS)
    assert to_tenant(stored)["appVersion"] == "1.2.3"
    cleared = to_release(tenant(), stored, SETTINGS)
    assert "appVersion" not in to_tenant(cleared)

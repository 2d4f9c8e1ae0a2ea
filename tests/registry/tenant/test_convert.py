from __future__ import annotations

import copy
import string
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.resource import Object
from registry import names
from registry.tenant.convert import NotATenant, selectable_labels, tenant_key, to_release, to_tenant, unreadable_paths
from registry.tenant.release_settings import ReleaseSettings

SETTINGS = ReleaseSettings()
DEFAULTS = {
    "host": "",
    "etcd": False,
    "monitoring": False,
    "ingress": False,
    "seaweedfs": False,
    "computeplane": False,
    "schedulingClass": "",
    "resourceQuotas": {},
}


def tenant(**changes: Any) -> Object:
    return {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "alice", "namespace": "tenant-root", **changes.pop("metadata", {})},
        "spec": {**DEFAULTS, **changes.pop("spec", {})},
        **changes,
    }


def release(**changes: Any) -> Object:
    """A HelmRelease with many fields that a Tenant does not show."""
    metadata = {
        "name": "tenant-alice",
        "namespace": "tenant-root",
        "uid": "u-1",
        "resourceVersion": "41",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {
            names.APPLICATION_KIND_LABEL: "Tenant",
            names.APPLICATION_GROUP_LABEL: "apps.cozystack.io",
            names.APPLICATION_NAME_LABEL: "alice",
            names.SHARD_LABEL: "another",
            "apps.cozystack.io-team": "x",
            "foreign": "label",
        },
        "annotations": {"foreign.example/a": "1", "apps.cozystack.io-note": "hello"},
        "finalizers": [names.FLUX_FINALIZER, "example.org/hold", names.TENANT_FINALIZER],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "u-0"}],
        **changes.pop("metadata", {}),
    }
    spec = {"suspend": True, "chartRef": {"name": "mine"}, "values": {"etcd": True, "_cluster": {"a": 1}, "own": [1]}}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": metadata,
        "spec": {**spec, **changes.pop("spec", {})},
        **changes,
    }


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
        "spec": {**DEFAULTS, "etcd": True},
        "status": {"namespace": "tenant-alice", "version": "0.1.0+abc"},
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
        "values": {"host": "a.example", "etcd": False, "_cluster": {"a": 1}, "own": [1]},
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
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Ours"},
            {"type": "HostConflict", "status": "True"},
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
        "host": {"value": "alice.example.org", "namespace": "tenant-root"},
        "gateway": {"value": True, "namespace": "tenant-root"},
        "conditions": [
            {"type": "HostConflict", "status": "True"},
            {"type": "Ready", "status": "True", "reason": "Ours"},
            {"type": "Released", "status": "True"},
        ],
        "externalIPsCount": 2,
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"host":1,"conditions":{},"externalIPsCount":true}', '{"gateway":{}}']
)
def test_invalid_findings_are_ignored(text: str) -> None:
    stored = release(metadata={"annotations": {names.FINDINGS_ANNOTATION: text}})
    assert to_tenant(stored)["status"] == {"namespace": "tenant-alice"}


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


_NAME_PART = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=63).filter(
    lambda text: text[0].isalnum() and text[-1].isalnum()
)
_PREFIX = st.lists(st.from_regex(r"[a-z]([-a-z0-9]{0,40}[a-z0-9])?", fullmatch=True), min_size=1, max_size=6).map(
    ".".join
)
_LEGAL_KEY = st.one_of(_NAME_PART, st.builds("{}/{}".format, _PREFIX.filter(lambda text: len(text) <= 253), _NAME_PART))
_MAP = st.dictionaries(_LEGAL_KEY, st.text(max_size=8), min_size=1, max_size=5)
_FINALIZERS = st.lists(_LEGAL_KEY, min_size=1, max_size=3, unique=True)
_SPEC = st.fixed_dictionaries(
    {
        "host": st.sampled_from(["", "a.example"]),
        **dict.fromkeys(names.SERVICE_FLAGS, st.booleans()),
        "schedulingClass": st.sampled_from(["", "fast"]),
        "resourceQuotas": st.dictionaries(
            _NAME_PART, st.one_of(st.integers(0, 9), st.sampled_from(["1", "2Gi"])), max_size=3
        ),
    },
    optional={"gateway": st.booleans()},
)
_METADATA = st.fixed_dictionaries({}, optional={"labels": _MAP, "annotations": _MAP, "finalizers": _FINALIZERS})


@given(_METADATA, _SPEC)
def test_a_tenant_round_trips_through_its_helmrelease(metadata: Object, spec: Object) -> None:
    wanted = tenant(metadata=metadata, spec=spec)
    assert to_tenant(to_release(wanted, None, SETTINGS)) == {**wanted, "status": {"namespace": "tenant-alice"}}


@given(_METADATA, _SPEC, _METADATA, _SPEC)
def test_an_update_changes_the_tenant_and_preserves_everything_else(
    metadata: Object, spec: Object, new_metadata: Object, new_spec: Object
) -> None:
    stored = to_release(tenant(metadata=metadata, spec=spec), release(), SETTINGS)
    wanted = tenant(metadata=new_metadata, spec=new_spec)
    written = to_release(wanted, stored, SETTINGS)
    shown = to_tenant(written)
    assert shown["spec"] == wanted["spec"]
    assert {field: shown["metadata"].get(field) for field in ("labels", "annotations", "finalizers")} == {
        field: new_metadata.get(field) for field in ("labels", "annotations", "finalizers")
    }
    assert to_release(shown, written, SETTINGS) == written
    assert written["metadata"]["labels"]["foreign"] == "label"
    assert written["metadata"]["annotations"]["foreign.example/a"] == "1"
    assert written["spec"]["values"]["_cluster"] == {"a": 1}
    assert written["spec"]["suspend"] is True
    assert [each for each in written["metadata"]["finalizers"] if each in names.HIDDEN_FINALIZERS] == [
        names.FLUX_FINALIZER,
        names.TENANT_FINALIZER,
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*DEFAULTS, "gateway", "_x"]), _JSON) | _JSON,
    st.dictionaries(st.sampled_from(["conditions", "lastAttemptedRevision"]), _JSON) | _JSON,
    st.dictionaries(st.sampled_from(["host", "gateway", "conditions", "externalIPsCount"]), _JSON) | _JSON,
)
def test_any_stored_values_can_be_read_and_written_back(values: Any, status: Any, findings: Any) -> None:
    annotations = {names.FINDINGS_ANNOTATION: orjson.dumps(findings).decode()}
    stored = release(metadata={"annotations": annotations}, spec={"values": values}, status=status)
    unreadable_paths(stored)
    assert to_release(to_tenant(stored), stored, SETTINGS) == stored

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from admission.cel.library.regex import matches
from apiserver.meta.resource import Key, Object
from registry.application.convert import (
    ReleaseDefaults,
    application_key,
    selectable_labels,
    stores,
    to_application,
    to_changed_release,
    to_new_release,
)
from registry.application.definition import parse_definition
from tests.registry.application.applications import (
    NAMESPACE,
    SHOWN_DEFAULTS,
    application,
    definition,
    definition_object,
    release_of,
)


def test_the_condition_of_workloads_comes_after_those_of_flux() -> None:
    release = release_of("cache", {})
    workloads = {"type": "WorkloadsReady", "status": "True", "reason": "WorkloadMonitorCheck", "extra": 1}
    release["metadata"]["annotations"] = {
        "apps.cozystack.io/application-status": json.dumps({"conditions": [workloads, {"type": "Other"}]})
    }
    release["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    shown = to_application(release, definition())
    assert shown["status"]["conditions"] == [
        {"type": "Ready", "status": "False"},
        {"type": "WorkloadsReady", "status": "True", "reason": "WorkloadMonitorCheck"},
    ]
    assert "annotations" not in shown["metadata"]
    for malformed in ("{", "[]", '{"conditions": 5}', '{"conditions": [5]}'):
        release["metadata"]["annotations"]["apps.cozystack.io/application-status"] = malformed
        assert to_application(release, definition())["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_a_new_release_has_the_values_as_they_were_sent() -> None:
    spec = {"replicas": 3, "undocumented": {"a": None}}
    created = to_new_release(application(spec=spec), definition(), ReleaseDefaults())
    action = {"timeout": "10m0s", "strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}}
    assert created["spec"] == {
        "chartRef": {"kind": "ExternalArtifact", "name": "chart-redis", "namespace": "cozy-system"},
        "interval": "5m0s",
        "maxHistory": 5,
        "install": action,
        "upgrade": action,
        "valuesFrom": [{"kind": "Secret", "name": "cozystack-values"}],
        "values": spec,
    }


@pytest.mark.parametrize(("spec", "values"), [({}, {}), (None, None)])
def test_no_spec_gives_no_values(spec: Object | None, values: Object | None) -> None:
    created = to_new_release(application(spec=spec), definition(), ReleaseDefaults())
    assert created["spec"].get("values") == values


def test_labels_of_the_definition_of_the_client_and_of_the_identity_are_stored() -> None:
    labels = {"team": "x", "example.org/team": "y", "/application.kind": "Fake"}
    created = to_new_release(application(spec={}, labels=labels), definition(), ReleaseDefaults())
    assert created["metadata"]["labels"] == {
        "sharding.fluxcd.io/key": "tenants",
        "apps.cozystack.io-team": "x",
        "apps.cozystack.io-example.org/team": "y",
        "apps.cozystack.io-/application.kind": "Fake",
        "apps.cozystack.io/application.kind": "Redis",
        "apps.cozystack.io/application.group": "apps.cozystack.io",
        "apps.cozystack.io/application.name": "cache",
    }


def test_an_application_has_the_defaults_and_the_clients_labels() -> None:
    release = release_of(spec={"_cluster": {}, "replicas": 3})
    release["metadata"]["labels"] |= {"apps.cozystack.io-team": "x", "other": "y"}
    release["status"] = {
        "lastAttemptedRevision": "1.0.0+abc",
        "conditions": [
            {"type": "Released", "status": "True", "reason": "R", "message": "m", "observedGeneration": 2},
            {"type": "Ready", "status": "False", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Reconciling", "status": "True"},
            "no condition",
        ],
    }
    shown = to_application(release, definition())
    assert shown["spec"] == {**SHOWN_DEFAULTS, "replicas": 3}
    assert shown["metadata"]["labels"] == {"team": "x"}
    assert (shown["metadata"]["name"], shown["metadata"]["uid"]) == ("cache", "u-cache")
    assert shown["status"] == {
        "version": "1.0.0+abc",
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"},
            {"type": "Released", "status": "True", "reason": "R", "message": "m"},
        ],
    }
    selectable = selectable_labels(release, shown)
    assert (selectable["team"], selectable["other"]) == ("x", "y")


@pytest.mark.parametrize(
    "broken",
    [{"spec": None}, {"spec": {"values": 5}}, {"status": 5}, {"status": {"conditions": {}}}, {"status": None}],
)
def test_malformed_parts_are_left_out(broken: Object) -> None:
    shown = to_application({**release_of(), **broken}, definition())
    assert shown["spec"] == SHOWN_DEFAULTS
    assert shown["status"] == {}


def _labelled(name: str = "redis-cache", **labels: str) -> Object:
    release = release_of()
    release["metadata"]["name"] = name
    release["metadata"]["labels"] |= {f"apps.cozystack.io/application.{key}": value for key, value in labels.items()}
    return release


@pytest.mark.parametrize(
    ("release", "is_stored"),
    [
        (_labelled(), True),
        (_labelled(kind="Etcd"), False),
        (_labelled(group="example.org"), False),
        (_labelled(name="redis-other"), False),
        (_labelled("cache"), False),
        (_labelled("redis-"), False),
        ({"metadata": {"name": "redis-cache", "labels": None}}, False),
    ],
)  # fmt: skip
def test_labels_and_name_decide_what_a_release_stores(release: Object, is_stored: bool) -> None:
    assert stores(release, definition()) is is_stored


def test_the_key_is_the_name_without_the_prefix() -> None:
    assert application_key(release_of(), definition()) == Key(NAMESPACE, "cache")
    assert application_key({"metadata": {"name": "etcd", "namespace": NAMESPACE}}, definition()) is None


def test_an_update_changes_labels_and_values_and_nothing_else() -> None:
    current = release_of(spec={"_cluster": 1, "replicas": 3, "x": 1})
    current["metadata"] |= {"finalizers": ["finalizers.fluxcd.io"], "annotations": {"other": "a"}}
    current["metadata"]["labels"] |= {"sharding.fluxcd.io/key": "shard0", "other": "b", "apps.cozystack.io-old": "c"}
    current["spec"] |= {"suspend": True, "dependsOn": [{"name": "a"}], "interval": "1m0s"}
    before = copy.deepcopy(current)
    wanted = to_application(current, definition())
    wanted["metadata"] |= {"labels": {"team": "x"}, "annotations": {"note": "n"}}
    wanted["spec"]["size"] = "2Gi"
    changed = to_changed_release(wanted, current, definition())
    assert current == before
    expected = copy.deepcopy(before)
    del expected["metadata"]["labels"]["apps.cozystack.io-old"]
    expected["metadata"]["labels"]["apps.cozystack.io-team"] = "x"
    expected["metadata"]["annotations"]["apps.cozystack.io-note"] = "n"
    expected["spec"]["values"]["size"] = "2Gi"
    assert changed == expected


@pytest.mark.parametrize("spec", [None, {}, {"replicas": 3, "_a": 1}])
def test_no_change_gives_the_same_release(spec: Object | None) -> None:
    current = release_of(spec=spec)
    shown = to_application(current, definition())
    assert to_changed_release(shown, current, definition()) == current


def test_the_definition_decides_timeouts_and_how_flux_waits() -> None:
    obj = definition_object()
    obj["metadata"]["annotations"] = {
        "release.cozystack.io/helm-install-timeout": "20m",
        "release.cozystack.io/helm-install-disable-wait": "true",
    }
    obj["spec"]["release"]["healthCheckExprs"] = [{"kind": "Pod"}]
    spec = _spec_of(obj)
    assert spec["install"]["timeout"] == spec["upgrade"]["timeout"] == "20m0s"
    assert spec["install"]["disableWait"] is spec["upgrade"]["disableWait"] is True
    assert spec["waitStrategy"] == {"name": "poller"}
    assert spec["healthCheckExprs"] == [{"kind": "Pod"}]


def _spec_of(obj: Object) -> Any:
    return to_new_release(application(spec={}), parse_definition(obj, matches), ReleaseDefaults())["spec"]

"""Tenants' Namespaces: how they are rendered, to whom they belong, and the status that the Tenant shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.host_conflict_step import host_conflict_findings
from controller.tenant.namespace_ownership import (
    Ownership,
    TenantRecord,
    is_of_former_tenant,
    may_be_deleted,
    ownership,
    read_record,
    record_annotations,
)
from controller.tenant.namespace_step import (
    InheritedSettings,
    blocking_finding,
    conflicting_labels,
    host_label,
    render_namespace,
)
from controller.tenant.observe import ObservedTenant
from controller.tenant.root import render_root_namespace, render_root_release
from controller.tenant.status import fit_beside, render_tenant_status
from registry.names import FINDINGS_ANNOTATION
from registry.tenant.convert import to_tenant
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.summary import summarize
from registry.tenant.tree import EffectiveGateway, EffectiveHost
from tests.tenant_objects import ROOT_HOST, release, root_summary, tenant_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALPHA = tenant_summary("alpha")
PARENT: Object = {"metadata": {"name": "tenant-root", "uid": "u-root"}}
TERMINATING = {"phase": "Terminating"}
HOST = EffectiveHost(value="alpha.example.org", namespace="tenant-root")


def namespace(**metadata: Any) -> Object:
    return {"metadata": {"name": "tenant-alpha", "uid": "u", "creationTimestamp": "2026-01-01T00:00:03Z", **metadata}}


def observed(**changes: Any) -> ObservedTenant:
    fields: dict[str, Any] = {
        "tenant": ALPHA,
        "release": release("alpha"),
        "ancestors": (root_summary(),),
        "host": HOST,
        "gateway": EffectiveGateway(value=False, namespace=""),
        "shares_host": False,
        "shares_namespace": False,
        "namespace": None,
        "parent_namespace": PARENT,
    }
    return ObservedTenant(**fields | changes)


RECORD = record_annotations(ALPHA, NOW)
HELM_LABEL = {"app.kubernetes.io/managed-by": "Helm"}


def adopt(name: str) -> dict[str, str]:
    return {"apps.cozystack.io/adopt": f"tenant-root/{name}"}


def helm(name: str, home: str = "tenant-root") -> Object:
    annotations = {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": home}
    return namespace(labels=HELM_LABEL, annotations=annotations)


def test_a_new_namespace_has_the_labels_and_the_owner_of_its_tenant() -> None:
    assert render_namespace(ALPHA, (root_summary(),), InheritedSettings(host=HOST), parent=PARENT) == {
        "metadata": {
            "name": "tenant-alpha",
            "labels": {
                "namespace.cozystack.io/etcd": None,
                "namespace.cozystack.io/gateway": None,
                "namespace.cozystack.io/host": "alpha.example.org",
                "namespace.cozystack.io/ingress": None,
                "namespace.cozystack.io/monitoring": None,
                "namespace.cozystack.io/seaweedfs": None,
                "scheduler.cozystack.io/scheduling-class": None,
                "tenant.cozystack.io/tenant-alpha": "",
                "tenant.cozystack.io/tenant-root": "",
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "name": "tenant-root",
                    "uid": "u-root",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        }
    }


@settings(max_examples=1000)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), min_size=1, max_size=6))
def test_the_namespace_that_is_created_is_the_one_in_the_status(chain: list[str]) -> None:
    """R-043: both follow the two rules of R-040 and R-041, which the last assertion spells out."""
    parent = "tenant-root"
    for name in chain:
        if (parent, name) == ("tenant-root", "root"):
            continue
        shown = to_tenant(release(name, parent))
        reported = shown["status"]["namespace"]
        created = render_namespace(summarize(shown), (), InheritedSettings())["metadata"]["name"]
        assert reported == created == (f"tenant-{name}" if parent == "tenant-root" else f"{parent}-{name}")
        parent = reported


def test_ancestor_labels_that_name_other_tenants_are_removed() -> None:
    current = namespace(labels={"tenant.cozystack.io/tenant-evil": "", "theirs": "x"})

    labels = render_namespace(ALPHA, (root_summary(),), InheritedSettings(), current=current)["metadata"]["labels"]

    assert labels["tenant.cozystack.io/tenant-evil"] is None
    assert labels["namespace.cozystack.io/host"] is None
    assert "theirs" not in labels


@pytest.mark.parametrize(
    ("host", "label"),
    [
        pytest.param("a.example", "a.example", id="a host"),
        pytest.param("a" * 31 + "." + "b" * 31, "a" * 31 + "." + "b" * 31, id="63 characters"),
        pytest.param("a" * 32 + "." + "b" * 31, None, id="64 characters"),
        pytest.param("*.example", None, id="a stored wildcard"),
        pytest.param("not a host", None, id="a stored value that is no domain"),
    ],
)
def test_the_host_label(host: str, label: str | None) -> None:
    assert host_label(EffectiveHost(value=host, namespace="n")) == label


def test_labels_with_other_values_than_ours_conflict() -> None:
    desired: Object = {"metadata": {"labels": {"a": "1", "b": "2", "c": "3", "d": None}}}
    current = namespace(labels={"a": "1", "b": "9", "d": "x", "e": "y"})

    assert conflicting_labels(desired, current) == ["b", "d"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(namespace(), Ownership.FOREIGN, id="without a record"),
        pytest.param(namespace(annotations=RECORD), Ownership.OURS, id="created by us"),
        pytest.param(
            namespace(annotations={**RECORD, "apps.cozystack.io/tenant-uid": "other"}),
            Ownership.FOREIGN,
            id="created for a deleted tenant",
        ),
        pytest.param(
            namespace(annotations={**RECORD, "apps.cozystack.io/tenant": "tenant-root/bob"}),
            Ownership.FOREIGN,
            id="created for another tenant",
        ),
        pytest.param(namespace(annotations=adopt("alpha")), Ownership.OURS, id="adopted"),
        pytest.param(
            namespace(annotations=adopt("bob")),
            Ownership.FOREIGN,
            id="adopted by bob",
        ),
        pytest.param(helm("tenant-alpha"), Ownership.HELM, id="of the tenant's chart"),
        pytest.param(helm("other"), Ownership.FOREIGN, id="of another chart"),
        pytest.param(helm("tenant-alpha", "default"), Ownership.FOREIGN, id="of a chart in another namespace"),
        pytest.param(namespace(labels=HELM_LABEL), Ownership.FOREIGN, id="of Helm, without a release"),
    ],
)
def test_the_owner_of_a_namespace(found: Object, expected: Ownership) -> None:
    assert ownership(found, ALPHA) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(namespace(), Ownership.OURS, id="without labels"),
        pytest.param(helm("cozystack-basics", "cozy-system"), Ownership.HELM, id="of the platform's chart"),
    ],
)
def test_tenant_root_belongs_to_the_root_no_matter_who_created_it(found: Object, expected: Ownership) -> None:
    assert ownership(found, root_summary()) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(namespace(annotations=RECORD), True, id="created by us"),
        pytest.param(namespace(), False, id="without a record"),
        pytest.param(
            namespace(annotations=RECORD, creationTimestamp="2026-01-01T00:02:00Z"), False, id="a copied record"
        ),
        pytest.param(namespace(annotations=RECORD, creationTimestamp="2025-12-31T23:58:00Z"), False, id="older"),
        pytest.param(namespace(annotations=RECORD, creationTimestamp="malformed"), False, id="of unknown age"),
        pytest.param(namespace(annotations={**RECORD, **adopt("alpha")}), False, id="adopted"),
        pytest.param(namespace(annotations=RECORD, labels=HELM_LABEL), False, id="of Helm"),
        pytest.param(
            namespace(annotations=RECORD, labels={"platform.cozystack.io/no-delete": "true"}), False, id="protected"
        ),
    ],
)
def test_only_a_namespace_that_we_created_may_be_deleted(found: Object, expected: bool) -> None:
    assert may_be_deleted(found) is expected


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="none"),
        pytest.param({"apps.cozystack.io/tenant": "tenant-root/alpha"}, id="without a uid"),
        pytest.param({"apps.cozystack.io/tenant": "alpha", "apps.cozystack.io/tenant-uid": "u"}, id="no namespace"),
    ],
)
def test_an_incomplete_record_is_no_record(annotations: dict[str, str]) -> None:
    assert read_record(namespace(annotations=annotations)) is None


def test_a_record_is_read_as_it_was_written() -> None:
    assert read_record(namespace(annotations=RECORD)) == TenantRecord(Key("tenant-root", "alpha"), ALPHA.uid)


def test_a_namespace_of_a_deleted_tenant_is_told_from_a_copy() -> None:
    former = {**RECORD, "apps.cozystack.io/tenant-uid": "former"}

    assert is_of_former_tenant(namespace(annotations=former), ALPHA)
    assert not is_of_former_tenant(namespace(annotations=former, creationTimestamp="2026-02-01T00:00:00Z"), ALPHA)
    assert not is_of_former_tenant(namespace(annotations=RECORD), ALPHA)
    assert not is_of_former_tenant(None, ALPHA)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, None, id="nothing blocks it"),
        pytest.param({"shares_namespace": True}, "NamespaceConflict", id="an older tenant has it"),
        pytest.param({"namespace": {**namespace(), "status": TERMINATING}}, "NamespaceTerminating", id="being deleted"),
        pytest.param(
            {"namespace": namespace(annotations={**RECORD, "apps.cozystack.io/tenant-uid": "x"})},
            "NamespaceOfFormerTenant",
            id="of a deleted tenant",
        ),
        pytest.param({"ancestors": ()}, "ParentNotFound", id="no parent"),
        pytest.param({"parent_namespace": None}, "ParentNamespaceNotReady", id="no parent namespace"),
        pytest.param(
            {"parent_namespace": {**PARENT, "status": TERMINATING}},
            "ParentNamespaceNotReady",
            id="the parent namespace is being deleted",
        ),
        pytest.param(
            {"tenant": root_summary(), "ancestors": (), "parent_namespace": None}, None, id="the root has no parent"
        ),
    ],
)
def test_a_namespace_is_not_written_while_something_blocks_it(changes: dict[str, Any], reason: str | None) -> None:
    found = blocking_finding(observed(**changes))

    assert (found.reason if found else None) == reason
    assert found is None or found.status == "False"


@pytest.mark.parametrize(
    ("changes", "types"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"host": None}, [], id="no host"),
        pytest.param(
            {"host": EffectiveHost(value="a" * 60 + ".org", namespace="n")}, ["HostTooLongForLabel"], id="too long"
        ),
        pytest.param({"host": EffectiveHost(value="*.org", namespace="n")}, ["HostInvalid"], id="invalid"),
        pytest.param({"shares_host": True}, ["HostConflict"], id="shared"),
    ],
)
def test_each_problem_of_a_host_is_a_finding(changes: dict[str, Any], types: list[str]) -> None:
    assert [each.type for each in host_conflict_findings(observed(**changes))] == types


READY = Finding("NamespaceReady", "True", "Reconciled", "fine")


def test_the_tenant_shows_the_status_that_was_written() -> None:
    state = observed(gateway=EffectiveGateway(value=True, namespace="tenant-root"))
    found = release("alpha")
    found["metadata"]["annotations"] = {
        FINDINGS_ANNOTATION: orjson.dumps(render_tenant_status(state, [READY], NOW)).decode()
    }

    status = to_tenant(found)["status"]

    assert status["host"] == {"value": "alpha.example.org", "namespace": "tenant-root"}
    assert status["gateway"] == {"value": True, "namespace": "tenant-root"}
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("NamespaceReady", "True"),
        ("Ready", "True"),
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"conditions": "x"}'])
def test_a_malformed_annotation_is_overwritten(text: str) -> None:
    found = release("alpha")
    found["metadata"]["annotations"] = {FINDINGS_ANNOTATION: text}

    status = render_tenant_status(observed(release=found), [READY], NOW)

    assert [each["type"] for each in status["conditions"]] == ["NamespaceReady", "Ready"]


def test_without_a_root_host_the_root_has_no_host_label() -> None:
    assert render_root_namespace("")["metadata"]["labels"]["namespace.cozystack.io/host"] is None
    assert render_root_namespace(ROOT_HOST)["metadata"]["labels"]["namespace.cozystack.io/host"] == ROOT_HOST


def test_the_release_of_the_root_is_a_tenant_without_values_of_its_own() -> None:
    created = render_root_release(ReleaseSettings())

    assert created["metadata"]["name"] == "tenant-root"
    assert created["spec"]["values"] == {}
    assert to_tenant(created)["spec"]["host"] == ""
    assert to_tenant(created)["status"]["namespace"] == "tenant-root"


@pytest.mark.parametrize(
    ("annotations", "messages"),
    [
        pytest.param({}, ["it is broken"], id="alone"),
        pytest.param({FINDINGS_ANNOTATION: "x" * 262_144}, ["it is broken"], id="instead of the former status"),
        pytest.param({"a": "x" * 261_988}, [""], id="without messages"),
        pytest.param({"a": "x" * 262_143}, None, id="no room"),
    ],
)
def test_the_status_fits_beside_the_other_annotations(annotations: dict[str, str], messages: list[str] | None) -> None:
    """ATTACK-16: the cluster would reject the HelmRelease."""
    condition = {"type": "A", "status": "False", "reason": "Broken", "message": "it is broken"}
    found = fit_beside({"gateway": {"value": False, "namespace": ""}, "conditions": [condition]}, annotations)
    assert messages == ([each["message"] for each in found["conditions"]] if found is not None else None)

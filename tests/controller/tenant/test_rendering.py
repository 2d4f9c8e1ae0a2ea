from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import ChartMode
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
from controller.tenant.status import render_status
from registry.names import FINDINGS_ANNOTATION
from registry.tenant.convert import to_tenant
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.summary import summarize
from registry.tenant.types import EffectiveGateway, EffectiveHost
from tests.tenant_objects import ROOT_HOST, release, root_summary, tenant_summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALPHA = tenant_summary("alpha")
PARENT: Object = {"metadata": {"name": "tenant-root", "uid": "u-root"}}
GOING = {"phase": "Terminating"}
HOST = EffectiveHost(value="alpha.example.org", namespace="tenant-root")


def namespace(**metadata: Any) -> Object:
    return {"metadata": {"name": "tenant-alpha", "uid": "u", "creationTimestamp": "2026-01-01T00:00:03Z", **metadata}}


def observed(**changes: Any) -> ObservedTenant:
    known: dict[str, Any] = {
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
    return ObservedTenant(**known | changes)


RECORD = record_annotations(ALPHA, NOW)
HELM_LABEL = {"app.kubernetes.io/managed-by": "Helm"}


def adopt(name: str) -> dict[str, str]:
    return {"apps.cozystack.io/adopt": f"tenant-root/{name}"}


def helm(name: str, home: str = "tenant-root") -> Object:
    annotations = {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": home}
    return namespace(labels=HELM_LABEL, annotations=annotations)


def test_a_new_namespace() -> None:
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
            "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "tenant-root", "uid": "u-root"}],
        }
    }


@settings(max_examples=1000)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), min_size=1, max_size=6))
def test_the_namespace_that_is_made_is_the_one_that_is_told(chain: list[str]) -> None:
    """R-043: by the two rules of R-040 and R-041, which are written out here once more."""
    parent, told = "tenant-root", ""
    for name in chain:
        if (parent, name) == ("tenant-root", "root"):
            continue
        shown = to_tenant(release(name, parent))
        told = shown["status"]["namespace"]
        made = render_namespace(summarize(shown), (), InheritedSettings())["metadata"]["name"]
        assert told == made == (f"tenant-{name}" if parent == "tenant-root" else f"{parent}-{name}")
        parent = told


def test_ancestor_labels_that_name_others_go() -> None:
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
        pytest.param("*.example", None, id="a wildcard that was stored"),
        pytest.param("not a host", None, id="damage that was stored"),
    ],
)
def test_the_host_label(host: str, label: str | None) -> None:
    assert host_label(EffectiveHost(value=host, namespace="n")) == label


def test_contradictions_are_values_of_others_that_are_not_ours() -> None:
    desired: Object = {"metadata": {"labels": {"a": "1", "b": "2", "c": "3", "d": None}}}
    current = namespace(labels={"a": "1", "b": "9", "d": "x", "e": "y"})

    assert conflicting_labels(desired, current) == ["b", "d"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(namespace(), Ownership.FOREIGN, id="nobody's"),
        pytest.param(namespace(annotations=RECORD), Ownership.OURS, id="made by us"),
        pytest.param(
            namespace(annotations={**RECORD, "apps.cozystack.io/tenant-uid": "other"}),
            Ownership.FOREIGN,
            id="made for a former tenant",
        ),
        pytest.param(
            namespace(annotations={**RECORD, "apps.cozystack.io/tenant": "tenant-root/bob"}),
            Ownership.FOREIGN,
            id="made for another tenant",
        ),
        pytest.param(namespace(annotations=adopt("alpha")), Ownership.OURS, id="adopted"),
        pytest.param(
            namespace(annotations=adopt("bob")),
            Ownership.FOREIGN,
            id="adopted for bob",
        ),
        pytest.param(helm("tenant-alpha"), Ownership.HELM, id="the chart's"),
        pytest.param(helm("other"), Ownership.FOREIGN, id="another chart's"),
        pytest.param(helm("tenant-alpha", "default"), Ownership.FOREIGN, id="a chart's of that name elsewhere"),
        pytest.param(namespace(labels=HELM_LABEL), Ownership.FOREIGN, id="Helm's, of no release"),
    ],
)
def test_whose_a_namespace_is(found: Object, expected: Ownership) -> None:
    assert ownership(found, ALPHA) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(namespace(), Ownership.OURS, id="bare"),
        pytest.param(helm("cozystack-basics", "cozy-system"), Ownership.HELM, id="of the platform's chart"),
    ],
)
def test_tenant_root_is_the_roots(found: Object, expected: Ownership) -> None:
    assert ownership(found, root_summary()) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(namespace(annotations=RECORD), True, id="made by us"),
        pytest.param(namespace(), False, id="without a record"),
        pytest.param(namespace(annotations=RECORD, creationTimestamp="2026-01-01T00:02:00Z"), False, id="a copy"),
        pytest.param(namespace(annotations=RECORD, creationTimestamp="2025-12-31T23:58:00Z"), False, id="older"),
        pytest.param(namespace(annotations=RECORD, creationTimestamp="damaged"), False, id="of unknown age"),
        pytest.param(namespace(annotations={**RECORD, **adopt("alpha")}), False, id="adopted"),
        pytest.param(namespace(annotations=RECORD, labels=HELM_LABEL), False, id="Helm's"),
        pytest.param(
            namespace(annotations=RECORD, labels={"platform.cozystack.io/no-delete": "true"}), False, id="protected"
        ),
    ],
)
def test_what_may_be_deleted(found: Object, expected: bool) -> None:
    assert may_be_deleted(found) is expected


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="none"),
        pytest.param({"apps.cozystack.io/tenant": "tenant-root/alpha"}, id="without a uid"),
        pytest.param({"apps.cozystack.io/tenant": "alpha", "apps.cozystack.io/tenant-uid": "u"}, id="no home"),
    ],
)
def test_half_a_record_is_none(annotations: dict[str, str]) -> None:
    assert read_record(namespace(annotations=annotations)) is None


def test_a_record_is_read_as_it_was_written() -> None:
    assert read_record(namespace(annotations=RECORD)) == TenantRecord(Key("tenant-root", "alpha"), ALPHA.uid)


def test_a_former_tenants_namespace_is_told_from_a_copy() -> None:
    former = {**RECORD, "apps.cozystack.io/tenant-uid": "former"}

    assert is_of_former_tenant(namespace(annotations=former), ALPHA)
    assert not is_of_former_tenant(namespace(annotations=former, creationTimestamp="2026-02-01T00:00:00Z"), ALPHA)
    assert not is_of_former_tenant(namespace(annotations=RECORD), ALPHA)
    assert not is_of_former_tenant(None, ALPHA)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, None, id="nothing in the way"),
        pytest.param({"shares_namespace": True}, "NamespaceConflict", id="an older tenant has it"),
        pytest.param({"namespace": {**namespace(), "status": GOING}}, "NamespaceTerminating", id="going"),
        pytest.param(
            {"namespace": namespace(annotations={**RECORD, "apps.cozystack.io/tenant-uid": "x"})},
            "NamespaceOfFormerTenant",
            id="a former tenant's",
        ),
        pytest.param({"ancestors": ()}, "ParentNotFound", id="no parent"),
        pytest.param({"parent_namespace": None}, "ParentNamespaceNotReady", id="no parent namespace"),
        pytest.param(
            {"parent_namespace": {**PARENT, "status": GOING}},
            "ParentNamespaceNotReady",
            id="the parent namespace is going",
        ),
        pytest.param(
            {"tenant": root_summary(), "ancestors": (), "parent_namespace": None}, None, id="the root has no parent"
        ),
    ],
)
def test_what_keeps_a_namespace_from_being_written(changes: dict[str, Any], reason: str | None) -> None:
    found = blocking_finding(observed(**changes))

    assert (found.reason if found else None) == reason
    assert found is None or found.status == "False"


@pytest.mark.parametrize(
    ("changes", "types"),
    [
        pytest.param({}, [], id="fine"),
        pytest.param({"host": None}, [], id="no host"),
        pytest.param(
            {"host": EffectiveHost(value="a" * 60 + ".org", namespace="n")}, ["HostTooLongForLabel"], id="long"
        ),
        pytest.param({"host": EffectiveHost(value="*.org", namespace="n")}, ["HostInvalid"], id="damaged"),
        pytest.param({"shares_host": True}, ["HostConflict"], id="shared"),
    ],
)
def test_what_is_wrong_with_a_host(changes: dict[str, Any], types: list[str]) -> None:
    assert [each.type for each in host_conflict_findings(observed(**changes))] == types


READY = Finding("NamespaceReady", "True", "Reconciled", "fine")
_NO_NAMESPACE = Finding("NamespaceReady", "False", "X")
_REFUSED = Finding("AccessReady", "False", "Refused", "the host refused the access")
_ENDING = Finding("Terminating", "True", "NamespaceRemains", "waits")


def test_the_status_is_what_the_tenant_shows() -> None:
    known = observed(gateway=EffectiveGateway(value=True, namespace="tenant-root"))
    found = release("alpha")
    found["metadata"]["annotations"] = {FINDINGS_ANNOTATION: orjson.dumps(render_status(known, [READY], NOW)).decode()}

    status = to_tenant(found)["status"]

    assert status["host"] == {"value": "alpha.example.org", "namespace": "tenant-root"}
    assert status["gateway"] == {"value": True, "namespace": "tenant-root"}
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("NamespaceReady", "True"),
        ("Ready", "True"),
    ]


@pytest.mark.parametrize(
    ("chart", "finding", "helm_says", "expected"),
    [
        pytest.param("none", READY, None, ("True", "Reconciled"), id="no chart"),
        pytest.param("none", READY, "False", ("True", "Reconciled"), id="without a chart ours alone"),
        pytest.param("flux", READY, "False", None, id="the chart's word counts"),
        pytest.param("flux", READY, None, ("Unknown", "Pending"), id="the chart says nothing yet"),
        pytest.param("flux", _NO_NAMESPACE, "True", ("False", "X"), id="no namespace, not ready"),
        pytest.param("none", _REFUSED, None, ("False", "Refused"), id="the host refused something"),
        pytest.param("none", _ENDING, None, ("False", "Terminating"), id="being deleted"),
    ],
)
def test_whose_word_ready_is(
    chart: ChartMode, finding: Finding, helm_says: str | None, expected: tuple[str, str] | None
) -> None:
    found = release("alpha")
    if helm_says:
        found["status"] = {"conditions": [{"type": "Ready", "status": helm_says}]}

    status = render_status(observed(release=found), [finding], NOW, chart=chart)
    ready = [(each["status"], each["reason"]) for each in status["conditions"] if each["type"] == "Ready"]

    assert ready == ([expected] if expected else [])


@pytest.mark.parametrize("damage", ["", "{", "[]", '"x"', '{"conditions": "x"}'])
def test_a_damaged_annotation_is_written_anew(damage: str) -> None:
    found = release("alpha")
    found["metadata"]["annotations"] = {FINDINGS_ANNOTATION: damage}

    status = render_status(observed(release=found), [READY], NOW)

    assert [each["type"] for each in status["conditions"]] == ["NamespaceReady", "Ready"]


def test_a_root_without_a_root_host_has_no_label() -> None:
    assert render_root_namespace("")["metadata"]["labels"]["namespace.cozystack.io/host"] is None
    assert render_root_namespace(ROOT_HOST)["metadata"]["labels"]["namespace.cozystack.io/host"] == ROOT_HOST


def test_the_roots_release_is_a_tenants_with_an_empty_host() -> None:
    made = render_root_release(ReleaseSettings())

    assert made["metadata"]["name"] == "tenant-root"
    assert made["spec"]["values"]["host"] == ""
    assert to_tenant(made)["status"]["namespace"] == "tenant-root"

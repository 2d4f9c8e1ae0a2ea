"""SecurityGroups are CiliumNetworkPolicies with a label, whose Pods are the members of the group."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.securitygroup.convert import GroupConversion, default_group, to_policy_spec

CONVERSION = GroupConversion()
LABEL = "sdn.cozystack.io/securitygroup"
ATTACHMENTS = "sdn.cozystack.io/attachments"
APP = {"apiGroup": "apps.cozystack.io", "kind": "Postgres", "name": "db"}
APP_SELECTOR = {
    "matchLabels": {
        "apps.cozystack.io/application.group": "apps.cozystack.io",
        "apps.cozystack.io/application.kind": "Postgres",
        "apps.cozystack.io/application.name": "db",
    }
}
PORTS = [{"ports": [{"port": "5432", "protocol": "TCP"}]}]
SPEC: Object = {
    "attachments": [APP],
    "ingress": [{"fromApp": [APP], "fromSG": ["web"], "fromCIDR": ["10.0.0.0/8"], "toPorts": PORTS}],
    "egress": [{"toApp": [APP], "toSG": ["db"], "toCIDR": ["10.0.0.1"], "toFQDNs": [{"matchName": "a.org"}]}],
}


def member(name: str) -> Object:
    return {"matchLabels": {f"securitygroup.sdn.cozystack.io/{name}": ""}}


def group(spec: Object | None = None, **metadata: Any) -> Object:
    head = {"apiVersion": "sdn.cozystack.io/v1alpha1", "kind": "SecurityGroup"}
    return {**head, "metadata": {"name": "web", "namespace": "tenant-a", **metadata}, "spec": spec or {}}


def stored(spec: Object | None = None, **metadata: Any) -> Object:
    """The policy of a group."""
    policy = CONVERSION.to_new(group(spec))
    policy["metadata"] |= {"uid": "u", "resourceVersion": "7"} | metadata
    return policy


def test_a_policy_has_the_rules_of_the_group_in_ciliums_form() -> None:
    policy = CONVERSION.to_new(group(SPEC))
    assert (policy["apiVersion"], policy["kind"]) == ("cilium.io/v2", "CiliumNetworkPolicy")
    assert policy["metadata"]["labels"] == {LABEL: "true"}
    assert policy["metadata"]["annotations"] == {
        ATTACHMENTS: '[{"apiGroup":"apps.cozystack.io","kind":"Postgres","name":"db"}]'
    }
    assert policy["spec"] == {
        "endpointSelector": member("web"),
        "ingress": [{"fromEndpoints": [APP_SELECTOR, member("web")], "fromCIDR": ["10.0.0.0/8"], "toPorts": PORTS}],
        "egress": [
            {
                "toEndpoints": [APP_SELECTOR, member("db")],
                "toCIDR": ["10.0.0.1"],
                "toFQDNs": [{"matchName": "a.org"}],
            }
        ],
    }


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="empty"),
        pytest.param(SPEC, id="everything"),
        pytest.param({"egress": []}, id="no egress at all"),
        pytest.param({"ingress": [{}]}, id="a rule without peers"),
        pytest.param({"attachments": [APP]}, id="attachments only"),
    ],
)
def test_a_group_survives_its_policy(spec: Object) -> None:
    shown = CONVERSION.to_object(stored(spec))
    assert shown["spec"] == spec
    assert "labels" not in shown["metadata"]
    assert "annotations" not in shown["metadata"]


@pytest.mark.parametrize(
    ("spec", "ingress", "egress"),
    [
        pytest.param({}, [], None, id="neither"),
        pytest.param({"ingress": []}, [], None, id="empty ingress"),
        pytest.param({"egress": []}, [], [], id="empty egress"),
    ],
)
def test_ingress_is_always_written_and_egress_only_if_it_is_given(spec: Object, ingress: Any, egress: Any) -> None:
    """A policy without ingress would allow everything in."""
    policy = to_policy_spec("web", spec)
    assert (policy.get("ingress"), policy.get("egress")) == (ingress, egress)


def test_references_are_completed_and_protocols_spelled_as_cilium_does() -> None:
    short = {"kind": "Postgres", "name": "db"}
    obj = group(
        {
            "attachments": [dict(short)],
            "ingress": [{"fromApp": [dict(short)], "toPorts": [{"ports": [{"port": "53", "protocol": "udp"}]}]}],
            "egress": [{"toApp": [{**short, "apiGroup": "x.org"}]}],
        }
    )
    default_group(obj)
    assert obj["spec"]["attachments"] == obj["spec"]["ingress"][0]["fromApp"] == [APP]
    assert obj["spec"]["ingress"][0]["toPorts"] == [{"ports": [{"port": "53", "protocol": "UDP"}]}]
    assert obj["spec"]["egress"][0]["toApp"] == [{**short, "apiGroup": "x.org"}]


def test_what_was_shown_changes_nothing() -> None:
    policy = stored(SPEC, finalizers=["a/b"], managedFields=[{"manager": "x"}])
    assert CONVERSION.to_changed(CONVERSION.to_object(policy), policy) is policy


def test_a_change_of_labels_keeps_rules_that_others_have_added() -> None:
    """T4."""
    policy = stored(SPEC)
    policy["spec"]["ingress"][0]["fromEntities"] = ["world"]
    policy["spec"]["ingress"][0]["fromEndpoints"].append({"matchExpressions": []})
    obj = CONVERSION.to_object(policy)
    assert obj["spec"] == SPEC
    obj["metadata"]["labels"] = {"team": "x"}
    changed = CONVERSION.to_changed(obj, policy)
    assert changed["spec"] == policy["spec"]
    assert changed["metadata"]["labels"] == {LABEL: "true", "team": "x"}


def test_a_change_of_rules_replaces_them_and_the_selector_is_always_that_of_the_group() -> None:
    policy = stored(SPEC)
    policy["spec"]["endpointSelector"] = {}
    same = CONVERSION.to_changed(CONVERSION.to_object(policy), policy)
    assert same["spec"]["endpointSelector"] == member("web")
    changed = CONVERSION.to_changed(group({"ingress": [{"fromSG": ["x"]}]}), policy)
    assert changed["spec"] == {"endpointSelector": member("web"), "ingress": [{"fromEndpoints": [member("x")]}]}
    assert "annotations" not in changed["metadata"]


def test_a_client_cannot_forge_attachments_or_take_the_label_away() -> None:
    obj = group({}, annotations={ATTACHMENTS: "[]", "note": "x"}, labels={LABEL: "false"})
    policy = CONVERSION.to_new(obj)
    assert policy["metadata"]["annotations"] == {"note": "x"}
    assert CONVERSION.shows(policy)


@pytest.mark.parametrize("sent", [[], ["a/b"]])
def test_the_finalizer_of_the_controller_stays(sent: list[str]) -> None:
    """It removes the labels of members from Pods; without it, they would stay."""
    finalizer = "sdn.cozystack.io/securitygroup-membership"
    obj = group({})
    obj["metadata"]["finalizers"] = sent
    changed = CONVERSION.to_changed(obj, stored({}, finalizers=[finalizer]))
    assert changed["metadata"]["finalizers"] == [*sent, finalizer]


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": None},
        {"spec": {"ingress": "x", "egress": [1]}},
        {"spec": {"ingress": [{"fromEndpoints": [{"matchLabels": 1}, 2], "toPorts": None}]}},
        {"metadata": {"name": "web", "annotations": {ATTACHMENTS: "{"}}},
        {"metadata": {"name": "web", "annotations": {ATTACHMENTS: '"x"'}}},
    ],
)
def test_a_malformed_policy_is_shown_without_its_broken_parts(broken: Object) -> None:
    assert CONVERSION.to_object({**stored(), **copy.deepcopy(broken)})["metadata"]["name"] == "web"

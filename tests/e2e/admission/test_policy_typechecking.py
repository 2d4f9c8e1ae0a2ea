"""kube-controller-manager type-checks policies against the OpenAPI document that our server publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.support.admission.policies import POLICIES
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster

_TENANTS: Mapping[str, Any] = {
    "apiGroups": ["apps.cozystack.io"],
    "apiVersions": ["v1alpha1"],
    "operations": ["CREATE"],
    "resources": ["tenants"],
}


@pytest.mark.controller_manager
@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        pytest.param(["object.spec.host == '' || object.spec.etcd", "object.status.namespace != ''"], [], id="valid"),
        pytest.param(
            ["object.spec.host > 1", "object.spec.maxRetries == 3"],
            ["found no matching overload for '_>_' applied to '(string, int)'", "undefined field 'maxRetries'"],
            id="invalid",
        ),
    ],
)
def test_policy_types_are_checked_against_our_openapi_document(
    kube: KubeCluster, cluster: E2eCluster, unique: str, expressions: Sequence[str], expected: Sequence[str]
) -> None:
    """The policy has no binding, so it denies nothing (WIRE-H26, WIRE-J50)."""
    client = cluster.client()
    spec = {
        "matchConstraints": {"resourceRules": [dict(_TENANTS)]},
        "validations": [{"expression": expression} for expression in expressions],
    }
    metadata = {"name": unique}
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    client.request("POST", POLICIES, {**policy, "metadata": metadata, "spec": spec}).expect(201)
    path = f"{POLICIES}/{unique}"

    def status() -> dict[str, Any]:
        found: dict[str, Any] = client.get(path).expect(200).get("status") or {}
        return found

    try:
        kube.wait_until("the policy is type-checked", lambda: "typeChecking" in status())
        warnings = status()["typeChecking"].get("expressionWarnings", [])
        assert [each["fieldRef"] for each in warnings] == [
            f"spec.validations[{number}].expression" for number in range(len(expected))
        ]
        for each, text in zip(warnings, expected, strict=True):
            assert text in each["warning"]
    finally:
        client.request("DELETE", path)

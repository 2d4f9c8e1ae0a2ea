"""The policies as written in the manifests, and every case evaluated in the test process."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from admission.policy.compiled_policy import compile_policy
from admission.tenant.host_policy import POLICY, TRUSTED_GROUPS, host_change_denial
from registry.embedded.custom import shipped
from tests.policies import cases
from tests.policies.case_table import BINDINGS, CASES, CLUSTER_CASES, DIRECTORY, OPTIONAL_DIRECTORY, POLICIES, plugin_of
from tests.policies.cases import GATEWAY_GROUP, Case
from tests.policies.in_process_evaluation import NAME, attributes, rejection

_NAMES = {
    "cozystack-gateway-hostname-policy": ("gateway.networking.k8s.io", ["gateways"]),
    "cozystack-listenerset-hostname-policy": ("gateway.networking.k8s.io", ["listenersets"]),
    "cozystack-tenant-host-policy": ("apps.cozystack.io", ["tenants"]),
    "cozystack-namespace-host-label-policy": ("", ["namespaces", "namespaces/status", "namespaces/finalize"]),
    "cozystack-route-hostname-policy": ("gateway.networking.k8s.io", ["httproutes"]),
    "cozystack-route-hostname-policy-tls": ("gateway.networking.k8s.io", ["tlsroutes"]),
    "cozystack-route-hostname-policy-grpc": ("gateway.networking.k8s.io", ["grpcroutes"]),
    "cozystack-ingress-hostname-policy": ("networking.k8s.io", ["ingresses"]),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_case_has_the_decision_and_message_of_the_table(case: Case) -> None:
    """CHOICE-3, PEER-02: a namespace without a host may use no hostnames, which is deliberate."""
    error = await rejection(plugin_of(case.policy), attributes(case))
    group_resource = f"{case.plural}.{case.group}" if case.group else case.plural
    assert (error.message if error else "") == cases.rejection_message(case, NAME, group_resource)
    assert error is None or (error.code, error.reason) == (403, "Forbidden")


def test_there_are_enough_cases_for_each_policy() -> None:
    counted = Counter((case.policy, bool(case.denial)) for case in CLUSTER_CASES)
    assert set(counted) == {(name, denied) for name in _NAMES for denied in (False, True)}
    assert min(counted.values()) >= 15
    assert len({case.id for case in CASES}) == len(CASES)
    assert len(CLUSTER_CASES) >= 150


def test_policies_and_bindings_have_the_documented_names() -> None:
    """R-241, R-260, PEER-04: a policy for each layer, or one for each kind where a layer covers several."""
    assert POLICIES.keys() == BINDINGS.keys() == _NAMES.keys()


@pytest.mark.parametrize("name", _NAMES)
def test_a_policy_is_fail_closed_in_every_version(name: str) -> None:
    """R-232, VAP-4: an evaluation error denies, and versions of the future are covered."""
    group, resources = _NAMES[name]
    spec = POLICIES[name]["spec"]
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources}
    assert spec["failurePolicy"] == "Fail"
    assert spec["matchConstraints"] == {"resourceRules": [rule]}
    assert BINDINGS[name]["spec"] == {"policyName": name, "validationActions": ["Deny"]}


@pytest.mark.parametrize("name", _NAMES)
def test_a_policy_compiles(name: str) -> None:
    assert compile_policy(POLICIES[name]).problems == []


def test_layer_8_is_optional() -> None:
    """PEER-04: it is a component, and no overlay has it."""
    for path in DIRECTORY.parent.rglob("kustomization.yaml"):
        if path.parent != OPTIONAL_DIRECTORY:
            assert "components/ingress-hostnames" not in path.read_text(), path


def test_a_manifest_file_contains_one_object() -> None:
    for path in (*DIRECTORY.glob("*.yaml"), *OPTIONAL_DIRECTORY.glob("*.yaml")):
        assert "\n---" not in path.read_text(), path.name


def _expressions_of(name: str, kind: str) -> dict[str, Any]:
    """The expressions of a policy, without its messages, with another name for its kind."""
    spec = POLICIES[name]["spec"]
    return {
        "conditions": spec["matchConditions"],
        "variables": [{**each, "expression": each["expression"].replace(kind, "Route")} for each in spec["variables"]],
        "validations": [each["expression"] for each in spec["validations"]],
    }


@pytest.mark.parametrize(("suffix", "kind"), [("-tls", "TLSRoute"), ("-grpc", "GRPCRoute")])
def test_the_policies_of_routes_have_the_same_expressions(suffix: str, kind: str) -> None:
    """R-260: the policies of routes differ only in kind and messages; that of TLSRoutes, which must have hostnames,
    lets them list those that they ask other TLSRoutes for."""
    expected = _expressions_of(cases.ROUTE_POLICY, "HTTPRoute")
    if kind == "TLSRoute":
        expected["validations"][-1] += " || variables.onlyDelegated"
    assert _expressions_of(cases.ROUTE_POLICY + suffix, kind) == expected


@pytest.mark.parametrize("name", [cases.TENANT_POLICY, cases.NAMESPACE_POLICY])
def test_the_trusted_groups_are_those_of_the_built_in_plugin(name: str) -> None:
    """R-257: the policies and the plugin trust the same groups."""
    [expression] = [each["expression"] for each in POLICIES[name]["spec"]["variables"] if each["name"] == "trusted"]
    assert _listed(expression) == list(TRUSTED_GROUPS)


def _listed(expression: str) -> list[str]:
    listed, _, _ = expression.removeprefix("[").partition("]")
    return [each.strip().strip("'") for each in listed.split(",")]


def test_the_built_in_plugin_has_the_same_message() -> None:
    """Also where the policy's expression cannot be evaluated, and its plain message is used."""
    [validation] = POLICIES[POLICY]["spec"]["validations"]
    case = next(
        each for each in CLUSTER_CASES if each.policy == POLICY and each.denial and each.id == "Tenant: changed"
    )
    built_in = host_change_denial("a.example.org", "b.example.org", "alice", ())
    assert built_in == f"{case.denial} ({POLICY})"
    assert built_in.startswith(validation["message"])


def test_expressions_use_only_functions_of_kubernetes_1_30() -> None:
    """CEL in Kubernetes 1.30 lacks two-variable macros, formats and semver; `authorizer` is not used either."""
    texts = " ".join(str(policy["spec"]) for policy in POLICIES.values())
    for newer in ("transformList", "transformMap", "format.", "semver(", "authorizer", "ip(", "cidr("):
        assert newer not in texts


def test_every_kind_that_has_hostnames_is_covered() -> None:
    """VAP-3: the kinds that the embedded cluster serves, which are the same as in the CRDs of Gateway API."""
    specs = [each["spec"] for each in shipped.definitions()]
    kinds = {spec["names"]["plural"]: str(spec["versions"]) for spec in specs if spec["group"] == GATEWAY_GROUP}
    named = {plural for plural, spec in kinds.items() if "'hostnames'" in spec or "'listeners'" in spec}
    covered = {resources[0] for group, resources in _NAMES.values() if group == GATEWAY_GROUP}
    assert named == covered

"""All cases, and the policies and bindings of the manifests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from admission.policy.plugin import ValidatingPolicies
from apiserver.meta.resource import Object
from tests.policies import host_cases, ingress_cases, listener_cases, route_cases
from tests.policies.cases import Case
from tests.policies.in_process_evaluation import plugin_for

_MANIFESTS = Path(__file__).parents[2] / "manifests"
DIRECTORY = _MANIFESTS / "policies"
OPTIONAL_DIRECTORY = _MANIFESTS / "components" / "ingress-hostnames"
CASES: tuple[Case, ...] = (
    *listener_cases.cases(),
    *route_cases.cases(),
    *host_cases.cases(),
    *ingress_cases.cases(),
)
CLUSTER_CASES = tuple(case for case in CASES if not case.rejected_by_schema)


def manifests(kind: str) -> Mapping[str, Object]:
    """The objects of a kind in the manifests, by name."""
    files = [*sorted(DIRECTORY.glob("*.yaml")), *sorted(OPTIONAL_DIRECTORY.glob("*.yaml"))]
    documents = [yaml.load(path.read_text(), Loader=yaml.CSafeLoader) for path in files]
    return {each["metadata"]["name"]: each for each in documents if each["kind"] == kind}


POLICIES = manifests("ValidatingAdmissionPolicy")
BINDINGS = manifests("ValidatingAdmissionPolicyBinding")


@cache
def plugin_of(name: str) -> ValidatingPolicies:
    """The plugin with one policy of the manifests."""
    return plugin_for(POLICIES[name], BINDINGS[name])

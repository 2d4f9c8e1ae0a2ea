"""All cases, and the policies and bindings of the manifests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from apiserver.meta.resource import Object
from tests.policies import host_cases, listener_cases, route_cases
from tests.policies.cases import Case

DIRECTORY = Path(__file__).parents[2] / "manifests" / "policies"
CASES: tuple[Case, ...] = (*listener_cases.cases(), *route_cases.cases(), *host_cases.cases())
CLUSTER_CASES = tuple(case for case in CASES if not case.rejected_by_schema)


def manifests(kind: str) -> Mapping[str, Object]:
    """The objects of a kind in the manifests, by name."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted(DIRECTORY.glob("*.yaml"))]
    return {each["metadata"]["name"]: each for each in documents if each["kind"] == kind}


POLICIES = manifests("ValidatingAdmissionPolicy")
BINDINGS = manifests("ValidatingAdmissionPolicyBinding")

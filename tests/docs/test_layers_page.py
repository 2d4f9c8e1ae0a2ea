"""The page on the layers tells of every policy, in the words that it answers with."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission.tenant.host_policy import POLICY, host_change_denial
from tests.policies import cases
from tests.policies.case_table import POLICIES
from tests.policies.host_cases import namespace_denial
from tests.policies.route_cases import no_hostnames_denial

PAGE = (Path(__file__).parents[2] / "docs" / "layers.md").read_text()
HOST = "alice.example.org"


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_told_with_the_number_of_its_validations(name: str) -> None:
    """VAP-8."""
    count = len(POLICIES[name]["spec"]["validations"])
    assert any(line.split()[:2] == [name, str(count)] for line in PAGE.splitlines())


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (cases.NAMESPACE_POLICY, namespace_denial("alice", "dashboard.example.org", HOST)),
        (cases.ROUTE_POLICY, no_hostnames_denial("HTTPRoute")),
        (cases.ROUTE_POLICY, cases.outside_host_denial("HTTPRoute hostnames", HOST, "harbor.example.org")),
        (cases.GATEWAY_POLICY, cases.outside_host_denial("Gateway listener hostname", HOST, "dashboard.example.org")),
    ],
)
def test_refusals_are_quoted_as_they_are(policy: str, text: str) -> None:
    """VAP-8."""
    assert f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {text}\n" in PAGE


def test_the_built_in_refusal_is_quoted_as_it_is() -> None:
    assert f"{host_change_denial('', 'dashboard.example.org', 'alice', ())}\n" in PAGE
    assert POLICY in PAGE

"""Every reason that a condition of ours can have is explained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.tenant.readiness.parts import PROBLEMS as PROBLEMS_OF_TENANTS
from registry.explain.reasons import CHOSEN, PROBLEMS, REASONS, condition_fact
from registry.explain.rule import Rule
from registry.explain.types import fact_object
from registry.explain.variants_of_gateways import OF_FLAT_ROUTES, VARIANTS_OF_GATEWAYS
from tests.registry.explain.explain_world import ALICE, condition

_ROOT = Path(__file__).parents[3]
_FOLDERS = ("controller/tenant", "controller/tenantgateway", "controller/publishing", "registry/tenant")
_REASON = re.compile(r"[A-Z][a-z]+[A-Za-z]*")
# Words in the same form that no condition has as its reason: kinds, condition types, columns, values of fields.
_OTHER_WORDS = """
AccessReady AlreadyExists Any Apex Applied ApplySettings Certificate CertificatesReady
CiliumClusterwideNetworkPolicy CiliumNetworkPolicy ClusterRole Container CustomResourceDefinition Delegated Delete
Egress Enabled Exact Exists ExternalArtifact False FieldValueTooMany FinalizersRemain Foreground Gateway
GatewayClass GatewayReady Group Helm Host HostReady In Ingress InvalidSettings IsolationReady Issuer Judge
ListenerSet LoadBalancer Mode Namespace NamespaceContentRemaining NamespaceDeletionContentFailure
NamespaceFinalizersRemaining NamespaceReady Namespaced Normal Not NotFound NotIn Opaque Passthrough PathPrefix
PlatformSettingsInvalid Pod Publish PublishingReady Quota QuotaReady Ready Reconcile ReferenceGrant ReleaseReady
Released RequestRedirect ResourceQuotas RetryOnFailure Role RoleBindings Same Secret Selector Service ServiceAccount
Services SettingsInForce SettingsOfFile TenantGateway TenantGatewayApplied TenantGatewayMissing Terminate True
ValuesReady Version Warning WorkloadMonitor WorkloadsReady
"""
_NO_REASONS = frozenset(_OTHER_WORDS.split())


def _words() -> Iterator[tuple[str, str]]:
    """Each word in the form of a reason that the code of the controllers has as a literal, with its file."""
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and _REASON.fullmatch(node.value):
                    yield node.value, str(path.relative_to(_ROOT))


def test_every_reason_in_the_code_is_explained() -> None:
    """A new word is either a reason, which gets a rule, or belongs into the list of other words."""
    unexplained = {(word, path) for word, path in _words() if word not in REASONS and word not in _NO_REASONS}
    assert not unexplained


def test_every_explained_reason_is_in_the_code() -> None:
    assert REASONS.keys() <= {word for word, _ in _words()}
    assert not REASONS.keys() & _NO_REASONS


_RULES = [*REASONS.values(), *VARIANTS_OF_GATEWAYS.values(), *OF_FLAT_ROUTES.values()]


@pytest.mark.parametrize("link", sorted({each.link for each in _RULES}))
def test_the_link_of_a_rule_leads_to_a_section(link: str) -> None:
    page, _, anchor = link.partition("#")
    text = (_ROOT / "docs" / page).read_text()
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    anchors = {re.sub(r"[^a-z0-9 _-]", "", each.lower()).replace(" ", "-") for each in headings}
    assert not anchor or anchor in anchors


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule.text)
def test_a_rule_is_one_sentence_and_its_remedy_a_request(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z].*[^.]\.", rule.text)
    assert not rule.remedy.endswith(".")


def test_a_condition_that_reports_a_problem_is_false_as_a_fact() -> None:
    tenant = fact_object("apps.cozystack.io/v1alpha1", "Tenant", ALICE)
    for type_ in PROBLEMS:
        assert condition_fact(tenant, condition(type_, "True", "Duplicate")).status == "False"
    assert condition_fact(tenant, condition("Ready", "Unknown", "Progressing")).status == "Unknown"
    for reason in CHOSEN:
        assert condition_fact(tenant, condition("IsolationReady", "False", reason)).status == "True"


def test_every_problem_that_ready_of_a_tenant_depends_on_is_one_here() -> None:
    assert PROBLEMS_OF_TENANTS.keys() <= PROBLEMS


def test_a_reason_of_another_controller_points_to_its_message() -> None:
    tenant = fact_object("apps.cozystack.io/v1alpha1", "Tenant", ALICE)
    fact = condition_fact(tenant, condition("Released", "False", "ArtifactFailed", "no chart"))
    assert (fact.status, fact.message, fact.rule) == (
        "False",
        "no chart",
        "Another controller reports this condition.",
    )

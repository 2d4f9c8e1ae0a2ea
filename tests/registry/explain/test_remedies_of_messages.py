"""Each cause that a message tells has the remedy of its own; the messages are read from the code of the controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.explain.reasons import rule_of
from registry.explain.reasons_of_gateways import REASONS_OF_GATEWAYS
from registry.explain.variants_of_gateways import OF_FLAT_ROUTES, VARIANTS_OF_GATEWAYS
from tests.registry.explain.told_messages import ANY, Told, ToldMessages

_ROOT = Path(__file__).parents[3]
_NAMED = [_ROOT / "registry" / each for each in ("names.py", "tenantgateway/types.py")]
_SEVERAL_CAUSES = frozenset(reason for reason, _ in VARIANTS_OF_GATEWAYS)
_TOLD = sorted(set(ToldMessages(_ROOT / "controller" / "tenantgateway", _NAMED).of(frozenset(REASONS_OF_GATEWAYS))))
_WITHOUT_CONSENT = [each for each in _TOLD if each.reason == "BackendNotFound" or "ReferenceGrant from" in each.message]
_MESSAGES = [each for each in _TOLD if each.reason in _SEVERAL_CAUSES and each != Told("Orphaned", ANY)] + [
    # a vertex hears the messages about its consent with this reason
    Told("Orphaned", each.message)
    for each in _WITHOUT_CONSENT
]
# Of reasons with several causes, the messages that the rule of the reason itself fits.
_OF_THE_RULE_ITSELF = frozenset(
    {
        ("HostnameConflict", '"…" belongs to … …'),
        ("HostnameConflict", '"…" overlaps "…", which belongs to … …'),
        (
            "ListenersTruncated",
            (
                "does not fit: a Gateway has at most 64 listeners; use certMode dns01, "
                "or give a tenant a gateway of its own"
            ),
        ),
        (
            "NoMatchingListenerHostname",
            '"…" is not of this namespace: the host of namespace … is "…"; choose … or a name below it',
        ),
        # the literals of two branches, which no message has together
        (
            "NoMatchingListenerHostname",
            '"…" is not of this namespace: the host of namespace … is "…"; set spec.host of the tenant, which sets …',
        ),
        (
            "NotAllowedByListeners",
            (
                "Gateway …/… does not admit routes of namespace …: attach to a Gateway of namespace …, "
                "which its label … names"
            ),
        ),
        ("Orphaned", "there is no TenantGateway …/…: correct the parentRef, or create it"),
        ("Orphaned", "there is no TenantGateway …/…: the TenantGateway of a tenant is called cozystack"),
        ("Orphaned", "there is no … …/…: the Gateway of a tenant is called cozystack"),
        ("OutsideDelegation", '"…" is not below …'),
        ("QuotaExceeded", "exceeds the quota count/certificates.cert-manager.io of its tenant, which is …"),
        # the reasons why a hostname is none
        ("UnsupportedValue", '"…" …'),
        ("UnsupportedValue", "…"),
        ("UnsupportedValue", 'spec.apex "…" …'),
        ("UnsupportedValue", 'spec.tlsPassthroughServices: "…" is invalid: "….…" …'),
    }
)
_BEGINNINGS_OF_THE_RULE_ITSELF = (
    ("SecretMissing", "Secret …/… is missing or holds no certificate"),
    ("SecretNotConfirmed", "the Gateway's controller has not confirmed yet that it can use Secret …/…; until then"),
    ("TooManyListeners", "hostnames without a listener (use certMode dns01"),
)
_ONE_CAUSE = {
    "Accepted",
    "CertificatesNotReady",
    "CertificatesPending",
    "ListenersNotReady",
    "NoSectionName",
    "NotRendered",
    "ReconcileError",
    "RefNotPermitted",
    "ResolvedRefs",
}


@pytest.mark.parametrize("told", _MESSAGES, ids=" ".join)
def test_a_message_of_a_reason_with_several_causes_has_a_rule_of_its_own(told: Told) -> None:
    texts = [text for reason, text in VARIANTS_OF_GATEWAYS if reason == told.reason]
    fits = any(text in told.message for text in (*texts, *OF_FLAT_ROUTES))
    itself = told in _OF_THE_RULE_ITSELF or any(
        told.reason == reason and told.message.startswith(text) for reason, text in _BEGINNINGS_OF_THE_RULE_ITSELF
    )
    assert fits != itself


def test_a_reason_with_several_messages_has_several_rules_or_one_cause() -> None:
    reasons = [each.reason for each in _TOLD]
    several = {each for each in reasons if reasons.count(each) > 1}
    assert several - _SEVERAL_CAUSES == _ONE_CAUSE


@pytest.mark.parametrize(
    "variant", [each for each in VARIANTS_OF_GATEWAYS if each[0] != "GatewayNotAccepted"], ids=" ".join
)
def test_the_code_has_the_message_of_a_variant(variant: tuple[str, str]) -> None:
    """GatewayNotAccepted has a message with the reason of another controller, or with ours, which is Pending."""
    assert any(each.reason == variant[0] and variant[1] in each.message for each in _MESSAGES)


@pytest.mark.parametrize("text", OF_FLAT_ROUTES)
def test_the_code_has_the_message_of_a_flat_route(text: str) -> None:
    source = (_ROOT / "controller/tenantgateway/delegation/flat_states.py").read_text()
    assert text.removeprefix(": ").rstrip() in source


def test_of_two_causes_that_a_message_names_the_first_has_its_remedy() -> None:
    first, second = '"a.b" belongs to HTTPRoute x/y', '"api.b" belongs to a TLS passthrough listener of this gateway'
    assert rule_of("HostnameConflict", f"{second}; {first}") == rule_of("HostnameConflict", second)


def test_the_owner_of_the_hostname_is_asked_about_a_flat_route() -> None:
    """The vertex hears the reason of another object, which it cannot correct."""
    for reason in ("QuotaExceeded", "DelegationConflict", "NoMatchingListenerHostname"):
        remedy = rule_of(reason, f"www.example.org: the Gateway does not serve it: {reason}").remedy
        assert remedy == "ask the owner of the hostname; the status of the root says what it lacks"

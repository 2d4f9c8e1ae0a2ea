"""The rule behind each reason that a condition of ours can have. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from registry.explain.reasons_of_gateways import REASONS_OF_GATEWAYS
from registry.explain.reasons_of_tenants import REASONS_OF_TENANTS
from registry.explain.rule import FURTHER, Rule
from registry.explain.types import Fact, FactObject, Verdict
from registry.explain.variants_of_gateways import OF_FLAT_ROUTES, VARIANTS_OF_GATEWAYS

REASONS: Mapping[str, Rule] = {**REASONS_OF_TENANTS, **REASONS_OF_GATEWAYS}

PROBLEMS: Set[str] = frozenset(
    {
        "AttachedElsewhere",
        "ChartConflict",
        "Conflicted",
        "HostConflict",
        "HostInvalid",
        "HostTooLongForLabel",
        "HostnamesLeftOut",
        "ListenersTruncated",
        "NamespaceConflict",
        "PlaintextRoutes",
        "PlatformSettingsInvalid",
        "SchedulingClassInvalid",
        "SystemLabelRemoved",
        "TenantGatewayMissing",
        "Terminating",
    }
)
"""Condition types whose status True is a problem."""
CHOSEN: Set[str] = frozenset({"TurnedOff", "LeftToChart", "NotEnforced"})
"""Reasons with which a condition is False because the platform wants it so."""
_OTHERS = Rule("Another controller reports this condition.", FURTHER, "do what the message of the controller says")


def rule_of(reason: str, message: str = "") -> Rule:
    """The rule of a reason, of which some have several that the message tells apart; of a reason that is not ours, a
    rule that points to the message."""
    variants = {text: rule for (of, text), rule in VARIANTS_OF_GATEWAYS.items() if of == reason}
    found = [
        (message.index(text), rule) for text, rule in (*OF_FLAT_ROUTES.items(), *variants.items()) if text in message
    ]
    if found:
        return min(found, key=lambda each: each[0])[1]
    return REASONS.get(reason, _OTHERS)


def condition_fact(obj: FactObject, condition: Mapping[str, Any]) -> Fact:
    """The fact that a condition states about its object."""
    type_, reason = str(condition.get("type") or ""), str(condition.get("reason") or "")
    message = str(condition.get("message") or "")
    rule, status = rule_of(reason, message), _status(type_, str(condition.get("status") or "Unknown"), reason)
    return Fact(
        object=obj.model_copy(update={"field": f"status.conditions[{type_}]"}),
        status=status,
        value=str(condition.get("status") or "Unknown"),
        rule=rule.text,
        link=rule.link,
        reason=reason or None,
        message=message or None,
        remedy=(rule.remedy or None) if status != "True" else None,
    )


def _status(type_: str, status: str, reason: str) -> Verdict:
    if reason in CHOSEN:
        return "True"
    if status == "Unknown":
        return "Unknown"
    return "False" if (status == "True") == (type_ in PROBLEMS) else "True"

"""The tenant host policy: who may set or change `spec.host` (R-241 to R-252)."""

from __future__ import annotations

from collections.abc import Collection

from admission.plugin_rule import TENANTS, WRITES, Rule, name_in_refusal
from apiserver.admission import Attributes
from apiserver.meta import errors
from registry.tenant.summary import facts_of

POLICY = "cozystack-tenant-host-policy"
TRUSTED_GROUPS = (
    "system:masters",
    "system:serviceaccounts:cozy-system",
    "system:serviceaccounts:cozy-cert-manager",
    "system:serviceaccounts:cozy-fluxcd",
    "system:serviceaccounts:kube-system",
)


def refusal(old_host: str, new_host: str, groups: Collection[str]) -> str:
    """Why a caller in `groups` may not make the host `new_host`; empty if it may.

    On create, the old host is empty. Any other spelling is a change, and so is clearing (R-243, FACT-5).
    """
    if new_host == old_host or not frozenset(TRUSTED_GROUPS).isdisjoint(groups):
        return ""
    return (
        f"tenant.spec.host can only be set or changed by members of {', '.join(TRUSTED_GROUPS)}; "
        f"a tenant with an empty host inherits the apex of its parent, as <name>.<parent's apex> ({POLICY})"
    )


class TenantHostPolicy:
    name = "TenantHostPolicy"
    _rule = Rule(TENANTS, WRITES)

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        old = facts_of(attributes.old_object).host if attributes.old_object is not None else ""
        why = refusal(old, facts_of(attributes.object).host, attributes.user.groups)
        if why:
            cause = {"reason": "FieldValueForbidden", "message": why, "field": "spec.host"}
            raise errors.Forbidden(TENANTS, name_in_refusal(attributes), why, causes=[cause])

"""The tenant host policy: only trusted groups may set or change `spec.host` (R-241 to R-252)."""

from __future__ import annotations

from collections.abc import Collection

from admission.plugin_rule import TENANTS, WRITES, PluginRule, name_for_errors
from apiserver.admission import Attributes
from apiserver.meta import errors
from registry.tenant.summary import summarize

POLICY = "cozystack-tenant-host-policy"
TRUSTED_GROUPS = (
    "system:masters",
    "system:serviceaccounts:cozy-system",
    "system:serviceaccounts:cozy-cert-manager",
    "system:serviceaccounts:cozy-fluxcd",
    "system:serviceaccounts:kube-system",
)


def host_change_denial(old_host: str, new_host: str, user: str, groups: Collection[str]) -> str:
    """The reason why a user in `groups` may not change the host; empty if the change is allowed.

    On create, the old host is empty. A different spelling and the removal of the host are changes, too (R-243, FACT-5).
    """
    if new_host == old_host or not frozenset(TRUSTED_GROUPS).isdisjoint(groups):
        return ""
    return (
        f"tenant.spec.host can only be set or changed by members of {', '.join(TRUSTED_GROUPS)}; "
        f"a tenant with an empty host inherits the apex of its parent, as <name>.<parent's apex>; "
        f'user "{user}" asked for "{new_host}" instead of "{old_host}" ({POLICY})'
    )


class TenantHostPolicy:
    name = "TenantHostPolicy"
    _rule = PluginRule(TENANTS, WRITES)

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        old = summarize(attributes.old_object).host if attributes.old_object is not None else ""
        why = host_change_denial(old, summarize(attributes.object).host, attributes.user.name, attributes.user.groups)
        if why:
            cause = {"reason": "FieldValueForbidden", "message": why, "field": "spec.host"}
            raise errors.Forbidden(TENANTS, name_for_errors(attributes), why, causes=[cause])

"""Warns about services that nothing on this cluster can install.

They are admitted, and the Tenant is not ready until they are installed.
"""

from __future__ import annotations

from collections.abc import Callable

from admission.plugin_rule import TENANTS, WRITES, PluginRule
from apiserver.admission import Attributes
from apiserver.meta.resource import Object
from registry.names import SERVICE_FLAGS


def enabled_flags(new: Object, old: Object | None) -> list[str]:
    """The flags that the write sets to true; `old` is None on create."""
    before = ((old or {}).get("spec")) or {}
    now = new.get("spec") or {}
    return [flag for flag in SERVICE_FLAGS if now.get(flag) is True and before.get(flag) is not True]


def flags_warning(flags: list[str]) -> str:
    return (
        f"{', '.join(f'spec.{flag}' for flag in flags)}: no controller on this cluster is known to install this "
        "(tenants.chart: none); until one does, the tenant is not ready"
    )


class UnservedFlags:
    """`has_charts` returns whether Flux installs the charts of Tenants."""

    name = "UnservedFlags"
    _rule = PluginRule(TENANTS, WRITES)

    def __init__(self, *, has_charts: Callable[[], bool]) -> None:
        self._has_charts = has_charts

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes) and not self._has_charts()

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if flags := enabled_flags(attributes.object, attributes.old_object):
            attributes.context.warn(flags_warning(flags))

"""Warns about the annotation that allows a cascading deletion, if its value is none that does."""

from __future__ import annotations

from admission.plugin_rule import TENANTS, WRITES, PluginRule
from apiserver.admission import Attributes
from apiserver.meta.resource import Object
from registry.names import CASCADE_ANNOTATION


def value_without_effect(new: Object, old: Object | None) -> str | None:
    """The value that the write sets, if only "true" would have an effect; `old` is None on create."""
    now, before = _value(new), _value(old) if old is not None else None
    return now if now not in (before, "true") else None


def _value(obj: Object) -> str | None:
    return (obj["metadata"].get("annotations") or {}).get(CASCADE_ANNOTATION)


class CascadeNotice:
    name = "CascadeNotice"
    _rule = PluginRule(TENANTS, WRITES)

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        value = value_without_effect(attributes.object, attributes.old_object)
        if value is not None:
            attributes.context.warn(
                f'metadata.annotations[{CASCADE_ANNOTATION}]: the value "{value[:32]}" has no effect; '
                'only "true" allows that child tenants are deleted with the tenant'
            )

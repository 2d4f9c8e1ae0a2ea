"""The common part of the plugins that validate a Tenant's spec against the other Tenants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from admission.plugin_rule import TENANTS, WRITES, PluginRule, name_for_errors
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.request.context import User
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import TenantTree


class TenantSpecValidation(ABC):
    """A validating plugin that rejects a write of a Tenant with 422 if `_field_errors` finds any.

    It must run after TreeGuard, whose lock keeps the tree from changing until the write is done.
    """

    _rule = PluginRule(TENANTS, WRITES)

    def __init__(self, *, tree: TenantTree) -> None:
        self._tree = tree

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        old = summarize(attributes.old_object) if attributes.old_object is not None else None
        if field_errors := await self._field_errors(summarize(attributes.object), old, attributes.user):
            raise errors.Invalid(attributes.resource.group_kind, name_for_errors(attributes), field_errors)

    @abstractmethod
    async def _field_errors(self, new: TenantSummary, old: TenantSummary | None, user: User) -> Sequence[FieldError]:
        """The errors that the write introduces, with what `user` may know of them; `old` is None on create."""

"""What the handlers ask of admission. The implementation lives above this package."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from apiserver.meta.resource import Object, Resource
from apiserver.request.context import RequestContext, User

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """One write, as admission sees it. `object` is None on DELETE, `old_object` on CREATE; neither may be changed."""

    operation: Operation
    resource: Resource
    subresource: str = ""
    namespace: str
    name: str
    object: Object | None
    old_object: Object | None
    user: User
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """CreateOptions, UpdateOptions or DeleteOptions with kind and apiVersion (WIRE-H43)."""
    context: RequestContext
    """For warnings and audit annotations."""


class Admission(Protocol):
    async def mutate(self, attributes: Attributes) -> Object:
        """The object to go on with (CREATE and UPDATE only). Raises StatusError to refuse."""
        ...

    def validating(self, attributes: Attributes) -> AbstractAsyncContextManager[None]:
        """Entering raises StatusError to refuse; the write happens inside, so that a plugin can hold a lock until
        what it judged is stored."""
        ...


class AdmitAll:
    """Admission that refuses nothing."""

    async def mutate(self, attributes: Attributes) -> Object:
        assert attributes.object is not None
        return attributes.object

    def validating(self, attributes: Attributes) -> AbstractAsyncContextManager[None]:
        return nullcontext()

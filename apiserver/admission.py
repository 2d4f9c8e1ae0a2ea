"""The interface of admission that the handlers call; it is implemented above this package."""

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
    """The attributes of one write (admission.Attributes). `object` is None on DELETE, `old_object` on CREATE; neither
    may be changed."""

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
        """The object after mutating admission; on CREATE and UPDATE only. Raises StatusError to reject the request."""
        ...

    def validating(self, attributes: Attributes) -> AbstractAsyncContextManager[None]:
        """Validating admission as a context manager. Entering it raises StatusError to reject the request. The write
        happens inside, so that a plugin can hold a lock until the validated object is stored."""
        ...


class AdmitAll:
    """Admits every write unchanged."""

    async def mutate(self, attributes: Attributes) -> Object:
        assert attributes.object is not None
        return attributes.object

    def validating(self, attributes: Attributes) -> AbstractAsyncContextManager[None]:
        return nullcontext()

"""The rules of a kind in the generic store: defaults, validation and warnings. No I/O."""

from __future__ import annotations

from typing import Protocol

from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object, Resource


class Strategy(Protocol):
    @property
    def resource(self) -> Resource: ...

    def prepare_for_create(self, obj: Object) -> None:
        """Applies defaults in place and resets the fields that clients must not set. Raises BadRequest."""
        ...

    def prepare_for_update(self, new: Object, old: Object) -> None:
        """Does the same for an update, with fields that this endpoint must not change taken from `old`. Raises
        BadRequest."""
        ...

    def name_errors(self, obj: Object) -> list[FieldError]:
        """The errors in the name of a new object."""
        ...

    def validate(self, obj: Object) -> list[FieldError]:
        """All errors of a new object except those of its metadata, which the store validates."""
        ...

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """All errors of an update. Invalid content that was stored before and does not change is not an error."""
        ...

    def is_slow(self) -> bool:
        """True if the next validation takes long even for a small object, so that a thread has to do it."""
        ...

    def warnings(self, obj: Object) -> list[str]:
        """The warnings that the client gets with a valid write."""
        ...

"""What a kind adds to the generic store: defaults, validation, warnings. No I/O."""

from __future__ import annotations

from typing import Protocol

from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object, Resource


class Strategy(Protocol):
    @property
    def resource(self) -> Resource: ...

    def prepare_for_create(self, obj: Object) -> None:
        """Set in place what the client may not choose, and the defaults. Raises BadRequest."""
        ...

    def prepare_for_update(self, new: Object, old: Object) -> None:
        """The same for an update: what this endpoint may not change comes back from `old`. Raises BadRequest."""
        ...

    def name_errors(self, obj: Object) -> list[FieldError]:
        """What is wrong with the name of a new object."""
        ...

    def validate(self, obj: Object) -> list[FieldError]:
        """Every error of a new object's content; metadata is checked by the store."""
        ...

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """Every error of a change; what stood before and did not change is not judged again."""
        ...

    def warnings(self, obj: Object) -> list[str]:
        """What the caller should be told about a write that passes."""
        ...

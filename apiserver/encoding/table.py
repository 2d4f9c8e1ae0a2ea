"""Renders Tables: column definitions, rows of encoded cells, and ages in kubectl's format (WIRE-E10 to WIRE-E15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from apiserver.encoding.encoded_object import CachedObject, to_json
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Column, Resource

INCLUDES = ("None", "Metadata", "Object")

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
# (limit, step): an age below `limit` seconds changes every `step` seconds
_STEPS = (
    (10 * _MINUTE, 1),
    (8 * _HOUR, _MINUTE),
    (8 * _DAY, _HOUR),
    (8 * _YEAR, _DAY),
    (inf, _YEAR),
)
# with the descriptions that metav1.ObjectMeta has
NAME = Column(
    "Name",
    format="name",
    description=(
        "Name must be unique within a namespace. Is required when creating resources, although some resources may "
        "allow a client to request the generation of an appropriate name automatically. Name is primarily intended for "
        "creation idempotence and configuration definition. Cannot be updated. More info: "
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
    ),
)
_AGE = Column(
    "Age",
    description=(
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
        "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It "
        "is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More "
        "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    ),
)


def columns_of(resource: Resource) -> Sequence[Column]:
    """All columns, in order."""
    if resource.replaces_default_columns:
        return resource.columns
    narrow = (column for column in resource.columns if not column.priority)
    return (NAME, *narrow, _AGE, *(column for column in resource.columns if column.priority))


def column_definitions(resource: Resource) -> bytes:
    """The JSON of columnDefinitions. Every column has every key (WIRE-E11)."""
    return to_json(
        [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in columns_of(resource)
        ]
    )


def include_object(value: str) -> str:
    """Validate the query parameter includeObject and apply its default: None, Metadata or Object (WIRE-E14). Raises
    BadRequest."""
    if value and value not in INCLUDES:
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{value}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return value or "Metadata"


def age_cell(created: int, now: float) -> bytes:
    """The age of an object that was created at `created`. Both times are in seconds of the epoch."""
    return human_duration(int(now) - created).encode() if created else b"<unknown>"


def unchanged_until(objects: Iterable[CachedObject], now: float) -> float:
    """Returns the time at which the first age in the rows of `objects` changes, in seconds since the epoch; infinity if
    there are no ages."""
    soonest, second = inf, int(now)
    for created in {created for obj in objects for created in obj.cells[1::2] if isinstance(created, int)}:
        soonest = min(soonest, _age_unchanged_until(created, second))
        if soonest <= second + 1:
            break
    return soonest


def _age_unchanged_until(created: int, now: int) -> float:
    if not created:
        return inf
    seconds = now - created
    step = next(step for below, step in _STEPS if seconds < below)
    return created + (seconds // step + 1) * step


def human_duration(seconds: int) -> str:
    """A duration in its one or two largest units, in the format of `kubectl get` (duration.HumanDuration)."""
    if seconds < -1:
        # as in Kubernetes, clocks may differ by less than two seconds
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two_units(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two_units(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two_units(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two_units(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two_units(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")


def rows(
    objects: Sequence[CachedObject], contents: Sequence[bytes], now: float, *, around: tuple[bytes, bytes]
) -> bytes:
    """One row per object, as JSON with commas between them. The `object` of a row is one of `contents`, between the two
    constant texts `around`."""
    if not objects:
        return b""
    ages = _Ages(now)
    before_content, after_content = b',"object":' + around[0], around[1] + b'},{"cells":'
    # each byte is copied once: to render the rows one by one takes twice as long
    pieces: list[Any] = [b'{"cells":']
    for obj, content in zip(objects, contents, strict=True):
        cells = obj.cells
        if len(cells) == 3:
            # most kinds have one age, so this is JSON, a time, JSON
            before, created, after = cells
            pieces += before, ages[created], after, before_content, content, after_content
        else:
            pieces += (part if isinstance(part, bytes) else ages[part] for part in cells)
            pieces += before_content, content, after_content
    pieces[-1] = around[1] + b"}"
    return b"".join(pieces)


class _Ages(dict[bytes | int, bytes]):
    """Texts of ages by creation time: objects created in the same second share one."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self._now = now

    def __missing__(self, created: bytes | int) -> bytes:
        assert isinstance(created, int)
        age = self[created] = age_cell(created, self._now)
        return age

"""The objects that were sent to a client, so that it can be sent their deletion."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

_MOST_REMOVED: Final = 1000


@dataclass(slots=True)
class SentObjects:
    """The uids of objects by part and by `<namespace>/<name>`. `size` is their number, by which they are limited, with
    that of the remembered removals: a part without objects is none.

    A connection can break before the client has got its last events. So the last 1,000 removals are remembered, and
    taken back for a client that goes on from before them. `removals` is the number of all so far."""

    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    size: int = 0
    removals: int = 0
    _removed: deque[tuple[str, str, str]] = field(default_factory=deque)

    @classmethod
    def of(cls, parts: Mapping[str, Mapping[str, str]]) -> SentObjects:
        return cls({name: dict(objects) for name, objects in parts.items() if objects}, sum(map(len, parts.values())))

    def add(self, part: str, key: str, uid: str) -> None:
        objects = self.parts.setdefault(part, {})
        self.size += key not in objects
        objects[key] = uid

    def discard(self, part: str, key: str) -> None:
        objects = self.parts.get(part, {})
        if (uid := objects.pop(key, None)) is not None:
            self._remember_removal(part, key, uid)
            if not objects:
                del self.parts[part]

    def take(self, part: str) -> Sequence[tuple[str, str]]:
        """Removes a part. The keys and uids of its objects."""
        objects = self.parts.pop(part, {})
        for key, uid in objects.items():
            self._remember_removal(part, key, uid)
        return [*objects.items()]

    def restore(self, removals: int) -> bool:
        """Adds what was removed after so many removals. Returns False if some of that is forgotten: the client may have
        other objects, too."""
        count = self.removals - removals
        if count > len(self._removed):
            return False
        # the last object of a name first
        for part, key, uid in islice(reversed(self._removed), count):
            if key not in self.parts.get(part, {}):
                self.add(part, key, uid)
        return True

    def _remember_removal(self, part: str, key: str, uid: str) -> None:
        self.removals += 1
        self._removed.append((part, key, uid))
        if len(self._removed) > _MOST_REMOVED:
            self._removed.popleft()
            self.size -= 1

    def copy(self) -> SentObjects:
        return SentObjects.of(self.parts)


def union(several: Iterable[SentObjects]) -> SentObjects:
    found = SentObjects()
    for sent_objects in several:
        for name, objects in sent_objects.parts.items():
            found.parts.setdefault(name, {}).update(objects)
    found.size = sum(map(len, found.parts.values()))
    return found

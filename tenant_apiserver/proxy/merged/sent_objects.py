"""The objects that were sent to a client, so that it can be sent their deletion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class SentObjects:
    """The uids of objects by part and by `<namespace>/<name>`. `size` is their number, by which
    they are limited: a part without objects is none."""

    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    size: int = 0

    @classmethod
    def of(cls, parts: Mapping[str, Mapping[str, str]]) -> SentObjects:
        return cls({name: dict(objects) for name, objects in parts.items() if objects}, sum(map(len, parts.values())))

    def add(self, part: str, key: str, uid: str) -> None:
        objects = self.parts.setdefault(part, {})
        self.size += key not in objects
        objects[key] = uid

    def discard(self, part: str, key: str) -> None:
        objects = self.parts.get(part, {})
        if objects.pop(key, None) is not None:
            self.size -= 1
            if not objects:
                del self.parts[part]

    def take(self, part: str) -> Iterator[tuple[str, str]]:
        """Forgets a part. The keys and uids of its objects."""
        objects = self.parts.pop(part, {})
        self.size -= len(objects)
        return iter(objects.items())

    def copy(self) -> SentObjects:
        return SentObjects.of(self.parts)


def union(several: Iterable[SentObjects]) -> SentObjects:
    found = SentObjects()
    for sent_objects in several:
        for name, objects in sent_objects.parts.items():
            found.parts.setdefault(name, {}).update(objects)
    found.size = sum(map(len, found.parts.values()))
    return found

"""Several handlers share one informer, and each sees what it would see of an informer with a selector of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.event_handlers import ProjectionByNamespace
from registry.cluster.object_store import EncodedObjects, ListedObjects, encode_without_managed_fields, key_of
from registry.cluster.shared_events import SharedEvents


def kinds(obj: Object) -> Sequence[str]:
    return tuple(obj["metadata"].get("labels", {}))


def labelled(name: str, rv: int, *labels: str) -> Object:
    return {
        "metadata": {"namespace": "n", "name": name, "resourceVersion": str(rv), "labels": dict.fromkeys(labels, "")}
    }


class Versions(ProjectionByNamespace[str]):
    """The versions of the objects that concern a handler, and what it was told."""

    def __init__(self) -> None:
        super().__init__(lambda obj: obj["metadata"]["resourceVersion"], on_change=lambda key: None)
        self.told: list[tuple[str, int]] = []

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.told.append((type, rv))
        super().apply(type, obj, rv)

    def bookmark(self, rv: int) -> None:
        self.told.append(("BOOKMARK", rv))

    @property
    def found(self) -> dict[str, str]:
        return dict(self.values("n"))


def shared() -> tuple[SharedEvents, Versions, Versions]:
    events, red, blue = SharedEvents(kinds), Versions(), Versions()
    events.subscribe("red", red)
    events.subscribe("blue", blue)
    return events, red, blue


async def test_each_handler_gets_the_listed_objects_that_concern_it() -> None:
    events, red, blue = shared()
    listed = [labelled("a", 1, "red"), labelled("b", 2, "blue", "red"), labelled("c", 3, "green"), labelled("d", 4)]
    await events.replace(EncodedObjects([encode_without_managed_fields(each) for each in listed]), 5)
    assert (red.found, blue.found) == ({"a": "1", "b": "2"}, {"b": "2"})


async def test_objects_that_the_informer_has_judged_by_the_same_function_are_not_judged_again() -> None:
    events, red, blue = shared()
    listed = [labelled("a", 1, "red"), labelled("b", 2, "blue", "red")]
    encoded = {key_of(each): encode_without_managed_fields(each) for each in listed}
    judged = dict(zip(encoded, (("red",), ("blue",)), strict=True))
    await events.replace(ListedObjects(encoded, judged, kinds), 5)
    assert (red.found, blue.found) == ({"a": "1"}, {"b": "2"})
    events.apply("MODIFIED", labelled("b", 6, "red"), 6)
    assert blue.told == [("DELETED", 6)]
    await events.replace(ListedObjects(encoded, judged, str), 7)
    assert (red.found, blue.found) == ({"a": "1", "b": "2"}, {"b": "2"}), "those of another function are"


async def test_a_handler_gets_no_events_of_objects_that_do_not_concern_it() -> None:
    events, red, blue = shared()
    events.apply("ADDED", labelled("a", 1, "red"), 1)
    events.apply("MODIFIED", labelled("c", 2, "green"), 2)
    events.apply("DELETED", labelled("a", 3, "red"), 3)
    events.bookmark(4)
    assert red.told == [("ADDED", 1), ("DELETED", 3), ("BOOKMARK", 4)]
    assert blue.told == [("BOOKMARK", 4)]


async def test_an_object_that_passes_from_one_handler_to_another_is_deleted_for_the_first() -> None:
    events, red, blue = shared()
    events.apply("ADDED", labelled("a", 1, "red"), 1)
    events.apply("MODIFIED", labelled("a", 2, "blue"), 2)
    assert (red.told[-1], blue.told) == (("DELETED", 2), [("MODIFIED", 2)])
    assert (red.found, blue.found) == ({}, {"a": "2"})
    # and one that loses its label with the event of its deletion is deleted, too
    events.apply("DELETED", labelled("a", 3), 3)
    assert (blue.told[-1], blue.found) == (("DELETED", 3), {})
    assert len(red.told) == 2


class Failing(Versions):
    """A handler with a bug, as long as it is `broken`."""

    broken = True

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._fail()
        await super().replace(items, rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._fail()
        super().apply(type, obj, rv)

    def bookmark(self, rv: int) -> None:
        self._fail()
        super().bookmark(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self._fail()

    def _fail(self) -> None:
        if self.broken:
            raise RuntimeError("a bug")


async def test_a_handler_that_raises_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    events, failing, blue = SharedEvents(kinds), Failing(), Versions()
    events.subscribe("red", failing)
    events.subscribe("blue", blue)
    await events.replace([labelled("a", 1, "red", "blue")], 1)
    events.apply("MODIFIED", labelled("a", 2, "red", "blue"), 2)
    events.apply("DELETED", labelled("a", 3, "red", "blue"), 3)
    events.apply("ADDED", labelled("b", 4, "red", "blue"), 4)
    events.bookmark(5)
    events.set_cluster_error(None)
    assert blue.told == [("MODIFIED", 2), ("DELETED", 3), ("ADDED", 4), ("BOOKMARK", 5)]
    assert blue.found == {"b": "4"}
    # the log names the subscriber and the object, with the traceback
    assert events.failures == {"red": 6, "blue": 0}
    assert "a handler of red has failed, and may have missed MODIFIED of n/a" in caplog.text
    assert "RuntimeError: a bug" in caplog.text
    # and it gets what comes next
    failing.broken = False
    events.apply("MODIFIED", labelled("b", 6, "red", "blue"), 6)
    assert failing.found == {"b": "6"}

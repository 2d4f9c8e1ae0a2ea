"""The objects of a cache stay in the order of their keys, and a list that is shared stays as it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta.resource import Key, Resource
from apiserver.storage.sorted_objects import SortedObjects

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)


def thing(name: str, rv: int = 1, namespace: str = "a") -> CachedObject:
    return encode(THINGS, {"metadata": {"name": name, "namespace": namespace, "resourceVersion": str(rv)}})


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.booleans())))
def test_objects_are_found_by_key_and_in_order(changes: list[tuple[str, str, bool]]) -> None:
    objects = SortedObjects()
    expected: dict[Key, CachedObject] = {}
    for rv, (namespace, name, exists) in enumerate(changes, start=1):
        key = Key(namespace, name)
        if exists:
            expected[key] = thing(name, rv, namespace)
            objects.put(expected[key])
        elif key in expected:
            del expected[key]
            objects.remove(key)
        assert objects.by_key == expected
        assert list(objects.items) == [expected[key] for key in sorted(expected)]
        assert len(objects) == len(expected)


def test_a_shared_list_stays_as_it_is() -> None:
    objects = SortedObjects()
    x, y = thing("x"), thing("y")
    objects.put(x)
    objects.share()
    first = objects.items
    objects.put(y)
    second = objects.items
    objects.share()
    objects.put(thing("x", 2))
    objects.remove(y.key)
    assert (first, second) == ([x], [x, y])
    assert [each.rv for each in objects.items] == [2]


def test_a_list_that_is_not_shared_is_not_copied_again() -> None:
    objects = SortedObjects()
    objects.put(thing("x"))
    objects.share()
    objects.put(thing("y"))
    items = objects.items
    objects.put(thing("z"))
    assert objects.items is items

from __future__ import annotations

import tracemalloc

import pytest

from apiserver.meta.resource import Key, Object
from registry.cluster.object_store import EncodedObjects, ObjectStore, encode_without_managed_fields


def obj(name: str, **more: object) -> Object:
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": "1", "managedFields": [{}]}, **more}


def stored(name: str, **more: object) -> Object:
    """`obj` as a store has it."""
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": "1"}, **more}


def test_an_encoded_object_takes_no_more_memory_than_its_bytes() -> None:
    large = obj("a", data="x" * 5000)
    tracemalloc.start()
    try:
        encoded = encode_without_managed_fields(large)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(encoded) <= used < 1.1 * len(encoded)


def test_managed_fields_are_not_stored_and_the_argument_is_not_changed() -> None:
    original = obj("a")
    store = ObjectStore()
    store.put(original)
    assert store.get(Key("n", "a")) == {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}}
    assert "managedFields" in original["metadata"]


def test_replace_discards_other_objects_and_items_are_sorted_by_key() -> None:
    store = ObjectStore()
    store.put(obj("old"))
    store.replace({Key("n", name): encode_without_managed_fields(obj(name)) for name in ("b", "a")})
    assert [each["metadata"]["name"] for each in store.items()] == ["a", "b"]
    assert Key("n", "old") not in store


async def test_compression_saves_memory_and_does_not_change_the_objects() -> None:
    conditions = [{"type": kind, "status": "True", "reason": "Reconciled"} for kind in ("Ready", "Released", "Healthy")]
    store = ObjectStore()
    tracemalloc.start()
    try:
        store.replace(
            {
                Key("n", str(number)): encode_without_managed_fields(obj(str(number), status=conditions))
                for number in range(100)
            }
        )
        listed, before = list(store.items()), tracemalloc.get_traced_memory()[0]
        await store.compress()
        store.put(listed[7])
        await store.compress()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert list(store.items()) == listed
    assert before - after > 100 * 50


@pytest.mark.parametrize("before", ["list", "change", "compression"])
async def test_a_list_replaces_objects_however_they_were_stored(before: str) -> None:
    store = ObjectStore()
    for name in ("a", "b", "c"):
        if before == "change":
            store.put(obj(name))
        else:
            store.replace({Key("n", name): encode_without_managed_fields(obj(name))})
            if before == "compression":
                await store.compress()
    listed = [obj(name, status={"phase": "Active"}) for name in ("d", "e")]
    store.replace({Key("n", each["metadata"]["name"]): encode_without_managed_fields(each) for each in listed})
    expected = [stored(name, status={"phase": "Active"}) for name in ("d", "e")]
    assert list(store.items()) == expected
    await store.compress()
    store.put(obj("f"))
    assert list(store.items()) == [*expected, stored("f")]


async def test_objects_of_a_kind_are_stored_as_what_they_do_not_have_in_common() -> None:
    conditions = [{"type": kind, "status": "True", "reason": "Reconciled"} for kind in ("Ready", "Released", "Healthy")]
    encoded = [encode_without_managed_fields(obj(str(number), status=conditions)) for number in range(1000)]
    store = ObjectStore()
    tracemalloc.start()
    try:
        store.replace({Key("n", str(number)): each for number, each in enumerate(encoded)})
        await store.compress()
        stored = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # of each, its key and its place in a dictionary too
    assert stored < 1000 * 350
    assert [each["metadata"]["name"] for each in store.items()] == sorted(str(number) for number in range(1000))


def test_an_object_larger_than_a_dictionary_is_stored() -> None:
    store = ObjectStore()
    store.replace({Key("n", "a"): encode_without_managed_fields(obj("a", status={"message": "x" * 100_000}))})
    store.put(obj("b", status={"message": "y" * 100_000}))
    a, b = store.items()
    assert a == stored("a", status={"message": "x" * 100_000})
    assert b == stored("b", status={"message": "y" * 100_000})


def test_changing_an_object_does_not_change_the_store() -> None:
    items = EncodedObjects([encode_without_managed_fields(obj("a"))])
    items[0]["metadata"]["name"] = "changed"
    assert items[0]["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param({}, id="no metadata"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, id="no name"),
        pytest.param({"metadata": {"name": "a", "resourceVersion": "x"}}, id="a version that is not a number"),
    ],
)
def test_an_invalid_object_is_rejected(invalid: Object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any text
        encode_without_managed_fields(invalid)

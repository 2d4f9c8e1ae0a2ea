from __future__ import annotations

import tracemalloc

import pytest

from apiserver.meta.resource import Key, Object
from registry.cluster.object_store import EncodedObjects, ObjectStore, encode


def obj(name: str, **more: object) -> Object:
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": "1", "managedFields": [{}]}, **more}


def test_what_is_kept_takes_no_more_memory_than_its_bytes() -> None:
    large = obj("a", data="x" * 5000)
    tracemalloc.start()
    try:
        encoded = encode(large)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(encoded) <= held < 1.1 * len(encoded)


def test_managed_fields_are_not_kept_and_the_object_is_not_changed() -> None:
    given = obj("a")
    store = ObjectStore()
    store.put(given)
    assert store.get(Key("n", "a")) == {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}}
    assert "managedFields" in given["metadata"]


def test_a_store_is_replaced_by_what_was_encoded_and_gives_objects_in_key_order() -> None:
    store = ObjectStore()
    store.put(obj("old"))
    store.replace({Key("n", name): encode(obj(name)) for name in ("b", "a")})
    assert [each["metadata"]["name"] for each in store.items()] == ["a", "b"]
    assert Key("n", "old") not in store


async def test_what_was_listed_is_packed_without_a_difference_to_who_reads() -> None:
    conditions = [{"type": kind, "status": "True", "reason": "Reconciled"} for kind in ("Ready", "Released", "Healthy")]
    store = ObjectStore()
    tracemalloc.start()
    try:
        store.replace({Key("n", str(number)): encode(obj(str(number), status=conditions)) for number in range(100)})
        listed, before = list(store.items()), tracemalloc.get_traced_memory()[0]
        await store.compress()
        store.put(listed[7])
        await store.compress()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert list(store.items()) == listed
    assert before - after > 100 * 50


def test_who_looks_at_an_object_owns_it() -> None:
    items = EncodedObjects([encode(obj("a"))])
    items[0]["metadata"]["name"] = "changed"
    assert items[0]["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param({}, id="no metadata"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, id="no name"),
        pytest.param({"metadata": {"name": "a", "resourceVersion": "x"}}, id="a version that is no number"),
    ],
)
def test_what_is_no_object_is_refused(damaged: Object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is nobody's concern
        encode(damaged)

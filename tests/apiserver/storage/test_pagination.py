"""Continue tokens, and rewinding to older states (WIRE-D60)."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Key, Resource
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.pagination import (
    CacheState,
    ContinueToken,
    Snapshots,
    decode_token,
    encode_token,
    next_key,
)
from apiserver.storage.visibility import VisibleObjects

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=False)


def thing(name: str, rv: int) -> CachedObject:
    return encode(THINGS, {"metadata": {"name": name, "resourceVersion": str(rv)}})


def raw(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


names = st.text(alphabet="abc-.0", min_size=1, max_size=20)


@given(st.integers(1, 2**63 - 1), names, names)
def test_an_encoded_token_decodes_to_itself(rv: int, namespace: str, name: str) -> None:
    token = ContinueToken(rv, next_key(Key(namespace, name)))
    assert decode_token(encode_token(token), namespaced=True) == token


def test_a_token_has_the_format_of_kubernetes() -> None:
    text = encode_token(ContinueToken(5, next_key(Key("a", "x"))))
    document = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert document == {"v": "meta.k8s.io/v1", "rv": 5, "start": "a/x\0"}
    assert "=" not in text


def test_an_encoded_token_of_a_cluster_scoped_kind_decodes_to_itself() -> None:
    token = ContinueToken(-1, next_key(Key("", "x")))
    assert decode_token(encode_token(token), namespaced=False) == token


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("!", id="not base64"),
        pytest.param("a", id="half a character"),
        pytest.param("é", id="not ASCII"),
        pytest.param(raw("text"), id="not an object"),
        pytest.param(raw({"v": "v2", "rv": 1, "start": "a/x"}), id="another version"),
        pytest.param(raw({"v": "meta.k8s.io/v1", "rv": 0, "start": "a/x"}), id="version 0"),
        pytest.param(raw({"v": "meta.k8s.io/v1", "rv": 2**63, "start": "a/x"}), id="a version beyond 64 bits"),
        pytest.param(raw({"v": "meta.k8s.io/v1", "rv": True, "start": "a/x"}), id="a boolean as version"),
        pytest.param(raw({"v": "meta.k8s.io/v1", "rv": 1, "start": ""}), id="no start"),
        pytest.param(raw({"v": "meta.k8s.io/v1", "rv": 1, "start": "x"}), id="a start without a namespace"),
        pytest.param(raw({"v": "meta.k8s.io/v1", "rv": 1, "start": "a/b/c"}), id="a start with too many parts"),
        pytest.param(raw([[[]]] * 2), id="a list"),
    ],
)
def test_an_invalid_token_is_rejected(text: str) -> None:
    with pytest.raises(BadRequest) as error:
        decode_token(text, namespaced=True)
    assert error.value.message.startswith("invalid continue token: continue key is not valid: ")


@given(st.text(max_size=40))
def test_arbitrary_text_is_a_bad_request(text: str) -> None:
    with pytest.raises(BadRequest):
        decode_token(text, namespaced=True)


EVERY_KEY = Key("", ""), None


def test_an_older_state_is_without_later_events_of_every_type() -> None:
    a1, b1, b3, c2 = thing("a", 1), thing("b", 1), thing("b", 3), thing("c", 2)
    events = [CacheEvent("ADDED", c2), CacheEvent("MODIFIED", b3, b1), CacheEvent("DELETED", thing("a", 4), a1)]
    assert CacheState(1, (b3, c2), events).in_range(EVERY_KEY, THINGS) == [a1, b1]
    assert CacheState(3, (b3, c2), events[2:]).in_range(EVERY_KEY, THINGS) == [a1, b3, c2]


def test_an_older_state_shows_what_is_visible_in_a_range() -> None:
    a1, a2, b1, c1 = thing("a", 1), thing("a", 2), thing("b", 1), thing("c", 1)
    deletions = [CacheEvent("DELETED", thing(each.key.name, 3), each) for each in (b1, c1)]
    state = CacheState(1, (a2,), [CacheEvent("MODIFIED", a2, a1), *deletions])
    assert state.in_range((Key("", "b"), None), THINGS) == [b1, c1]
    assert state.in_range((Key("", ""), Key("", "c")), THINGS) == [a1, b1]
    assert state.in_range(EVERY_KEY, THINGS, VisibleObjects(frozenset({"a", "c"}))) == [a1, c1]
    assert state.in_range(EVERY_KEY, THINGS, VisibleObjects()) == []


changes = st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=20)


@given(changes, st.integers(0, 20))
def test_an_older_state_is_what_the_objects_were(made: list[tuple[str, bool]], kept: int) -> None:
    """Each change puts or deletes an object; the state after the first `kept` is computed from that after all."""
    states: list[dict[str, CachedObject]] = [{}]
    events = []
    for rv, (name, exists) in enumerate(made, start=1):
        before = states[-1].get(name)
        if before is None and not exists:
            states.append(states[-1])
            continue
        obj = thing(name, rv)
        events.append(CacheEvent("DELETED" if not exists else "MODIFIED" if before else "ADDED", obj, before))
        states.append({**states[-1], name: obj} if exists else {k: v for k, v in states[-1].items() if k != name})
    rv = min(kept, len(made))
    items = [states[-1][name] for name in sorted(states[-1])]
    state = CacheState(rv, items, [event for event in events if event.rv > rv])
    expected = [states[rv][name] for name in sorted(states[rv])]
    assert list(state.in_range(EVERY_KEY, THINGS)) == list(state.complete().items) == expected
    assert state.in_range((Key("", "c"), Key("", "e")), THINGS) == [each for each in expected if each.key.name in "cd"]


def test_snapshots_are_kept_for_five_minutes() -> None:
    now = 0.0
    snapshots = Snapshots(lambda: now)
    state = CacheState(1, ())
    snapshots.keep(state)
    now = 299.0
    assert snapshots.get(1) == state
    now = 300.0
    assert snapshots.get(1) is None


def test_only_the_latest_snapshots_are_kept() -> None:
    snapshots = Snapshots(lambda: 0.0)
    for rv in range(1, 100):
        snapshots.keep(CacheState(rv, ()))
    kept = [rv for rv in range(1, 100) if snapshots.get(rv) is not None]
    assert kept == list(range(84, 100))

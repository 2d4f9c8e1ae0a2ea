"""A write that is decided on a state which is known to be superseded is not sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ParamSpec

import pytest

from apiserver.meta.resource import Key, Object
from controller.runtime.freshness import Freshness, StaleObservation
from registry.cluster.interface import CONFIGMAPS, HELMRELEASES
from tests.fake_clock import FakeClock

A = Key("ns", "a")
P = ParamSpec("P")


@dataclass(frozen=True)
class Cache:
    """A cache that has processed all changes up to `resource_version`."""

    resource_version: int
    store: Mapping[Key, Object] = field(default_factory=dict)


def obj(version: int, *, namespace: str = "ns", name: str = "a") -> Object:
    return {"metadata": {"namespace": namespace, "name": name, "resourceVersion": str(version)}}


def is_stale(check: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> bool:
    try:
        check(*args, **kwargs)
    except StaleObservation:
        return True
    return False


@pytest.mark.parametrize(
    ("observed", "after", "expected"),
    [
        pytest.param(obj(9), 0.0, True, id="the version before our write"),
        pytest.param(obj(10), 0.0, False, id="the version of our write"),
        pytest.param(obj(11), 0.0, False, id="the version of a later write by another client"),
        pytest.param(obj(9, name="b"), 0.0, False, id="another name"),
        pytest.param(obj(9, namespace="other"), 0.0, False, id="another namespace"),
        pytest.param(obj(9), 9.9, True, id="within ten seconds"),
        pytest.param(obj(9), 10.0, False, id="after ten seconds, when a restore of etcd may have set versions back"),
    ],
)
def test_an_object_observed_as_it_was_before_our_own_last_write_is_stale(
    observed: Object, after: float, expected: bool
) -> None:
    clock = FakeClock()
    freshness = Freshness(clock=clock)
    freshness.record(HELMRELEASES, obj(10))
    clock.advance(after)

    assert is_stale(freshness.require_current, HELMRELEASES, observed) is expected
    assert not is_stale(freshness.require_current, CONFIGMAPS, observed)


def test_after_a_restore_of_etcd_the_version_of_the_latest_answer_counts() -> None:
    freshness = Freshness()
    freshness.record(HELMRELEASES, obj(1000))
    freshness.record(HELMRELEASES, obj(12))

    assert is_stale(freshness.require_current, HELMRELEASES, obj(11))
    assert not is_stale(freshness.require_current, HELMRELEASES, obj(12))


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        pytest.param(Cache(12, {A: obj(12)}), True, id="a later version"),
        pytest.param(Cache(12, {A: obj(10)}), False, id="the same version"),
        pytest.param(Cache(9, {A: obj(9)}), False, id="an earlier version than one that was read from the cluster"),
        pytest.param(Cache(12), False, id="it was deleted, which the answer of the cluster tells"),
    ],
)
def test_an_object_of_which_the_cache_has_a_later_version_by_now_is_stale(cache: Cache, expected: bool) -> None:
    freshness = Freshness({HELMRELEASES: cache})

    assert is_stale(freshness.require_current, HELMRELEASES, obj(10)) is expected


@pytest.mark.parametrize(
    ("reached", "after", "expected"),
    [
        pytest.param(9, 0.0, True, id="the cache has not reached our write"),
        pytest.param(10, 0.0, False, id="it has, so that somebody else has deleted the object"),
        pytest.param(9, 10.0, False, id="it has not within ten seconds"),
    ],
)
def test_an_object_is_absent_once_the_cache_has_reached_our_own_last_write(
    reached: int, after: float, expected: bool
) -> None:
    clock = FakeClock()
    freshness = Freshness({HELMRELEASES: Cache(reached)}, clock=clock)
    freshness.record(HELMRELEASES, obj(10))
    clock.advance(after)

    assert is_stale(freshness.require_absent, HELMRELEASES, A) is expected
    assert not is_stale(freshness.require_absent, HELMRELEASES, Key("ns", "b"))
    assert not is_stale(Freshness().require_absent, HELMRELEASES, A)

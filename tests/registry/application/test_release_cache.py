from __future__ import annotations

import copy
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.application.release_cache import ReleaseCache, trim_release
from registry.tenant.convert import to_release, to_tenant
from registry.tenant.release_settings import ReleaseSettings

KEY = Key("tenant-root", "tenant-alice")
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "InstallSucceeded",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
STATUS = {"conditions": [CONDITION], "lastAttemptedRevision": "1.9.3", "history": [{"digest": "sha256:0"}]}


class FakeStore:
    """The store of the HelmRelease informer."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}

    def get(self, key: Key) -> Object | None:
        return copy.deepcopy(self.objects.get(key))


def release(version: int, name: str = "alice") -> Object:
    obj = to_release({"metadata": {"name": name, "namespace": "tenant-root"}, "spec": {}}, None, ReleaseSettings())
    obj["metadata"] |= {"resourceVersion": str(version), "managedFields": [{}]}
    return obj | {"status": STATUS}


def test_stored_and_recent_releases_are_found_by_version() -> None:
    store = FakeStore()
    store.objects[Key("tenant-root", "tenant-alice")] = release(7)
    releases = ReleaseCache(store)
    releases.add(KEY, release(8))
    found = [releases.get(KEY, version) for version in ("7", "8", "9")]
    assert [each["metadata"]["resourceVersion"] if each else None for each in found] == ["7", "8", None]


def test_cached_releases_have_no_status_and_managed_fields() -> None:
    store = FakeStore()
    store.objects[Key("tenant-root", "tenant-alice")] = release(7)
    releases = ReleaseCache(store)
    releases.add(KEY, release(8))
    for version in ("7", "8"):
        found: Any = releases.get(KEY, version)
        assert "status" not in found
        assert "managedFields" not in found["metadata"]
        assert found["spec"] == release(7)["spec"]


def test_only_the_results_of_recent_calls_are_cached() -> None:
    releases = ReleaseCache(FakeStore())
    for number in range(300):
        releases.add(Key("tenant-root", f"t{number}"), release(1, f"t{number}"))
    assert releases.get(Key("tenant-root", "t0"), "1") is None
    assert releases.get(Key("tenant-root", "t299"), "1") is not None


def test_large_results_are_cached_as_long_as_there_is_room() -> None:
    """ATTACK-19: 256 objects of the largest size would need 400 MB."""
    releases = ReleaseCache(FakeStore())
    for number in range(40):
        large = release(1, f"t{number}")
        large["metadata"]["annotations"] = {"a": "x" * 1_000_000}
        releases.add(Key("tenant-root", f"t{number}"), large)
    cached = [number for number in range(40) if releases.get(Key("tenant-root", f"t{number}"), "1")]
    assert cached == list(range(24, 40))
    releases.add(Key("tenant-root", "t39"), release(2, "t39"))
    assert releases.get(Key("tenant-root", "t39"), "2") is not None
    assert releases.get(Key("tenant-root", "t24"), "1") is not None


def test_a_trimmed_release_converts_to_the_same_tenant() -> None:
    whole = release(7)
    before = copy.deepcopy(whole)
    assert to_tenant(trim_release(whole)) == to_tenant(whole)
    assert set(trim_release(whole)["status"]) == {"conditions", "lastAttemptedRevision"}
    assert whole == before


def test_a_release_without_a_status_is_not_trimmed() -> None:
    without_status = {"metadata": {"name": "tenant-alice"}}
    assert trim_release(without_status) == without_status

from __future__ import annotations

import copy
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.tenant.convert import to_release, to_tenant
from registry.tenant.release_cache import ReleaseCache, trim_release
from registry.tenant.release_settings import ReleaseSettings

KEY = Key("tenant-root", "alice")
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "InstallSucceeded",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
STATUS = {"conditions": [CONDITION], "lastAttemptedRevision": "1.9.3", "history": [{"digest": "sha256:0"}]}


class Seen:
    """The store of an informer: by the keys of HelmReleases."""

    def __init__(self) -> None:
        self.held: dict[Key, Object] = {}

    def get(self, key: Key) -> Object | None:
        return copy.deepcopy(self.held.get(key))


def release(version: int, name: str = "alice") -> Object:
    made = to_release({"metadata": {"name": name, "namespace": "tenant-root"}, "spec": {}}, None, ReleaseSettings())
    made["metadata"] |= {"resourceVersion": str(version), "managedFields": [{}]}
    return made | {"status": STATUS}


def test_what_the_informer_saw_and_what_a_call_brought_are_found_by_version() -> None:
    seen = Seen()
    seen.held[Key("tenant-root", "tenant-alice")] = release(7)
    releases = ReleaseCache(seen)
    releases.add(KEY, release(8))
    found = [releases.get(KEY, version) for version in ("7", "8", "9")]
    assert [each["metadata"]["resourceVersion"] if each else None for each in found] == ["7", "8", None]


def test_a_put_starts_without_status_and_managed_fields() -> None:
    seen = Seen()
    seen.held[Key("tenant-root", "tenant-alice")] = release(7)
    releases = ReleaseCache(seen)
    releases.add(KEY, release(8))
    for version in ("7", "8"):
        found: Any = releases.get(KEY, version)
        assert "status" not in found
        assert "managedFields" not in found["metadata"]
        assert found["spec"] == release(7)["spec"]


def test_only_recent_calls_are_remembered() -> None:
    releases = ReleaseCache(Seen())
    for number in range(300):
        releases.add(Key("tenant-root", f"t{number}"), release(1, f"t{number}"))
    assert releases.get(Key("tenant-root", "t0"), "1") is None
    assert releases.get(Key("tenant-root", "t299"), "1") is not None


def test_a_slim_release_shows_the_same_tenant() -> None:
    whole = release(7)
    before = copy.deepcopy(whole)
    assert to_tenant(trim_release(whole)) == to_tenant(whole)
    assert set(trim_release(whole)["status"]) == {"conditions", "lastAttemptedRevision"}
    assert whole == before


def test_a_release_without_a_status_stays_as_it_is() -> None:
    bare = {"metadata": {"name": "tenant-alice"}}
    assert trim_release(bare) == bare

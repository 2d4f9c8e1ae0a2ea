"""Writers that write until their server dies, and a check that every acknowledged write is stored completely.

Each object has a single writer. So its stored form is that of the last acknowledged write, or of a later write that got
no response.
"""

from __future__ import annotations

import hashlib
import http.client
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import manifest
from tests.faults.support.sizes import size

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
ABSENT = 0
_LIVE = 4
# between two writes of a storm that outlasts restarts: each Tenant that is created and deleted occupies the
# controllers of a real cluster for half a second
_PAUSE_SECONDS = size(short=0.2, full=0.0)
_TEXT = 2000


class WrittenKind(Protocol):
    """A kind of objects that writers write; `path` is that of the collection."""

    path: str

    def body(self, name: str, round_number: int, text: str) -> Object:
        """An object that has the round number and the text in several fields."""
        ...

    def is_consistent(self, obj: Object) -> bool:
        """True if all fields of a stored object are of the same round."""
        ...


def _annotations(round_number: int, text: str) -> dict[str, str]:
    return {"round": str(round_number), "text": text, "digest": hashlib.sha256(text.encode()).hexdigest()}


def _round_of(obj: Object) -> int:
    return int(obj["metadata"]["annotations"]["round"])


def _text_matches_digest(obj: Object) -> bool:
    annotations = obj["metadata"]["annotations"]
    return bool(hashlib.sha256(annotations["text"].encode()).hexdigest() == annotations["digest"])


class TenantKind:
    path = tenants_path(ROOT)

    def body(self, name: str, round_number: int, text: str) -> Object:
        spec = {"resourceQuotas": {"cpu": str(round_number)}}
        return manifest(name, spec=spec, annotations=_annotations(round_number, text))

    def is_consistent(self, obj: Object) -> bool:
        return _text_matches_digest(obj) and obj["spec"]["resourceQuotas"] == {"cpu": str(_round_of(obj))}


class ConfigMapKind:
    path = f"/api/v1/namespaces/{ROOT}/configmaps"

    def body(self, name: str, round_number: int, text: str) -> Object:
        metadata = {"name": name, "annotations": _annotations(round_number, text)}
        return {"metadata": metadata, "data": {"round": str(round_number), "text": text}}

    def is_consistent(self, obj: Object) -> bool:
        annotations = obj["metadata"]["annotations"]
        return _text_matches_digest(obj) and obj["data"] == {"round": annotations["round"], "text": annotations["text"]}


@dataclass(slots=True)
class ExpectedObject:
    """The states in which one object may be stored: the last acknowledged round, or ABSENT after an acknowledged
    deletion, or one of the rounds that got no response."""

    kind: WrittenKind
    acknowledged: int = ABSENT
    uid: str = ""
    version: int = 0
    unanswered: set[int] = field(default_factory=set)

    def mismatch(self, found: Object | None) -> str:
        """Describes how the stored object differs from the expectation; "" if it does not."""
        is_deleted = found is None or "deletionTimestamp" in found["metadata"]
        round_number = ABSENT if is_deleted else _round_of(found or {})
        if round_number not in {self.acknowledged, *self.unanswered}:
            return f"round {round_number} is stored, {self.acknowledged} acknowledged, {self.unanswered} unanswered"
        if found is None or is_deleted:
            return ""
        metadata = found["metadata"]
        if not self.kind.is_consistent(found):
            return "it is a mixture of several rounds"
        if self.uid and round_number and metadata["uid"] != self.uid:
            return "it has another uid"
        return "its resourceVersion decreased" if int(metadata["resourceVersion"]) < self.version else ""


class Writer:
    """Creates, updates and deletes a few objects of its own. Names are never reused."""

    def __init__(self, prefix: str, kind: WrittenKind, seed: int) -> None:
        self._prefix = prefix
        self._kind = kind
        self._rng = random.Random(seed)
        self._created = 0
        self._round = 0
        self.objects: dict[str, ExpectedObject] = {}
        self.acknowledged = 0
        # requests without a response, and with a 5xx
        self.unanswered_requests = self.server_errors = 0
        self.rejections: list[str] = []

    def write(self, client: Client) -> None:
        """Writes until a request gets no response."""
        try:
            while True:
                self._write_once(client)
        except (OSError, http.client.HTTPException):
            return

    def write_until(self, over: threading.Event, client: Client) -> None:
        """Writes until the event is set, while servers may be restarted."""
        while not over.wait(_PAUSE_SECONDS):
            try:
                self._write_once(client)
            except (OSError, http.client.HTTPException):
                self.unanswered_requests += 1

    def _write_once(self, client: Client) -> None:
        self._round += 1
        live = [name for name, expected in self.objects.items() if expected.acknowledged and not expected.unanswered]
        text = self._rng.randbytes(self._rng.randrange(_TEXT)).hex()
        if not live or (len(live) < _LIVE and self._rng.random() < 0.5):
            self._created += 1
            name = f"{self._prefix}{self._created}"
            body = self._kind.body(name, self._round, text)
            self._send(client, name, self._round, "POST", self._kind.path, body)
            return
        name = self._rng.choice(live)
        path, body = f"{self._kind.path}/{name}", self._kind.body(name, self._round, text)
        if self._rng.random() < 0.2:
            self._send(client, name, ABSENT, "DELETE", path)
        elif self._rng.random() < 0.5:
            self._send(client, name, self._round, "PATCH", path, body, MERGE)
        else:
            self._send(client, name, self._round, "PUT", path, body)

    def _send(
        self, client: Client, name: str, wanted: int, method: str, path: str, body: Object | None = None, kind: str = ""
    ) -> None:
        expected = self.objects.setdefault(name, ExpectedObject(self._kind))
        expected.unanswered.add(wanted)
        answer = client.request(method, path, body, content_type=kind or "application/json")
        if 200 <= answer.status < 300:
            self._acknowledge(expected, wanted, answer)
        elif answer.status < 500:
            # a rejected write must not be stored
            expected.unanswered.discard(wanted)
            self.rejections.append(f"{method} {path}: {answer.status} {answer.content[:300]!r}")
        else:
            self.server_errors += 1

    def _acknowledge(self, expected: ExpectedObject, wanted: int, answer: Response) -> None:
        self.acknowledged += 1
        expected.acknowledged, expected.unanswered = wanted, set()
        if wanted != ABSENT:
            metadata = answer.json()["metadata"]
            expected.uid, expected.version = metadata["uid"], int(metadata["resourceVersion"])


class WriteStorm:
    """Several writers, which survive restarts of the server."""

    def __init__(self, seed: int, kinds: Sequence[WrittenKind], *, writers: int) -> None:
        self._prefix = f"s{seed:x}w"
        self._writers = [
            Writer(f"{self._prefix}{number}x", kinds[number % len(kinds)], seed + number) for number in range(writers)
        ]
        self._kinds = kinds

    @property
    def acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self._writers)

    @property
    def unanswered(self) -> int:
        return sum(writer.unanswered_requests + writer.server_errors for writer in self._writers)

    def start_writers(self, client: Client) -> list[threading.Thread]:
        """Starts threads that end when the server does."""
        return _started([threading.Thread(target=writer.write, args=(client,)) for writer in self._writers])

    def start_writers_until(self, over: threading.Event, client: Client) -> list[threading.Thread]:
        return _started([threading.Thread(target=writer.write_until, args=(over, client)) for writer in self._writers])

    def check(self, client: Client) -> None:
        """Fails unless exactly the acknowledged writes are stored, each object with a resourceVersion of its own.
        Accepts the stored form of unanswered writes."""
        rejections = [each for writer in self._writers for each in writer.rejections]
        assert not rejections, rejections
        items = [item for kind in self._kinds for item in client.get(kind.path).expect(200)["items"]]
        found = {item["metadata"]["name"]: item for item in items if item["metadata"]["name"].startswith(self._prefix)}
        objects = {name: expected for writer in self._writers for name, expected in writer.objects.items()}
        mismatches = {name: text for name, expected in objects.items() if (text := expected.mismatch(found.get(name)))}
        assert not mismatches, mismatches
        assert found.keys() <= objects.keys(), found.keys() - objects.keys()
        versions = [item["metadata"]["resourceVersion"] for item in items]
        assert len(set(versions)) == len(versions), sorted(versions)
        self._adopt_found(found)

    def clear(self, client: Client) -> None:
        """Requests the deletion of all objects of the writers."""
        for kind in self._kinds:
            for item in client.get(kind.path).expect(200)["items"]:
                if item["metadata"]["name"].startswith(self._prefix):
                    client.request("DELETE", f"{kind.path}/{item['metadata']['name']}")

    def _adopt_found(self, found: dict[str, Object]) -> None:
        """Expects what is stored now: no write is in flight."""
        for writer in self._writers:
            for name, expected in tuple(writer.objects.items()):
                obj = found.get(name)
                if obj is None:
                    del writer.objects[name]
                    continue
                is_deleted = "deletionTimestamp" in obj["metadata"]
                expected.acknowledged = ABSENT if is_deleted else _round_of(obj)
                expected.unanswered = set()
                expected.uid, expected.version = obj["metadata"]["uid"], int(obj["metadata"]["resourceVersion"])


def _started(threads: list[threading.Thread]) -> list[threading.Thread]:
    for thread in threads:
        thread.start()
    return threads

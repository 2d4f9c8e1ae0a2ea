"""Writers that go on until their server is gone, and what they were told: it must be there afterwards, and whole.

An object is written by one writer only, so what may be found of it is what was acknowledged last, or what was asked
for after that and never answered.
"""

from __future__ import annotations

import hashlib
import http.client
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.e2e.support.clusters import ROOT, tenants_path
from tests.e2e.support.https_client import Client, Response
from tests.e2e.support.tenants import manifest

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
ABSENT = 0
_LIVE = 4
_TEXT = 2000


class WrittenKind(Protocol):
    path: str

    def body(self, name: str, round_number: int, text: str) -> Object:
        """An object in which everything is about one round."""
        ...

    def is_consistent(self, obj: Object) -> bool: ...


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
    """Of one object: the round that was acknowledged, ABSENT once its deletion was, and those whose fate is unknown."""

    kind: WrittenKind
    acknowledged: int = ABSENT
    uid: str = ""
    version: int = 0
    unanswered: set[int] = field(default_factory=set)

    def mismatch(self, found: Object | None) -> str:
        """What is wrong with what was found, empty if nothing is."""
        is_deleted = found is None or "deletionTimestamp" in found["metadata"]
        round_number = ABSENT if is_deleted else _round_of(found or {})
        if round_number not in {self.acknowledged, *self.unanswered}:
            return f"round {round_number} was found, {self.acknowledged} acknowledged, {self.unanswered} asked for"
        if found is None or is_deleted:
            return ""
        metadata = found["metadata"]
        if not self.kind.is_consistent(found):
            return "it is half written"
        if self.uid and round_number and metadata["uid"] != self.uid:
            return "it is another object of that name"
        return "its version went back" if int(metadata["resourceVersion"]) < self.version else ""


class Writer:
    """Creates, changes and deletes a few objects of its own at a time. Names are never used twice."""

    def __init__(self, prefix: str, kind: WrittenKind, seed: int) -> None:
        self._prefix = prefix
        self._kind = kind
        self._chance = random.Random(seed)
        self._made = 0
        self._round = 0
        self.objects: dict[str, ExpectedObject] = {}
        self.acknowledged = 0
        # requests that no answer came to, and those that came to a 5xx
        self.unanswered_requests = self.server_errors = 0
        self.rejections: list[str] = []

    def write(self, client: Client) -> None:
        """Until the server is gone."""
        try:
            while True:
                self._write_once(client)
        except (OSError, http.client.HTTPException):
            return

    def write_until(self, over: threading.Event, client: Client) -> None:
        """Whatever becomes of servers meanwhile."""
        while not over.is_set():
            try:
                self._write_once(client)
            except (OSError, http.client.HTTPException):
                self.unanswered_requests += 1

    def _write_once(self, client: Client) -> None:
        self._round += 1
        live = [name for name, expected in self.objects.items() if expected.acknowledged and not expected.unanswered]
        text = self._chance.randbytes(self._chance.randrange(_TEXT)).hex()
        if not live or (len(live) < _LIVE and self._chance.random() < 0.5):
            self._made += 1
            name = f"{self._prefix}{self._made}"
            body = self._kind.body(name, self._round, text)
            self._send(client, name, self._round, "POST", self._kind.path, body)
            return
        name = self._chance.choice(live)
        path, body = f"{self._kind.path}/{name}", self._kind.body(name, self._round, text)
        if self._chance.random() < 0.2:
            self._send(client, name, ABSENT, "DELETE", path)
        elif self._chance.random() < 0.5:
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
            # refused: nothing of it may be found
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
    """Writers of several kinds, over the lives of several servers."""

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
        """Threads that end once the server is gone."""
        return _started([threading.Thread(target=writer.write, args=(client,)) for writer in self._writers])

    def start_writers_until(self, over: threading.Event, client: Client) -> list[threading.Thread]:
        return _started([threading.Thread(target=writer.write_until, args=(over, client)) for writer in self._writers])

    def check(self, client: Client) -> None:
        """Everything that was acknowledged is there, nothing else is, and no version was given out twice."""
        refused = [each for writer in self._writers for each in writer.rejections]
        assert not refused, refused
        items = [item for kind in self._kinds for item in client.get(kind.path).expect(200)["items"]]
        found = {item["metadata"]["name"]: item for item in items if item["metadata"]["name"].startswith(self._prefix)}
        objects = {name: expected for writer in self._writers for name, expected in writer.objects.items()}
        wrong = {name: what for name, expected in objects.items() if (what := expected.mismatch(found.get(name)))}
        assert not wrong, wrong
        assert found.keys() <= objects.keys(), found.keys() - objects.keys()
        versions = [item["metadata"]["resourceVersion"] for item in items]
        assert len(set(versions)) == len(versions), sorted(versions)
        self._adopt_found(found)

    def clear(self, client: Client) -> None:
        """Have everything deleted that the storm has made."""
        for kind in self._kinds:
            for item in client.get(kind.path).expect(200)["items"]:
                if item["metadata"]["name"].startswith(self._prefix):
                    client.request("DELETE", f"{kind.path}/{item['metadata']['name']}")

    def _adopt_found(self, found: dict[str, Object]) -> None:
        """What was unknown is known now."""
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

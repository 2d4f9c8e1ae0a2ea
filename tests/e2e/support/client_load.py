"""Clients that write and watch objects while something happens to the server, as controllers of others would."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT
from tests.e2e.support.http.https_client import Client

_RETRIED = (409, 429, 500, 502, 503, 504)
_MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, kw_only=True)
class LoadedKind:
    """The kind that a client writes: it creates objects with `spec`, in which `{name}` stands for the name, and changes
    `patch` of it."""

    kind: str
    plural: str
    spec: dict[str, Any]
    patch: dict[str, Any]

    def path(self, name: str = "") -> str:
        """That of an object in the root Tenant's namespace, or of all in the cluster."""
        return f"{GROUP_VERSION}/namespaces/{ROOT}/{self.plural}/{name}" if name else f"{GROUP_VERSION}/{self.plural}"

    def object(self, name: str) -> dict[str, Any]:
        spec = {
            field: value.format(name=name) if isinstance(value, str) else value for field, value in self.spec.items()
        }
        metadata = {"name": name, "namespace": ROOT}
        return {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": self.kind, "metadata": metadata, "spec": spec}


TENANTS = LoadedKind(
    kind="Tenant", plural="tenants", spec={"host": "{name}.example.org"}, patch={"resourceQuotas": {"cpu": "1"}}
)
POSTGRES = LoadedKind(kind="Postgres", plural="postgreses", spec={"replicas": 2, "size": "3Gi"}, patch={"replicas": 5})


@dataclass
class ClientLoad:
    """`acknowledged` are the names of objects whose creation was answered with 201, `patched` those with 200, and
    `refused` the statuses of answers after which a client tries again. `seen` are the names that the watch has shown,
    and `watches` how often it began.

    `finds_late` is true while a server answers that does not find what was created just now: cozystack-api reads the
    object that it patches from the cache of its manager's client (Get and Update in pkg/registry/apps/application), and
    answers 404 until the watch has shown the HelmRelease. Ours reads from the cluster what its cache does not have.
    """

    client: Client
    prefix: str
    kind: LoadedKind = TENANTS
    finds_late: bool = False
    acknowledged: list[str] = field(default_factory=list)
    patched: list[str] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    watches: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=each, daemon=True) for each in (self._write, self._watch)]
        for each in threads:
            each.start()
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.summary()}") from error
        finally:
            self._stop.set()
            for each in threads:
                each.join(timeout=120)
        assert self.unexpected == [], self.summary()

    def summary(self) -> str:
        counts = {status: self.refused.count(status) for status in sorted(set(self.refused))}
        return (
            f"{len(self.acknowledged)} created, {len(self.patched)} patched, sent again after {counts}, "
            f"{self.watches} watches, {len(self.seen)} seen, unexpected: {self.unexpected[:5]}"
        )

    def _write(self) -> None:
        for number in count():
            if self._stop.is_set():
                return
            name = f"{self.prefix}{number}"
            collection = self.kind.path(name).removesuffix(f"/{name}")
            if self._sent("POST", collection, self.kind.object(name), 201):
                self.acknowledged.append(name)
                if self._sent("PATCH", self.kind.path(name), {"spec": self.kind.patch}, 200):
                    self.patched.append(name)
            self._stop.wait(0.1)

    def _sent(self, method: str, path: str, body: dict[str, Any], expected: int) -> bool:
        """Sends until there is an answer that is final."""
        kind = _MERGE_PATCH if method == "PATCH" else "application/json"
        for _ in range(100):
            try:
                answer = self.client.request(method, path, body, content_type=kind)
            except OSError:
                self.refused.append(0)
                continue
            if answer.status == expected:
                return True
            if not self._is_passing(method, answer.status):
                self.unexpected.append(f"{method} {path}: {answer.status} {answer.content[:300]!r}")
                return False
            self.refused.append(answer.status)
            self._stop.wait(0.1)
        self.unexpected.append(f"{method} {path}: no answer")
        return False

    def _watch(self) -> None:
        """Lists and watches, and again whenever the watch ends, as client-go's reflector does."""
        while not self._stop.is_set():
            listed = self.client.get(self.kind.path())
            if listed.status != 200:
                self.refused.append(listed.status)
                self._stop.wait(0.2)
                continue
            found = listed.json()
            self.seen |= {each["metadata"]["name"] for each in found["items"]}
            self._follow(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "5"}
        self.watches += 1
        try:
            with self.client.stream(self.kind.path(), query=query, seconds=10) as frames:
                for frame in frames:
                    if frame["type"] == "ERROR":
                        return
                    self.seen.add(frame["object"]["metadata"].get("name", ""))
        except (OSError, AssertionError):
            self._stop.wait(0.2)

    def _is_passing(self, method: str, status: int) -> bool:
        if status == 404:
            return self.finds_late and method == "PATCH"
        return status in _RETRIED and not (status == 409 and method == "POST")

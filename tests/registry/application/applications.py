"""A definition for tests, its HelmReleases, and a world of applications over a fake cluster."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any, cast

from admission.cel.library.regex import matches
from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from registry.application.convert import ReleaseDefaults, to_new_release
from registry.application.definition import ApplicationDefinition, parse_definition
from registry.application.feed import ReleaseRouter
from registry.application.kinds import ApplicationKinds, ApplicationParts, ServedApplication
from registry.application.release_cache import ReleaseCache, trim_release
from registry.cluster.object_store import ObjectStore
from tests.registry.tenant.release_cluster import FakeReleaseCluster

NAMESPACE = "tenant-acme"
SCHEMA = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "default": 2, "minimum": 1},
        "size": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+(Gi)?$", "default": "1Gi"},
        "storageClass": {
            "type": "string",
            "default": "",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "storageClass is immutable"}],
        },
        "resourcesPreset": {"type": "string", "default": "t1.nano", "enum": ["t1.nano", "t1.micro", "nano"]},
        "tls": {"type": "object", "default": {}, "properties": {"enabled": {"type": "boolean", "default": False}}},
        "users": {
            "type": "object",
            "default": {},
            "additionalProperties": {
                "type": "object",
                "properties": {"admin": {"type": "boolean", "default": False}, "password": {"type": "string"}},
            },
        },
        "hosts": {
            "type": "array",
            "default": [],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SHOWN_DEFAULTS = {
    "replicas": 2,
    "size": "1Gi",
    "storageClass": "",
    "resourcesPreset": "t1.nano",
    "tls": {"enabled": False},
    "users": {},
    "hosts": [],
}


def definition_object(
    name: str = "redis", *, kind: str = "Redis", plural: str = "redises", prefix: str = "redis-", **application: Any
) -> Object:
    """The ApplicationDefinition as the cluster has it."""
    return {
        "apiVersion": "cozystack.io/v1alpha1",
        "kind": "ApplicationDefinition",
        "metadata": {"name": name, "uid": f"u-{name}", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1},
        "spec": {
            "application": {
                "kind": kind,
                "plural": plural,
                "singular": kind.lower(),
                "openAPISchema": json.dumps(SCHEMA),
                **application,
            },
            "release": {
                "prefix": prefix,
                "labels": {"sharding.fluxcd.io/key": "tenants"},
                "chartRef": {"kind": "ExternalArtifact", "name": f"chart-{name}", "namespace": "cozy-system"},
            },
        },
    }


def definition(**changes: Any) -> ApplicationDefinition:
    return parse_definition(definition_object(**changes), matches)


def application(name: str = "cache", spec: Object | None = None, **metadata: Any) -> Object:
    """An application as a client sends it; without `spec` it has none."""
    obj: Object = {"metadata": {"name": name, "namespace": NAMESPACE, **metadata}}
    return obj if spec is None else {**obj, "spec": spec}


def release_of(name: str = "cache", spec: Object | None = None, *, of: Object | None = None) -> Object:
    """A stored HelmRelease, without resourceVersion. `of` is the definition of its kind."""
    kind = parse_definition(of, matches) if of is not None else definition()
    release = to_new_release(application(name, spec), kind, ReleaseDefaults())
    release["metadata"] |= {"uid": f"u-{name}", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    return release


class ApplicationWorld:
    """Kinds over a fake cluster. `deliver` hands the pending events to the router."""

    def __init__(self) -> None:
        self.cluster = FakeReleaseCluster()
        self.store = ObjectStore()
        self.router = ReleaseRouter(store=self.store)
        self.caches: list[WatchCache] = []
        self.changes = 0
        self.kinds = ApplicationKinds(
            ApplicationParts(
                cluster=cast(Any, self.cluster),
                router=self.router,
                releases=ReleaseCache(self.store),
                compiler=SchemaRuleCompiler(),
                matches=matches,
                caches=WatchCache,
                visibility=lambda plural: cast(VisibilitySource, None),
            )
        )
        self.kinds.on_change = self._count

    def _count(self) -> None:
        self.changes += 1

    async def start(self, *definitions: Object) -> None:
        await self.router.replace([], self.cluster.rv)
        await self.follow(*definitions)

    async def follow(self, *definitions: Object) -> None:
        await self.kinds.follow({each["metadata"]["name"]: each for each in definitions})

    def served(self, name: str = "redis") -> ServedApplication:
        return self.kinds.served[name]

    def cache(self, name: str = "redis") -> WatchCache:
        return self.served(name).feed.cache

    def shown(self, name: str = "redis") -> list[str]:
        """The names of the applications of a kind."""
        return [each.key.name for each in self.cache(name)]

    def deliver(self) -> None:
        for type_, obj, rv in self.cluster.events:
            trimmed = trim_release(copy.deepcopy(obj))
            if type_ == "DELETED":
                self.store.remove(trimmed)
            else:
                self.store.put(trimmed)
            self.router.apply(type_, trimmed, rv)
        self.cluster.events.clear()


def request(verb: str) -> RequestContext:
    return cast(RequestContext, SimpleNamespace(info=SimpleNamespace(verb=verb), warn=lambda text: None))


KEY = Key(NAMESPACE, "cache")

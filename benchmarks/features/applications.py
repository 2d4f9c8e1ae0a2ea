"""python -m benchmarks.features.applications [--tenants 10000] [--applications 40000]: the caches of Tenants and
applications in one process, without HTTP and without a cluster: their memory, and the processor time of reads, which
hardly depends on what else the machine does."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import orjson

from admission.cel.library.regex import matches
from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.meta.resource import Key
from apiserver.request.options import ListOptions
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from benchmarks.command_line import at_least, run
from benchmarks.objects import Object, release, release_status
from registry.application.convert import ReleaseDefaults, to_new_release
from registry.application.definition import parse_definition
from registry.application.feed import ReleaseRouter
from registry.application.kinds import ApplicationKinds, ApplicationParts
from registry.application.release_cache import ReleaseCache, trim_release
from registry.cluster.object_store import EncodedObjects, ObjectStore, encode_without_managed_fields, key_of
from registry.cluster.shared_events import SharedEvents
from registry.tenant.types import tenant_resource
from registry.tenant.watch_feed import TenantFeed
from tenant_apiserver.wiring.releases import APPLICATIONS, TENANTS, concerned

_KINDS = 4
_NAMESPACES = 100
_GETS = 1000
_CREATED = "2026-01-02T03:04:05Z"
_SPEC = {
    "replicas": 3,
    "size": "20Gi",
    "storageClass": "replicated",
    "users": {"app": {"password": "secret"}, "reader": {}},
    "resources": {"cpu": "2", "memory": "4Gi"},
}


def definition(number: int) -> Object:
    """A definition with the size of Cozystack's for a database."""
    text = "A description of one of the values of the chart, as long as they are in Cozystack's definitions."
    properties: Object = {
        "replicas": {"type": "integer", "default": 2, "description": text},
        "size": {"type": "string", "default": "10Gi", "description": text},
        "storageClass": {"type": "string", "default": "", "description": text},
        "external": {"type": "boolean", "default": False, "description": text},
        "users": {
            "type": "object",
            "default": {},
            "additionalProperties": {"type": "object", "properties": {"password": {"type": "string"}}},
        },
        "resources": {"type": "object", "default": {}, "properties": {"cpu": {"type": "string"}}},
        **{f"option{index}": {"type": "string", "default": "value", "description": text} for index in range(12)},
    }
    schema = orjson.dumps({"type": "object", "properties": properties}).decode()
    kind = f"Database{number}"
    return {
        "metadata": {"name": kind.lower(), "uid": kind, "generation": 1, "creationTimestamp": _CREATED},
        "spec": {
            "application": {
                "kind": kind,
                "plural": f"{kind.lower()}s",
                "singular": kind.lower(),
                "openAPISchema": schema,
            },
            "release": {
                "prefix": f"{kind.lower()}-",
                "chartRef": {"kind": "ExternalArtifact", "name": kind.lower(), "namespace": "cozy-system"},
            },
        },
    }


def releases(definitions: Sequence[Object], count: int) -> Sequence[Object]:
    kinds = [parse_definition(each, matches) for each in definitions]
    found = []
    for number in range(count):
        metadata = {
            "name": f"db{number:05}",
            "namespace": f"tenant-n{number % _NAMESPACES:03}",
            "labels": {"team": "x"},
        }
        stored = to_new_release({"metadata": metadata, "spec": _SPEC}, kinds[number % len(kinds)], ReleaseDefaults())
        found.append(_as_stored(stored, number))
    return found


def _as_stored(obj: Object, number: int) -> Object:
    obj["metadata"] |= {
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "resourceVersion": str(number + 1),
        "generation": 1,
        "creationTimestamp": _CREATED,
    }
    return {**obj, "status": release_status(obj["metadata"]["name"])}


def resident_mib() -> float:
    """The memory of this process, after a collection."""
    gc.collect()
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def report(text: str, value: float, unit: str) -> None:
    print(f"{text}: {value:.3g} {unit}", flush=True)


async def processor_ms(work: Callable[[], Any], *, runs: int = 1, calls: int = 1) -> float:
    """The median of the processor time of this process for a call, of which `work` makes so many."""
    found = []
    for _ in range(runs):
        before = time.process_time()
        await work()
        found.append((time.process_time() - before) * 1000 / calls)
    return sorted(found)[len(found) // 2]


async def fill(store: ObjectStore, objects: Iterable[Object], events: SharedEvents) -> float:
    """Does what the informer does with a list; returns milliseconds."""
    encoded = {key_of(each): encode_without_managed_fields(trim_release(each)) for each in objects}
    store.replace(encoded)
    items = EncodedObjects(tuple(encoded.values()))
    spent = await processor_ms(partial(events.replace, items, len(items)))
    del encoded, items
    await store.compress()
    return spent


async def measure(tenants: int, applications: int) -> None:
    before = resident_mib()
    store, cache, events = ObjectStore(), WatchCache(tenant_resource()), SharedEvents(concerned)
    feed = TenantFeed(resource=cache.resource, cache=cache)
    events.subscribe(TENANTS, feed)
    definitions = [definition(number) for number in range(_KINDS)]
    router = ReleaseRouter(store=store)
    events.subscribe(APPLICATIONS, router)
    kinds = ApplicationKinds(
        ApplicationParts(
            cluster=cast(Any, None),
            router=router,
            releases=ReleaseCache(store),
            compiler=SchemaRuleCompiler(),
            matches=matches,
            caches=WatchCache,
            visibility=lambda plural: cast(VisibilitySource, None),
        )
    )
    await kinds.follow({each["metadata"]["name"]: each for each in definitions})

    def stored() -> Iterator[Object]:
        yield from (_as_stored(release(f"t{number:05}"), number) for number in range(tenants))
        yield from releases(definitions, applications)

    spent = await fill(store, stored(), events)
    report(f"memory of {tenants} Tenants and {applications} applications", resident_mib() - before, "MiB")
    report("processor time of their first list", spent / 1000, "s")
    await _measure_reads(kinds.served["database0"].feed.cache)


async def _measure_reads(cache: WatchCache) -> None:
    size = len(cache)
    options = ListOptions()

    async def whole() -> None:
        page = await cache.list("", options)
        b",".join(each.json for each in page.items)

    async def namespaced() -> None:
        page = await cache.list("tenant-n000", options)
        b",".join(each.json for each in page.items)

    keys = [each.key for each in cache][:_GETS]

    async def gets() -> None:
        for key in keys:
            await cache.get(Key(*key))

    report(f"processor time of a LIST of {size} of one kind", await processor_ms(whole, runs=9), "ms")
    report("processor time of a LIST of one namespace", await processor_ms(namespaced, runs=9), "ms")
    report("processor time of a GET", 1000 * await processor_ms(gets, runs=9, calls=len(keys)), "µs")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.applications", description=__doc__)
    parser.add_argument("--tenants", type=at_least(1), default=10_000, metavar="N", help="Tenants in the cache")
    parser.add_argument(
        "--applications",
        type=at_least(_KINDS),
        default=40_000,
        metavar="N",
        help=f"applications in the caches, of {_KINDS} kinds",
    )
    options = parser.parse_args()
    run(measure(options.tenants, options.applications))


if __name__ == "__main__":
    main()

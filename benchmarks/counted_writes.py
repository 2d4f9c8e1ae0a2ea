"""The writes to the cluster that follow a create, a change, and a release that becomes ready: by verb and resource."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path

from benchmarks import load, objects
from benchmarks.client import Connection, Endpoint
from benchmarks.objects import COLLECTION, RELEASES
from benchmarks.targets.cluster_traffic import read_traffic, wait_until_quiet
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.targets.standalone import StandaloneTarget

_STATUS = "PATCH helmreleases/status"
_RENEWALS = ("PUT leases", "PATCH leases")
_READS = ("GET", "LIST", "WATCH")


class ClusterResources(Container[str]):
    """All resources but those that a benchmark itself requests of our server: a write that nobody expects counts."""

    def __contains__(self, resource: object) -> bool:
        return resource not in ("", "tenants")


async def settle(admin: Endpoint) -> None:
    """Waits until our server has written nothing for some seconds."""
    await wait_until_quiet(admin, ClusterResources())


async def requests_so_far(admin: Endpoint) -> Mapping[str, float]:
    """Requests to the cluster by verb and resource, without renewals of Leases, whose number depends on time."""
    found = (await read_traffic(admin, ClusterResources())).requests
    return {name: count for name, count in found.items() if not name.startswith(_RENEWALS)}


def writes_each(what: str, before: Mapping[str, float], after: Mapping[str, float], times: int) -> Mapping[str, float]:
    """The writes for each of so many `times`, not rounded: one in every third counts as 0.33."""
    writes = {name: count - before.get(name, 0) for name, count in after.items() if not name.startswith(_READS)}
    return {f"{what}: {name}": count / times for name, count in sorted(writes.items()) if count}


async def create(user: Endpoint, numbers: range, prefix: str) -> None:
    async def post(connection: Connection, number: int) -> None:
        await connection.call("POST", COLLECTION, objects.tenant(objects.name(prefix, number)))

    await load.parallel(user, post, numbers, clients=1, progress="Tenants created")


async def _deploy(user: Endpoint, numbers: range, prefix: str) -> None:
    """Writes the status of each release, as Flux does."""

    async def patch(connection: Connection, number: int) -> None:
        name = objects.name(prefix, number)
        status = {"status": objects.release_status(name)}
        await connection.call("PATCH", f"{RELEASES}/tenant-{name}/status", status, content_type=MERGE_PATCH)

    await load.parallel(user, patch, numbers, clients=1, progress="releases deployed")


async def count_until_ready(directory: Path, times: int) -> Mapping[str, float]:
    """The writes for Tenants whose releases are not suspended and become ready at once: with all of a create, and after
    Flux has written its status. After a minute without one, our controllers would write a status once more."""
    async with StandaloneTarget.running(directory) as target:
        await target.grant()
        await settle(target.admin)
        before = await requests_so_far(target.admin)
        await create(target.user, range(times), "r")
        await settle(target.admin)
        created = await requests_so_far(target.admin)
        await _deploy(target.cluster_user, range(times), "r")
        await settle(target.admin)
        ready = dict(await requests_so_far(target.admin))
    # Flux's own
    ready[_STATUS] -= times
    return {
        **writes_each("create, not suspended", before, created, times),
        **writes_each("a release becomes ready", created, ready, times),
    }

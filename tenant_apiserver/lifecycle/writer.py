"""The only code of this package that writes. Each write is one call that can be repeated, and names the version that it
was decided on, so that a change of somebody else in between is seen."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.interface import APISERVICES, HELMRELEASES, ClusterClient
from tenant_apiserver.lifecycle.kinds import DEPLOYMENTS, TargetObject, is_ours
from tenant_apiserver.lifecycle.registration import is_moved, moved_back
from tenant_apiserver.lifecycle.serving import leads_to_us

FIELD_MANAGER = "tenant-apiserver-operator"
_ATTEMPTS = 10


class OperatorWriter:
    """Every method raises the StatusError of a write that cannot be repeated with success."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    async def create_api_service(self, obj: Object) -> None:
        await self._cluster.create(APISERVICES, obj, field_manager=FIELD_MANAGER)

    async def change_api_service(self, name: str, change: Callable[[Object], Object | None]) -> bool:
        """PUTs what `change` makes of the APIService, and again of a newer version after a conflict. Returns False if
        `change` returns None, as there is nothing to do."""
        for attempt in range(_ATTEMPTS):
            changed = change(await self._cluster.get(APISERVICES, "", name))
            if changed is None:
                return False
            try:
                await self._cluster.update(APISERVICES, changed, field_manager=FIELD_MANAGER)
                return True
            except StatusError as error:
                # its status is written all the time
                if error.code != 409 or attempt == _ATTEMPTS - 1:
                    raise
        return False

    async def strip(self, release: Object, change: Callable[[Object], Object | None]) -> None:
        """Patches a HelmRelease with what `change` returns for its present form, until that is None or it is gone."""
        metadata = release["metadata"]
        where = metadata["namespace"], metadata["name"]
        for attempt in range(_ATTEMPTS):
            patch = change(release)
            if patch is None:
                return
            try:
                await self._cluster.patch(
                    HELMRELEASES, *where, patch, content_type=MERGE_PATCH, field_manager=FIELD_MANAGER
                )
                return
            except StatusError as error:
                if error.code == 404:
                    return
                if error.code != 409 or attempt == _ATTEMPTS - 1:
                    raise
            try:
                release = await self._cluster.get(HELMRELEASES, *where)
            except StatusError as error:
                if error.code == 404:
                    return
                raise

    async def scale_to_zero(self, namespace: str, name: str) -> None:
        patch = {"spec": {"replicas": 0}}
        await self._cluster.patch(
            DEPLOYMENTS, namespace, name, patch, content_type=MERGE_PATCH, field_manager=FIELD_MANAGER
        )

    async def delete(self, where: TargetObject, uid: str) -> None:
        """Deletes exactly this object. That it has gone is no error, nor that another one has its name."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._cluster.delete(where.resource, where.namespace, where.name, options=options)
        except StatusError as error:
            if error.code not in (404, 409):
                raise


async def return_api_service(cluster: ClusterClient, name: str) -> None:
    """Moves an APIService that leads to us back, or deletes it if nobody had it before. Others stay. Raises NotSaved
    and the StatusError of the write."""

    def changed(live: Object) -> Object | None:
        return moved_back(live) if leads_to_us(live) and is_moved(live) else None

    try:
        current = await cluster.get(APISERVICES, "", name)
    except StatusError as error:
        if error.code != 404:
            raise
        return
    writer = OperatorWriter(cluster)
    if is_moved(current):
        await writer.change_api_service(name, changed)
    elif leads_to_us(current) and is_ours(current):
        await writer.delete(TargetObject(APISERVICES, "", name), current["metadata"]["uid"])

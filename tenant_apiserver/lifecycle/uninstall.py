"""The `uninstall` command: takes our marks from the HelmReleases of tenants, and removes the server.

Every write can be repeated, and what comes next is decided from the cluster alone: after a kill at any moment, the
command continues where it ended. It never deletes a Namespace, a CustomResourceDefinition, a HelmRelease or a Tenant.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.tenantgateway.names import GATEWAY_MANAGED_BY_LABEL
from registry.cluster.client import HttpClusterClient
from registry.cluster.interface import (
    HELMRELEASES,
    LEASES,
    NAMESPACES,
    SECRETS,
    ClusterResource,
    ClusterUnreachable,
    NotServed,
)
from registry.names import APPLICATION_GROUP_LABEL, GROUP, ROOT_NAMESPACE, TENANT_ANNOTATION
from registry.securitygroup.convert import GROUP_SELECTOR, POLICIES
from registry.tenantnamespace.convert import is_tenant_namespace
from registry.tenantsecret.convert import SECRET_SELECTOR
from tenant_apiserver.lifecycle.command import StepFailed, StepRefused, repeated, run_command
from tenant_apiserver.lifecycle.installed import NAMESPACE, SERVER, proxy_objects
from tenant_apiserver.lifecycle.kinds import DEPLOYMENTS, PART_OF, PART_OF_LABEL, TargetObject, owner_of
from tenant_apiserver.lifecycle.marks import is_held, stripping_patch
from tenant_apiserver.lifecycle.reader import ReadableCluster, list_leading, read_objects, unreadable_lines
from tenant_apiserver.lifecycle.remainder import NAMED, remainder, remaining_proxy
from tenant_apiserver.lifecycle.removable import DELETED_KINDS, STORED, reason_to_keep
from tenant_apiserver.lifecycle.replicas import LeaseSightings, deployment_ends, leases_end, sightings
from tenant_apiserver.lifecycle.serving import others_leading
from tenant_apiserver.lifecycle.wording import counted
from tenant_apiserver.lifecycle.writer import OperatorWriter
from tenant_apiserver.options.lifecycle import UninstallOptions
from tenant_apiserver.wiring.applications.forms_keeper import LEASE as FORMS_LEASE
from tenant_apiserver.wiring.controllers import LEASE

_PODS = ClusterResource("", "v1", "pods", "Pod")
_GATEWAYS = ClusterResource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
_LEASES = tuple(TargetObject(LEASES, NAMESPACE, each) for each in (LEASE, FORMS_LEASE))
"""Of the replicas that run controllers, and of all that write."""
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class OperatorClock:
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def uninstall(options: UninstallOptions) -> int:
    """Returns the exit status: 0 if only what must stay is left, 1 if the step is refused or tenants are held, 2 for an
    error, 130 or 143 after a signal. After these, the command can be repeated."""
    return run_command("uninstall", lambda: _connected(options), after="run the command again: it continues")


async def _connected(options: UninstallOptions) -> int:
    cluster = await HttpClusterClient.connect(options.kubeconfig)
    try:
        return await Uninstallation(cluster, options).run()
    finally:
        await cluster.close()


class Uninstallation:
    """Raises StepRefused, and the cluster's StatusError. `say` gets each line of the report."""

    def __init__(
        self,
        cluster: ReadableCluster,
        options: UninstallOptions,
        *,
        clock: OperatorClock | None = None,
        say: Callable[[str], object] = print,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._clock = clock if clock is not None else OperatorClock()
        self._say = say
        self._writer = OperatorWriter(cluster)
        self._patch = partial(stripping_patch, keep_managed_fields=options.keep_managed_fields)

    async def run(self) -> int:
        await self._refuse_while_registered()
        marked, held = await self._marked()
        await self._refuse_to_scale_for_others()
        objects: Mapping[TargetObject, Object] = {}
        kept: Mapping[TargetObject, str] = {}
        if not self._options.keep_objects:
            objects, kept = await self._objects()
        if self._options.dry_run:
            self._say_plan(marked, objects)
        else:
            await self._remove(objects)
        if kept:
            self._say(f"{counted(len(kept), 'object')} with our label or name must stay, being of others:")
        for where, why in kept.items():
            self._say(f"  {where}: {why}")
        found, unreadable = await read_objects(self._cluster, NAMED)
        rest = remainder(await self._counts(), held, found=found, unreadable=unreadable)
        for line in (*rest, *remaining_proxy(*await self._proxy())):
            self._say(line)
        return 1 if held else 0

    async def _remove(self, objects: Mapping[TargetObject, Object]) -> None:
        await self._end_replicas()
        # again, as the last replica may have written until now
        marked, _ = await self._marked()
        for release in marked:
            await self._writer.strip(release, self._patch)
        self._say(f"Our finalizer and annotations are taken from {counted(len(marked), 'HelmRelease')}")
        again, _ = await self._marked()
        if again:
            raise StepRefused(
                f"our marks are on {counted(len(again), 'HelmRelease')} again: somebody still runs our server"
            )
        # again, as somebody may have moved a group to us meanwhile
        await self._refuse_while_registered()
        for where, obj in objects.items():
            await self._writer.delete(where, obj["metadata"]["uid"])
        self._say(f"Deleted: {counted(len(objects), 'object')} of the installation")

    async def _refuse_while_registered(self) -> None:
        leading = await list_leading(self._cluster)
        if not leading:
            return
        others = others_leading(leading)
        commands = [
            *([repeated("back", self._options.kubeconfig)] if len(others) < len(leading) else ()),
            *([f"kubectl delete apiservice {' '.join(others)}"] if others else ()),
        ]
        why = f"{', '.join(leading)} would be left without a server, and no namespace could be deleted any more"
        raise StepRefused(f"{why}; first: {', and '.join(commands)}")

    async def _refuse_to_scale_for_others(self) -> None:
        where = TargetObject(DEPLOYMENTS, NAMESPACE, SERVER)
        found = (await self._read(where)).get(where)
        if found is not None and found["spec"].get("replicas", 1) != 0 and (why := reason_to_keep(where, found)):
            raise StepRefused(f"{where} stays: {why}; first let its owner scale it to 0")

    async def _marked(self) -> tuple[Sequence[Object], Sequence[str]]:
        """The HelmReleases that have marks of ours, of which only the metadata is kept, and the names of those that are
        held."""
        marked: list[Object] = []
        held: list[str] = []

        def visit(release: Object) -> None:
            metadata = release["metadata"]
            if is_held(release):
                held.append(f"{metadata['namespace']}/{metadata['name']}")
            elif self._patch(release) is not None:
                marked.append({"metadata": metadata})

        await self._visit(HELMRELEASES, visit)
        return marked, sorted(held)

    async def _end_replicas(self) -> None:
        where = TargetObject(DEPLOYMENTS, NAMESPACE, SERVER)
        # what cannot be read ends the command before its first write
        await self._still_running(LeaseSightings())
        deployment = (await self._read(where)).get(where)
        replicas = 0 if deployment is None else deployment["spec"].get("replicas", 1)
        if replicas:
            await self._writer.scale_to_zero(NAMESPACE, SERVER)
            self._say(f"Deployment {NAMESPACE}/{SERVER} is scaled to 0")
            # an apply of the manifests would conflict with this write
            again = f"kubectl scale -n {NAMESPACE} deployment/{SERVER} --replicas={replicas}"
            self._say(f"  to run it again: {again}")
        deadline, seen = self._clock.now() + self._options.timeout, LeaseSightings()
        while True:
            remaining, seen = await self._still_running(seen)
            if not remaining:
                return
            if self._clock.now() > deadline:
                why = f"waited {self._options.timeout:.0f} s for the end of {remaining}"
                raise StepRefused(f"{why}; a server that runs elsewhere must be stopped first")
            await self._clock.sleep(_POLL_SECONDS)

    async def _still_running(self, seen: LeaseSightings) -> tuple[str, LeaseSightings]:
        deployment = TargetObject(DEPLOYMENTS, NAMESPACE, SERVER)
        found = await self._read(deployment, *_LEASES)
        pods: list[Object] = []
        await self._visit(_PODS, pods.append, NAMESPACE, f"app.kubernetes.io/name={SERVER}")
        leases, now = [found[each] for each in _LEASES if each in found], self._clock.now()
        seen = sightings(leases, seen, now)
        remaining = deployment_ends(found.get(deployment), pods) or leases_end(leases, seen, now)
        return remaining, seen

    async def _read(self, *targets: TargetObject) -> Mapping[TargetObject, Object]:
        found, unreadable = await read_objects(self._cluster, targets)
        if unreadable:
            raise StepFailed(unreadable_lines(unreadable))
        return found

    async def _objects(self) -> tuple[Mapping[TargetObject, Object], Mapping[TargetObject, str]]:
        """The metadata of the objects of the installation, the Deployment first; and those that look so and stay, with
        the reason."""
        found: dict[TargetObject, Object] = {}
        kept: dict[TargetObject, str] = {}

        def visit(res: ClusterResource, obj: Object) -> None:
            where = TargetObject(res, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            if why := reason_to_keep(where, obj):
                kept[where] = why
            else:
                found[where] = {"metadata": obj["metadata"]}

        for res in sorted(DELETED_KINDS, key=lambda each: each != DEPLOYMENTS):
            await self._visit(res, partial(visit, res), selector=f"{PART_OF_LABEL}={PART_OF}")
        for where, obj in (await self._read(*STORED)).items():
            visit(where.resource, obj)
        return found, kept

    async def _proxy(self) -> tuple[Collection[TargetObject], Mapping[TargetObject, str]]:
        """The objects of the proxy that exist, and the reason for those that cannot be read."""
        return await read_objects(self._cluster, proxy_objects())

    def _say_plan(self, marked: Sequence[Object], objects: Mapping[TargetObject, Object]) -> None:
        self._say(f"Would scale Deployment {NAMESPACE}/{SERVER} to 0, and wait for the end of its replicas.")
        self._say(f"Would take our finalizer and annotations from {counted(len(marked), 'HelmRelease')}:")
        for release in marked:
            self._say(f"  {release['metadata']['namespace']}/{release['metadata']['name']}")
        self._say(f"Would delete {counted(len(objects), 'object')} of the installation:")
        for where, obj in objects.items():
            self._say(f"  {where}: {owner_of(obj)}")
        self._say("Nothing was written.")

    async def _counts(self) -> Mapping[str, int | None]:
        """The numbers of objects that stay, by kind; None for a kind that may not be listed."""
        return {
            each.kind: await self._count(each, selector)
            for each, selector in (
                (HELMRELEASES, f"{APPLICATION_GROUP_LABEL}={GROUP}"),
                (NAMESPACES, ""),
                (_GATEWAYS, GATEWAY_MANAGED_BY_LABEL),
                (POLICIES, GROUP_SELECTOR),
                (SECRETS, SECRET_SELECTOR),
            )
        }

    async def _count(self, res: ClusterResource, selector: str) -> int | None:
        found = 0

        def visit(obj: Object) -> None:
            nonlocal found
            found += 1 if res != NAMESPACES or _is_of_tenant(obj) else 0

        try:
            await self._visit(res, visit, selector=selector)
        except StatusError as error:
            if error.code != 403:
                raise
            return None
        return found

    async def _visit(
        self, res: ClusterResource, visit: Callable[[Object], None], namespace: str = "", selector: str = ""
    ) -> None:
        """Nothing is there of a kind that the cluster does not serve."""
        try:
            await self._cluster.each_list_item(res, namespace, visit=visit, label_selector=selector)
        except NotServed:
            return
        except ClusterUnreachable:
            raise
        except StatusError as error:
            if error.code != 404:
                raise


def _is_of_tenant(namespace: Object) -> bool:
    """True for a Namespace that is shown as a TenantNamespace, whoever made it, or that our controllers made."""
    metadata = namespace["metadata"]
    is_ours = TENANT_ANNOTATION in (metadata.get("annotations") or {})
    return is_ours or metadata["name"] == ROOT_NAMESPACE or is_tenant_namespace(namespace)

"""Creates, restores and deletes the network policies of a Tenant. Policies of Helm, and of others, are left alone."""

from __future__ import annotations

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter, ForeignObject
from controller.tenant.helm_ownership import ObjectManager, object_manager, with_manager_labels
from controller.tenant.isolation.policy_kinds import with_exact_rules
from controller.tenant.managed_objects import ObjectDigest, ObjectDigests, read_managed
from controller.tenant.namespace_ownership import ADOPT_ANNOTATION
from registry.cluster.interface import ClusterClient, is_terminating


class _PolicyOwner:
    """Our label, or an annotation that hands the policy over to the Tenant, lets us write."""

    def __init__(self, tenant: Key, kind: str) -> None:
        self._tenant = f"{tenant.namespace}/{tenant.name}"
        self._kind = kind

    def refusal(self, current: Object) -> str:
        manager = object_manager(current)
        adopted = (current["metadata"].get("annotations") or {}).get(ADOPT_ANNOTATION) == self._tenant
        if manager is ObjectManager.OURS or (manager is ObjectManager.OTHER and adopted):
            return ""
        name = current["metadata"]["name"]
        if manager is ObjectManager.HELM:
            return f'the {self._kind} "{name}" is managed by Helm: delete it, or its release'
        return (
            f'the {self._kind} "{name}" was not created for this tenant: delete it, or let the tenant adopt it with '
            f"the annotation {ADOPT_ANNOTATION}: {self._tenant}"
        )


class PolicyWriter:
    """Every method raises the cluster's StatusError, and NotLeading."""

    def __init__(self, *, writer: ClusterWriter, cluster: ClusterClient, remembers: bool = True) -> None:
        """`remembers` is False for a `writer` that sends nothing: then nothing counts as written."""
        self._writer = writer
        self._cluster = cluster
        self._remembers = remembers

    def is_current(self, digests: ObjectDigests, desired: Object) -> bool:
        """True if the policy is ours, and stored as it is desired."""
        known = digests.get(desired["metadata"]["namespace"], desired["metadata"]["name"])
        return known == ObjectDigest(ObjectManager.OURS, digests.kind.digest(desired))

    async def ensure(self, digests: ObjectDigests, desired: Object, tenant: Key) -> str:
        """Create the policy that is not current, or restore all of its rules. Returns the reason, with the remedy, why
        it is left as it is; empty if it is as desired."""
        namespace, name = desired["metadata"]["namespace"], desired["metadata"]["name"]
        known = digests.get(namespace, name)
        resource = digests.kind.resource
        current = None if known is None else await self._read(digests, namespace, name)
        labelled = with_manager_labels(desired, None)
        try:
            written = await self._writer.ensure(
                resource,
                lambda stored: with_exact_rules(labelled, stored),
                observed=current,
                owner=_PolicyOwner(tenant, resource.kind),
            )
        except ForeignObject as e:
            return str(e)
        if self._remembers:
            digests.record_written(written)
        return ""

    async def remove(self, digests: ObjectDigests, namespace: str, name: str) -> None:
        """Delete a policy that we created; any other is left."""
        known = digests.get(namespace, name)
        if known is None or known.manager is not ObjectManager.OURS:
            return
        current = await self._read(digests, namespace, name)
        if current is None or object_manager(current) is not ObjectManager.OURS or is_terminating(current):
            return
        since = digests.version
        await self._writer.delete(digests.kind.resource, current)
        if self._remembers:
            digests.record_absent(namespace, name, since=since)

    async def _read(self, digests: ObjectDigests, namespace: str, name: str) -> Object | None:
        return await read_managed(self._cluster, digests, namespace, name, remembers=self._remembers)

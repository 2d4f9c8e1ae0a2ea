"""Informers for the cluster's ValidatingAdmissionPolicies, their bindings and parameter objects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from admission.cel.evaluation_threads import EvaluationThreads
from admission.matching.match_rules import EquivalentResources, Target, single_version, target_of
from admission.namespace_source import NamespaceSource
from admission.policy.compiled_policy import ParamKind
from admission.policy.params import ConfigurationError, UnknownParamKind
from admission.policy.plugin import ValidatingPolicies
from admission.policy.policy_source import PolicySource
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key, Object, Resource
from registry.cluster.backoff import Backoff
from registry.cluster.informer import Informer
from registry.cluster.interface import (
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    ClusterClient,
    ClusterResource,
    ClusterUnreachable,
)

_SYNC_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class DiscoverableCluster(ClusterClient, Protocol):
    """A cluster client with discovery."""

    async def discover(self, api_version: str) -> Object:
        """Returns the APIResourceList of a group version. Raises StatusError."""
        ...


class _ParamInformer:
    """The objects of one kind of parameters, usable as ParamObjects once `synced`."""

    def __init__(self, cluster: ClusterClient, informer: Informer) -> None:
        self._cluster = cluster
        self._informer = informer
        self.namespaced = informer.resource.namespaced

    @property
    def synced(self) -> asyncio.Event:
        return self._informer.synced

    @property
    def reachable(self) -> bool:
        """False if the objects cannot be listed, for example without the permission."""
        return self._informer.reachable

    def items(self, namespace: str) -> Iterable[Object]:
        for found in self._informer.store.items():
            if (found["metadata"].get("namespace") or "") == namespace:
                yield found

    async def get(self, namespace: str, name: str) -> Object | None:
        found = self._informer.store.get(Key(namespace, name))
        if found is not None:
            return found
        try:
            return await self._cluster.get(self._informer.resource, namespace, name)
        except StatusError as error:
            if error.code == 404:
                return None
            raise


class _ParamKindInformer:
    """Looks up one kind of parameters and runs an informer for it, while some policy refers to it."""

    def __init__(self, cluster: DiscoverableCluster, kind: ParamKind) -> None:
        self._cluster = cluster
        self._kind = kind
        self._looked_up = asyncio.Event()
        self._objects: _ParamInformer | None = None

    async def objects(self) -> _ParamInformer:
        """Waits for the objects of the kind. After a time limit, raises ConfigurationError if they cannot be listed,
        and TooManyRequests if they are still being listed: failurePolicy applies only to the former. Raises
        UnknownParamKind."""
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await self._looked_up.wait()
                if self._objects is not None:
                    await self._objects.synced.wait()
        except TimeoutError:
            if self._objects is None or self._objects.reachable:
                raise errors.TooManyRequests("storage is (re)initializing", retry_after=1) from None
            raise ConfigurationError(f"paramKind kind `{self._kind}` not yet synced to use for admission") from None
        if self._objects is None:
            raise UnknownParamKind(self._kind)
        return self._objects

    async def run(self) -> None:
        """Runs until cancelled. A kind that the cluster does not serve is looked up again, as it may be added later."""
        backoff = Backoff()
        while True:
            try:
                resource = await self._resource()
            except StatusError as error:
                _logger.warning("cannot look up paramKind %s, retrying: %s", self._kind, error)
                resource = None
                if not isinstance(error, ClusterUnreachable):
                    self._looked_up.set()
            else:
                self._looked_up.set()
            if resource is not None:
                informer = Informer(self._cluster, resource)
                self._objects = _ParamInformer(self._cluster, informer)
                await informer.run()
            await asyncio.sleep(backoff.next())

    async def _resource(self) -> ClusterResource | None:
        try:
            found = await self._cluster.discover(self._kind.api_version)
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        for each in found.get("resources") or ():
            if each["kind"] == self._kind.kind and "/" not in each["name"]:
                group, _, version = self._kind.api_version.rpartition("/")
                return ClusterResource(group, version, each["name"], each["kind"], each["namespaced"])
        return None


class InformerParamSource:
    """A ParamSource with informers for exactly the kinds that policies refer to."""

    def __init__(self, cluster: DiscoverableCluster, policies: PolicySource) -> None:
        self._cluster = cluster
        self._policies = policies
        self._kinds: dict[ParamKind, _ParamKindInformer] = {}
        self._changed = asyncio.Event()
        policies.subscribe(self._changed.set)

    async def objects(self, kind: ParamKind) -> _ParamInformer:
        return await self._informer(kind).objects()

    async def run(self) -> None:
        """Starts and stops informers as policies change, until cancelled."""
        tasks: dict[ParamKind, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                wanted = self._policies.param_kinds
                for kind in wanted - tasks.keys():
                    tasks[kind] = group.create_task(self._informer(kind).run(), name=f"informer-of-{kind.kind}")
                for kind in tasks.keys() - wanted:
                    tasks.pop(kind).cancel()
                    self._kinds.pop(kind, None)
                await self._changed.wait()

    def _informer(self, kind: ParamKind) -> _ParamKindInformer:
        return self._kinds.setdefault(kind, _ParamKindInformer(self._cluster, kind))


class ClusterPolicies:
    """The policies of the cluster. The caller runs `informers` and `params`. `groups` are those of PolicySource."""

    def __init__(
        self, cluster: DiscoverableCluster, threads: EvaluationThreads, groups: Collection[str] | None = None
    ) -> None:
        self._threads = threads
        policies = Informer(cluster, VALIDATINGADMISSIONPOLICIES, store_objects=False)
        bindings = Informer(cluster, VALIDATINGADMISSIONPOLICYBINDINGS, store_objects=False)
        self.informers: Sequence[Informer] = (policies, bindings)
        self.source = PolicySource(groups)
        policies.add_handler(self.source.policies)
        bindings.add_handler(self.source.bindings)
        self.params = InformerParamSource(cluster, self.source)

    def plugin(
        self, *, namespaces: NamespaceSource, authorizer: Authorizer, equivalents: EquivalentResources = single_version
    ) -> ValidatingPolicies:
        return ValidatingPolicies(
            source=self.source,
            params=self.params,
            namespaces=namespaces,
            authorizer=authorizer,
            equivalents=equivalents,
            threads=self._threads,
        )

    def describe(self) -> str:
        """Lists the policies whose expressions do not compile, without the expressions: readyz shows the text to
        every user who may get /metrics."""
        broken = [f"{name} ({len(problems)})" for name, problems in self.source.problems.items()]
        return f"expressions that do not compile in: {', '.join(broken)}" if broken else ""


def equivalents_of(resources: Iterable[Resource]) -> EquivalentResources:
    """Returns a function from a resource to all its served versions, its own first."""
    versions: dict[GroupResource, dict[str, Target]] = {}
    for each in resources:
        versions.setdefault(each.group_resource, {})[each.version] = target_of(each)

    def equivalents(resource: Resource) -> Sequence[Target]:
        own = target_of(resource)
        return own, *(each for each in versions.get(resource.group_resource, {}).values() if each != own)

    return equivalents

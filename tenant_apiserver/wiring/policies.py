"""The host's ValidatingAdmissionPolicies, their bindings and parameters, followed for admission."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

from admission.matching.match_rules import EquivalentResources, Target, single_version, target_of
from admission.namespace_source import NamespaceSource
from admission.policy.compiled_policy import ParamKind
from admission.policy.params import ConfigurationError, UnknownParamKind
from admission.policy.plugin import ValidatingPolicies
from admission.policy.policy_source import PolicySource
from apiserver.authorization.authorizer import Authorizer
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
    async def discover(self, api_version: str) -> Object:
        """An APIResourceList. Raises StatusError."""
        ...


class _ParamInformer:
    """The objects of a kind of parameters: ParamObjects, once `synced`."""

    def __init__(self, cluster: ClusterClient, informer: Informer) -> None:
        self._cluster = cluster
        self._informer = informer
        self.namespaced = informer.resource.namespaced

    @property
    def synced(self) -> asyncio.Event:
        return self._informer.synced

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
    """One kind of parameters, from the time that a policy names it: looked up, then followed."""

    def __init__(self, cluster: DiscoverableCluster, kind: ParamKind) -> None:
        self._cluster = cluster
        self._kind = kind
        self._looked_up = asyncio.Event()
        self._followed: _ParamInformer | None = None

    async def objects(self) -> _ParamInformer:
        """Raises UnknownParamKind, ConfigurationError."""
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await self._looked_up.wait()
                if self._followed is not None:
                    await self._followed.synced.wait()
        except TimeoutError:
            raise ConfigurationError(f"paramKind kind `{self._kind}` not yet synced to use for admission") from None
        if self._followed is None:
            raise UnknownParamKind(self._kind)
        return self._followed

    async def run(self) -> None:
        """Until cancelled. A kind that the host lacks is looked for again and again: it may be defined later."""
        backoff = Backoff()
        while True:
            try:
                resource = await self._resource()
            except StatusError as error:
                _logger.warning("the kind of parameters %s cannot be looked up: %s", self._kind, error)
                resource = None
                if not isinstance(error, ClusterUnreachable):
                    self._looked_up.set()
            else:
                self._looked_up.set()
            if resource is not None:
                informer = Informer(self._cluster, resource)
                self._followed = _ParamInformer(self._cluster, informer)
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
    """A ParamSource that follows the kinds that policies name, and no others."""

    def __init__(self, cluster: DiscoverableCluster, held: PolicySource) -> None:
        self._cluster = cluster
        self._held = held
        self._kinds: dict[ParamKind, _ParamKindInformer] = {}
        self._changed = asyncio.Event()
        held.subscribe(self._changed.set)

    async def objects(self, kind: ParamKind) -> _ParamInformer:
        return await self._known(kind).objects()

    async def run(self) -> None:
        """Until cancelled."""
        tasks: dict[ParamKind, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                wanted = self._held.param_kinds
                for kind in wanted - tasks.keys():
                    tasks[kind] = group.create_task(self._known(kind).run(), name=f"informer-of-{kind.kind}")
                for kind in tasks.keys() - wanted:
                    tasks.pop(kind).cancel()
                    self._kinds.pop(kind, None)
                await self._changed.wait()

    def _known(self, kind: ParamKind) -> _ParamKindInformer:
        return self._kinds.setdefault(kind, _ParamKindInformer(self._cluster, kind))


class ClusterPolicies:
    """`informers` and `params` are to be run; `plugin` gives the plugin of a chain."""

    def __init__(self, cluster: DiscoverableCluster) -> None:
        policies = Informer(cluster, VALIDATINGADMISSIONPOLICIES, store_objects=False)
        bindings = Informer(cluster, VALIDATINGADMISSIONPOLICYBINDINGS, store_objects=False)
        self.informers: Sequence[Informer] = (policies, bindings)
        self.held = PolicySource(synced=[each.synced for each in self.informers])
        policies.add_handler(self.held.policies)
        bindings.add_handler(self.held.bindings)
        self.params = InformerParamSource(cluster, self.held)

    def plugin(
        self, *, namespaces: NamespaceSource, authorizer: Authorizer, equivalents: EquivalentResources = single_version
    ) -> ValidatingPolicies:
        return ValidatingPolicies(
            source=self.held,
            params=self.params,
            namespaces=namespaces,
            authorizer=authorizer,
            equivalents=equivalents,
        )

    def describe(self) -> str:
        """Policies with expressions that do not compile, for readyz; empty if all do. Their texts are not for all."""
        broken = [f"{name} ({len(problems)})" for name, problems in self.held.problems.items()]
        return f"expressions that do not compile in: {', '.join(broken)}" if broken else ""


def equivalents_of(resources: Iterable[Resource]) -> EquivalentResources:
    """Of the versions in which these resources are served."""
    versions: dict[GroupResource, dict[str, Target]] = {}
    for each in resources:
        versions.setdefault(each.group_resource, {})[each.version] = target_of(each)

    def equivalents(resource: Resource) -> Sequence[Target]:
        own = target_of(resource)
        return own, *(each for each in versions.get(resource.group_resource, {}).values() if each != own)

    return equivalents

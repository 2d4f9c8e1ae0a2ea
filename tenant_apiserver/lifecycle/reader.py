"""Reads the facts that preflight judges. It only gets and lists; a read that is not permitted becomes a fact, too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Object
from registry.cluster.interface import (
    APISERVICES,
    APPLICATIONDEFINITIONS,
    ClusterResource,
    ClusterUnreachable,
    NotServed,
    reason_for_log,
)
from tenant_apiserver.lifecycle.command import MISSING_RIGHTS, StepFailed
from tenant_apiserver.lifecycle.facts import GROUPS, VERSION, ClusterFacts, api_service_name
from tenant_apiserver.lifecycle.installed import (
    PROXY_SETTINGS,
    SERVER,
    OperatorStep,
    applied,
    tenants_visible,
    tenantsecrets_readable,
)
from tenant_apiserver.lifecycle.kinds import DEPLOYMENTS, PROXY, TargetObject, foreign_owner, is_ours, target
from tenant_apiserver.lifecycle.own_kinds import own_kinds
from tenant_apiserver.lifecycle.serving import leads_to_us
from tenant_apiserver.lifecycle.versions import VERSIONED_CRDS
from tenant_apiserver.serve import API_SERVICES
from tenant_apiserver.wiring.policies import DiscoverableCluster

_AT_ONCE = 8
_PAGE = 200


class ReadableCluster(DiscoverableCluster, Protocol):
    """A cluster that also tells its version."""

    async def get_path(self, path: str) -> Object: ...


async def read_facts(cluster: ReadableCluster, step: OperatorStep, groups: Sequence[str] = ()) -> ClusterFacts:
    """The facts for a step with these groups, or with all that this version serves. Raises ClusterUnreachable, and the
    StatusError of a cluster that does not even tell its version."""
    kubernetes = str((await cluster.get_path("/version")).get("gitVersion", ""))
    found, unreadable = await read_objects(cluster, _looked_for(step))
    notes: list[str] = []
    if step is OperatorStep.PROXY:
        found = {**found, **await _settings_of_the_proxy(cluster, notes)}
        # it serves no group, and runs no controllers
        return ClusterFacts(kubernetes=kubernetes, found=found, unreadable=unreadable, notes=notes)
    if step is OperatorStep.REPLACE:
        releases, unreadable_releases = await read_objects(cluster, _releases_of_registrations(found))
        found, unreadable = {**found, **releases}, {**unreadable, **unreadable_releases}
    served, silent = await _served(cluster, found)
    return ClusterFacts(
        kubernetes=kubernetes,
        groups=[each for each in GROUPS if api_service_name(each) in API_SERVICES and each in (groups or GROUPS)],
        found=found,
        unreadable=unreadable,
        served=served,
        silent=silent,
        leading=_leading(await _list(cluster, APISERVICES, notes)),
        own=own_kinds(cluster),
        definitions=await _list(cluster, APPLICATIONDEFINITIONS, notes),
        deployments=await _list(cluster, DEPLOYMENTS, notes),
        notes=notes,
    )


def _looked_for(step: OperatorStep) -> Sequence[TargetObject]:
    if step is OperatorStep.PROXY:
        return [each for each in applied(step) if each != PROXY_SETTINGS]
    return [
        *(TargetObject(APISERVICES, "", api_service_name(group)) for group in GROUPS),
        *applied(step),
        *(target("CustomResourceDefinition", name) for name in VERSIONED_CRDS),
        *tenants_visible(),
        *tenantsecrets_readable(),
        target("Namespace", "cozy-system"),
        target("Deployment", SERVER, "cozy-system"),
    ]


def _releases_of_registrations(found: Mapping[TargetObject, Object]) -> Sequence[TargetObject]:
    """The HelmReleases that would put APIServices back."""
    owners = (foreign_owner(obj) for where, obj in found.items() if where.resource == APISERVICES)
    return [owner.release for owner in owners if owner is not None and owner.release is not None]


async def read_objects(
    cluster: ReadableCluster, targets: Iterable[TargetObject]
) -> tuple[Mapping[TargetObject, Object], Mapping[TargetObject, str]]:
    """Those of the targets that exist, and the reason for those that cannot be read, both in the order given."""
    found: dict[TargetObject, Object] = {}
    unreadable: dict[TargetObject, str] = {}
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(each: TargetObject) -> None:
        async with slots:
            try:
                found[each] = await cluster.get(each.resource, each.namespace, each.name)
            except NotServed:
                return
            except ClusterUnreachable:
                raise
            except StatusError as error:
                if error.code != 404:
                    unreadable[each] = error.message

    ordered = list(dict.fromkeys(targets))
    await asyncio.gather(*(read(each) for each in ordered))
    return (
        {each: found[each] for each in ordered if each in found},
        {each: unreadable[each] for each in ordered if each in unreadable},
    )


def unreadable_lines(unreadable: Mapping[TargetObject, str]) -> str:
    """A line for each object that cannot be read, and one that says what to do."""
    return "\n".join([*(f"{where} cannot be read: {why}" for where, why in unreadable.items()), MISSING_RIGHTS])


async def list_leading(cluster: ReadableCluster) -> Sequence[str]:
    """The names of the APIServices that lead to our Service, sorted. Raises StepFailed."""
    notes: list[str] = []
    found = await _list(cluster, APISERVICES, notes)
    if notes:
        raise StepFailed("\n".join([*notes, MISSING_RIGHTS]))
    return _leading(found)


def _leading(api_services: Sequence[Object] | None) -> Sequence[str]:
    return sorted(each["metadata"]["name"] for each in api_services or () if leads_to_us(each))


async def _served(
    cluster: ReadableCluster, found: Mapping[TargetObject, Object]
) -> tuple[Mapping[str, frozenset[str]], Mapping[str, str]]:
    """The kinds of each group that has an APIService, and the reason for those whose server does not answer."""
    served: dict[str, frozenset[str]] = {}
    silent: dict[str, str] = {}
    for group in GROUPS:
        if TargetObject(APISERVICES, "", api_service_name(group)) not in found:
            continue
        try:
            document = await cluster.discover(f"{group}/{VERSION}")
        except NotServed:
            continue
        except StatusError as error:
            # kube-apiserver itself has answered a moment ago
            silent[group] = reason_for_log(error)
            continue
        served[group] = frozenset(each["name"] for each in document["resources"] if "/" not in each["name"])
    return served, silent


async def _settings_of_the_proxy(cluster: ReadableCluster, notes: list[str]) -> Mapping[TargetObject, Object]:
    """The settings of an earlier installation, if there are any."""
    objects = await _list(cluster, PROXY_SETTINGS.resource, notes, namespace=PROXY)
    ours = [each for each in objects or () if each["metadata"]["name"].startswith(f"{PROXY}-") and is_ours(each)]
    return {PROXY_SETTINGS: ours[0]} if ours else {}


async def _list(
    cluster: ReadableCluster, res: ClusterResource, notes: list[str], *, namespace: str = ""
) -> Sequence[Object] | None:
    """All objects of a kind; none if it is not served, and None, with a note, if they cannot be listed."""
    items: list[Object] = []
    token = ""
    try:
        while True:
            page = await cluster.list(res, namespace, limit=_PAGE, continue_token=token)
            items += page["items"]
            if not (token := page["metadata"].get("continue") or ""):
                return items
    except NotServed:
        return []
    except ClusterUnreachable:
        raise
    except StatusError as error:
        if error.code == 404:
            return []
        notes.append(f"{GroupResource(res.group, res.plural)} cannot be listed: {error.message}")
        return None

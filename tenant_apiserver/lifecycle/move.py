"""The command `replace`: APIServices move to our server, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.client import HttpClusterClient
from registry.cluster.interface import APISERVICES
from tenant_apiserver.lifecycle.availability import becomes_available, unavailable
from tenant_apiserver.lifecycle.command import (
    StepFailed,
    StepInterrupted,
    StepRefused,
    finished,
    reason,
    repeated,
    run_command,
)
from tenant_apiserver.lifecycle.facts import ClusterFacts, api_service_name
from tenant_apiserver.lifecycle.findings import Level, as_table
from tenant_apiserver.lifecycle.installed import OperatorStep
from tenant_apiserver.lifecycle.kinds import TargetObject
from tenant_apiserver.lifecycle.our_server import our_server
from tenant_apiserver.lifecycle.preflight import judge
from tenant_apiserver.lifecycle.reader import ReadableCluster, read_facts
from tenant_apiserver.lifecycle.registration import (
    OurServer,
    has_other_port,
    is_returnable,
    moved_back,
    moved_to_us,
    new_registration,
    repaired,
)
from tenant_apiserver.lifecycle.serving import LOCAL, leads_to_us, service_of
from tenant_apiserver.lifecycle.writer import OperatorWriter, return_api_service
from tenant_apiserver.options.lifecycle import MoveOptions

_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def replace(options: MoveOptions) -> int:
    """Returns the exit status: 0 if our server has the groups, 1 if the step is refused or undone, 2 for an error, 130
    or 143 after a signal."""

    async def connected() -> int:
        cluster = await HttpClusterClient.connect(options.kubeconfig)
        try:
            await move_to_us(cluster, options)
        finally:
            await cluster.close()
        return 0

    return run_command("replace", connected, after="nothing was written")


async def move_to_us(cluster: ReadableCluster, options: MoveOptions) -> None:
    """Raises StepRefused, StepFailed and, when it is cancelled after the first write, StepInterrupted."""
    facts = await read_facts(cluster, OperatorStep.REPLACE, options.groups)
    _check_preflight(facts)
    ours = await our_server(cluster)
    present = {group: facts.found.get(TargetObject(APISERVICES, "", api_service_name(group))) for group in facts.groups}
    # while our server is down, no other group may follow
    for group, found in present.items():
        if found is not None and _is_with_us(found):
            await _check_served(cluster, group, options)
    others = {group: found for group, found in present.items() if found is None or not _is_with_us(found)}
    await _check_rights(cluster, others)
    if options.dry_run:
        for group, found in others.items():
            print(f"{api_service_name(group)} would move from {service_of(found) if found else 'nobody'} to us")
        return
    await _Move(cluster, ours, options).move(others)


def _is_with_us(api_service: Object) -> bool:
    return leads_to_us(api_service) and not has_other_port(api_service)


def _check_preflight(facts: ClusterFacts) -> None:
    checks = judge(facts, OperatorStep.REPLACE)
    if failed := [each for each in checks if each.level is Level.FAIL]:
        raise StepRefused(f"preflight finds that this would break something\n{as_table(failed)}")
    if unknown := [each for each in checks if each.level is Level.UNKNOWN]:
        raise StepFailed(f"preflight cannot find out whether this would break something\n{as_table(unknown)}")


async def _check_served(cluster: ReadableCluster, group: str, options: MoveOptions) -> None:
    name = api_service_name(group)
    check = unavailable(cluster, group) if options.dry_run else becomes_available(cluster, group, options.timeout)
    if why := await check:
        remedy = f"look after our server, or return the group: {repeated('back', options.kubeconfig)}"
        raise StepRefused(f"{name} leads to us already, and is NOT available: {why}; {remedy}")
    print(f"{name} leads to us already, available")


async def _check_rights(cluster: ReadableCluster, groups: Mapping[str, Object | None]) -> None:
    """So that no group has moved when the write of another is refused."""
    for group, found in groups.items():
        name = api_service_name(group)
        # a registration that our server does not answer for is deleted again
        for verb in ("update",) if found is not None else ("create", "delete"):
            attributes = {"group": APISERVICES.group, "resource": APISERVICES.plural, "verb": verb, "name": name}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            answer = await cluster.review(_ACCESS_REVIEWS, {**review, "spec": {"resourceAttributes": attributes}})
            if not answer["status"].get("allowed"):
                raise StepRefused(f"you may not {verb} APIService {name}; nothing was written")


class _Move:
    """One run. A group that has moved stays so, also if the next one fails."""

    def __init__(self, cluster: ReadableCluster, ours: OurServer, options: MoveOptions) -> None:
        self._cluster = cluster
        self._ours = ours
        self._options = options
        self._moved: list[str] = []

    async def move(self, groups: Mapping[str, Object | None]) -> None:
        for group, found in groups.items():
            try:
                await self._move_group(group, is_new=found is None)
            except StepRefused as refusal:
                raise StepRefused(self._told(str(refusal), groups)) from refusal
            except StepFailed as failure:
                raise StepFailed(self._told(str(failure), groups)) from failure
            except (StatusError, ValueError) as error:
                raise StepFailed(self._told(f"{api_service_name(group)}: {reason(error)}", groups)) from error
            except StepInterrupted as interruption:
                raise StepInterrupted(self._told(str(interruption), groups, "; ")) from interruption
            self._moved.append(api_service_name(group))
            print(f"{api_service_name(group)} leads to us now")

    async def _move_group(self, group: str, *, is_new: bool) -> None:
        """Moves one group, and back again at once if our server does not answer, or if a signal ends the wait."""
        name = api_service_name(group)
        try:
            await finished(self._write(group, is_new=is_new))
            why = await becomes_available(self._cluster, group, self._options.timeout)
        except asyncio.CancelledError:
            await self._return(name)
            raise StepInterrupted(f"{name} is as it was before") from None
        if why:
            await self._return(name)
            raise StepRefused(f"{name} did not become available with our server, and is as it was before: {why}")

    async def _write(self, group: str, *, is_new: bool) -> None:
        writer = OperatorWriter(self._cluster)
        if is_new:
            await writer.create_api_service(new_registration(group, self._ours))
        else:
            await writer.change_api_service(api_service_name(group), self._changed)

    def _changed(self, live: Object) -> Object | None:
        if _is_with_us(live):
            return None
        if leads_to_us(live):
            live = moved_back(live)
        name = live["metadata"]["name"]
        if not service_of(live):
            raise StepRefused(f"{name}: {LOCAL}")
        moved = moved_to_us(live, self._ours)
        if not is_returnable(moved, repaired(live, self._ours)):
            raise StepRefused(f"{name} could not be returned exactly as it is, so it stays there")
        return moved

    async def _return(self, name: str) -> None:
        try:
            # a signal does not end it, as the first one alone cancels
            await finished(return_api_service(self._cluster, name))
        except (StatusError, ValueError) as error:
            raise StepFailed(
                f"{name} leads to us, where nobody answers, and cannot be returned: {reason(error)}"
            ) from error

    def _told(self, why: str, groups: Mapping[str, object], separator: str = "\n") -> str:
        names = [api_service_name(group) for group in groups]
        left = [name for name in names if name not in self._moved]
        lines = [why, f"moved: {', '.join(self._moved) or 'none'}", f"not moved: {', '.join(left)}"]
        if self._moved:
            lines.append(f"to return what has moved: {repeated('back', self._options.kubeconfig)}")
        return separator.join(lines)

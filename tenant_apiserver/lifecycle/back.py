"""The command `back`: APIServices return to their former server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.client import HttpClusterClient
from registry.cluster.interface import APISERVICES
from tenant_apiserver.lifecycle.availability import becomes_available
from tenant_apiserver.lifecycle.command import MISSING_RIGHTS, StepFailed, StepRefused, finished, reason, run_command
from tenant_apiserver.lifecycle.facts import GROUPS, api_service_name
from tenant_apiserver.lifecycle.installed import tenants_visible
from tenant_apiserver.lifecycle.kinds import TargetObject, is_ours, owner_of
from tenant_apiserver.lifecycle.reader import ReadableCluster, list_leading, read_objects, unreadable_lines
from tenant_apiserver.lifecycle.registration import is_moved, moved_back
from tenant_apiserver.lifecycle.serving import leads_to_us, others_leading, service_of
from tenant_apiserver.lifecycle.writer import return_api_service
from tenant_apiserver.options.lifecycle import BackOptions


def back(options: BackOptions) -> int:
    """Returns the exit status: 0 if no APIService leads to us, 1 if the step is refused, 2 for an error, 130 or 143
    after a signal."""

    async def connected() -> int:
        cluster = await HttpClusterClient.connect(options.kubeconfig)
        try:
            await move_back(cluster, options)
        finally:
            await cluster.close()
        return 0

    return run_command("back", connected, after="run the command again: it continues")


async def move_back(cluster: ReadableCluster, options: BackOptions) -> None:
    """Raises StepRefused, and StepFailed for what cannot be read or written."""
    wanted = [*(TargetObject(APISERVICES, "", api_service_name(group)) for group in GROUPS), tenants_visible()[-1]]
    found, unreadable = await read_objects(cluster, wanted)
    if unreadable:
        raise StepFailed(unreadable_lines(unreadable))
    others = others_leading(await list_leading(cluster))
    ours = {each.name: obj for each, obj in found.items() if each.resource == APISERVICES and leads_to_us(obj)}
    _check_return(ours, found)
    failed, unavailable = await _return_all(cluster, options, ours)
    for name in others:
        print(f"{name} leads to us, too")
    if failed:
        raise StepFailed("\n".join(failed))
    if unavailable:
        raise StepRefused(f"the former server does not answer, so look after it: {', '.join(unavailable)}")
    if others:
        why = f"nobody has moved {', '.join(others)} to us, so nobody knows where to return it"
        raise StepRefused(f"{why}; unless somebody needs it: kubectl delete apiservice {' '.join(others)}")


async def _return_all(
    cluster: ReadableCluster, options: BackOptions, ours: Mapping[str, Object]
) -> tuple[Sequence[str], Sequence[str]]:
    """The groups that are still with us, and the former servers that do not answer, with the reasons."""
    failed: list[str] = []
    unavailable: list[str] = []
    for group in GROUPS:
        name = api_service_name(group)
        if name not in ours:
            print(f"{name} does not lead to us")
        elif options.dry_run:
            print(f"{name} would {_return_of(ours[name])}")
        else:
            try:
                await finished(return_api_service(cluster, name))
            except (StatusError, ValueError) as error:
                failed.append(f"{name} still leads to us: {reason(error)}{_advice(error)}")
                continue
            unavailable += await _told(cluster, group, options.timeout, is_deleted=not is_moved(ours[name]))
    return failed, unavailable


def _advice(error: StatusError | ValueError) -> str:
    is_forbidden = isinstance(error, StatusError) and error.code == 403
    return f"; {MISSING_RIGHTS}" if is_forbidden else ""


def _check_return(ours: Mapping[str, Object], found: Mapping[TargetObject, Object]) -> None:
    visible = tenants_visible()[-1]
    if visible in found and any(is_moved(each) for each in ours.values()):
        why = "all users may list Tenants, and the former server would show all of them to everybody"
        raise StepRefused(f"{why}; first: kubectl delete clusterrolebinding {visible.name}")
    unknown = [name for name, each in ours.items() if not is_moved(each) and not is_ours(each)]
    if unknown:
        owners = ", ".join(f"{name} ({owner_of(ours[name])})" for name in unknown)
        why = f"nobody has recorded where {owners} led before"
        raise StepRefused(f"{why}; first apply the APIService of its owner, or kubectl delete apiservice {unknown[0]}")


def _return_of(api_service: Object) -> str:
    if not is_moved(api_service):
        return "be deleted"
    return f"move back to {service_of(moved_back(api_service)) or 'kube-apiserver itself'}"


async def _told(cluster: ReadableCluster, group: str, timeout: float, *, is_deleted: bool) -> Sequence[str]:
    """Prints where an APIService leads now, and returns it if nobody answers there."""
    name = api_service_name(group)
    if is_deleted:
        print(f"{name}: deleted, as nobody had it before")
        return ()
    why = await becomes_available(cluster, group, timeout)
    service = service_of(await cluster.get(APISERVICES, "", name)) or "kube-apiserver itself"
    print(f"{name}: back at {service}, {f'NOT available: {why}' if why else 'available'}")
    return (f"{service} ({why})",) if why else ()

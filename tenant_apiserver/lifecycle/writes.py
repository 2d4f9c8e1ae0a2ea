"""The writes of a step: the objects that it applies, and those that the server writes while it runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from registry.cluster.interface import APISERVICES
from registry.names import TENANT_FINALIZER
from tenant_apiserver.least_privilege.projection_rights import projection_rights
from tenant_apiserver.least_privilege.right import Right
from tenant_apiserver.least_privilege.rights import CLUSTER_ROLE, RIGHTS
from tenant_apiserver.lifecycle.facts import ClusterFacts, api_service_name
from tenant_apiserver.lifecycle.findings import Check, Level
from tenant_apiserver.lifecycle.installed import OperatorStep, applied
from tenant_apiserver.lifecycle.kinds import is_ours, target
from tenant_apiserver.lifecycle.ownership import has_our_controllers
from tenant_apiserver.lifecycle.registration import FORMER_ANNOTATION
from tenant_apiserver.lifecycle.serving import leads_to_us, service_of

SECTION = "What would be written"
_WRITES = ("create", "update", "patch", "delete")
_WITHOUT_CONTROLLERS = ("helmreleases", "events")


def list_writes(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    """Of objects that cannot be read, other sections say so."""
    for each in applied(step):
        if each.resource == APISERVICES:
            if each.name in {api_service_name(group) for group in facts.groups} and each not in facts.unreadable:
                yield _registration(facts, step, each.name)
        elif each not in facts.unreadable:
            exists = each in facts.found
            verb = "applied, exists" if exists and is_ours(facts.found[each]) else "left as it is"
            done = verb if exists else "created"
            yield Check(SECTION, Level.INFO, str(each), done, kind=each.resource.kind)
    yield from _running(facts, step)


def _registration(facts: ClusterFacts, step: OperatorStep, name: str) -> Check:
    subject = f"APIService {name}"
    found = next((obj for each, obj in facts.found.items() if each.name == name), None)
    if found is None:
        return Check(SECTION, Level.INFO, subject, "created")
    if leads_to_us(found):
        return Check(SECTION, Level.INFO, subject, "nothing, it leads to us already")
    if step is OperatorStep.REGISTER or not service_of(found):
        return Check(SECTION, Level.INFO, subject, "nothing, as it belongs to somebody")
    saved = f"its present form is kept in the annotation {FORMER_ANNOTATION}, for `tenant-apiserver back`"
    return Check(SECTION, Level.INFO, subject, f"moved by `tenant-apiserver replace`; {saved}")


def _running(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    if step is OperatorStep.SHADOW:
        yield Check(SECTION, Level.INFO, "the running server", "nothing at all: it cannot, and its role has reads only")
        return
    if step is OperatorStep.PROXY:
        own = "nothing as itself but reviews of tokens and of access, which the cluster does not store"
        yield Check(SECTION, Level.INFO, "the running proxy", f"{own}; the writes of callers, under their own names")
        return
    for right in RIGHTS:
        verbs = [verb for verb in right.verbs if verb in _WRITES]
        resource = f"{', '.join(right.resources)}{'.' if right.group else ''}{right.group}"
        is_stored = right.place is not None or right.limits
        if not verbs or not is_stored or (step is OperatorStep.REPLACE and not _is_used_without_controllers(right)):
            continue
        if right.role.component and target("ClusterRoleBinding", right.role.name) not in facts.found:
            continue
        where = f"only {right.place.words}" if right.place is not None else "any"
        yield Check(SECTION, Level.INFO, f"the server: {resource}", f"{', '.join(verbs)}; {where}")
    finalizers = f"{TENANT_FINALIZER} on HelmReleases of Tenants; `tenant-apiserver uninstall` removes them"
    without = "none, with --controllers=none"
    yield Check(SECTION, Level.INFO, "finalizers", finalizers if has_our_controllers(facts, step) else without)


def _is_used_without_controllers(right: Right) -> bool:
    """True for what the server writes for callers, for its certificate, and to serve applications. The rights of its
    controllers are in the ClusterRole of the server."""
    is_for_controllers = right.role == CLUSTER_ROLE and right not in projection_rights(CLUSTER_ROLE)
    return not is_for_controllers or right.resources[0] in _WITHOUT_CONTROLLERS

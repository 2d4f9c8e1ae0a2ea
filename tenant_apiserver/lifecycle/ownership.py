"""Objects of the same names as ours, who has them, and whose controllers manage tenants. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.meta.resource import Object
from registry.cluster.interface import APISERVICES, CLUSTERROLES, NAMESPACES
from registry.names import GROUP as APPS
from registry.rbac.role_index import parse_rules, to_policy_rule
from registry.tenant.cluster_roles import TENANT_ROLES
from tenant_apiserver.lifecycle.facts import ClusterFacts, api_service_name
from tenant_apiserver.lifecycle.findings import Check, Level
from tenant_apiserver.lifecycle.installed import NAMESPACE, SERVER, OperatorStep, applied
from tenant_apiserver.lifecycle.kinds import (
    CRDS,
    PROXY,
    Applier,
    TargetObject,
    foreign_owner,
    is_ours,
    owner_of,
    target,
)
from tenant_apiserver.lifecycle.serving import leads_to_us, unreadable_check

_NAMES, _CONTROLLERS = "Objects of the same names", "Controllers"
_PEER_CONTROLLER = "cozystack-controller"
_SHARED = (NAMESPACES, CRDS)
"""Kinds that an installation shares with whoever has them already, and never deletes."""
_NO_HELMRELEASE = "no HelmRelease to suspend: run no helm upgrade or rollback of it until the move back"


def judge_names(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    created, ours = 0, 0
    for each in applied(step):
        if each.resource == APISERVICES:
            continue
        if each in facts.unreadable:
            yield unreadable_check(_NAMES, each, facts.unreadable[each])
        elif each not in facts.found:
            created += 1
        elif is_ours(facts.found[each]):
            ours += 1
        else:
            yield _judge_foreign(each, facts.found[each])
    message = f"{created} would be created, {ours} are of an earlier installation of ours"
    yield Check(_NAMES, Level.OK, "all others", message)
    yield from _judge_namespace(facts, step)


def _judge_namespace(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    namespace = target("Namespace", NAMESPACE)
    if step in (OperatorStep.PROXY, OperatorStep.REGISTER):
        return
    if namespace in facts.unreadable:
        yield unreadable_check(_NAMES, namespace, facts.unreadable[namespace])
    if namespace not in {*facts.found, *facts.unreadable}:
        why = "does not exist, so this is no Cozystack"
        yield Check(_NAMES, Level.FAIL, str(namespace), why, "see docs/install.md, and use --for=register")


def _judge_foreign(each: TargetObject, obj: Object) -> Check:
    message = f"exists, {owner_of(obj)}"
    if each == target("Namespace", PROXY):
        remedy = "take it away from whoever may run Pods in it: the account there may impersonate everybody"
        return Check(_NAMES, Level.FAIL, str(each), f"{message}: the proxy must be alone in it", remedy)
    if each.resource in _SHARED:
        return Check(_NAMES, Level.OK, str(each), f"{message}: it is used as it is, and never deleted")
    if each.name.startswith(SERVER):
        remedy = f"find out who has it: kubectl get {each.resource.plural} {each.name} -o yaml --show-managed-fields"
        return Check(_NAMES, Level.FAIL, str(each), f"{message}: the name is ours", remedy)
    is_role = each.resource == CLUSTERROLES and each.name in TENANT_ROLES
    if is_role and obj.get("rules") == [to_policy_rule(rule) for rule in TENANT_ROLES[each.name]]:
        # kube-apiserver reports a conflict only about a field that would get another value
        why = "an apply changes nothing, as it has the same rules"
        return Check(_NAMES, Level.OK, str(each), f"{message}: {why}")
    why = _compared(each.name, obj) if is_role else "both would be about the same writes"
    remedy = "expect kubectl to report a conflict about it; never use --force-conflicts"
    return Check(_NAMES, Level.WARN, str(each), f"{message}: it stays as it is ({why})", remedy)


def _compared(role: str, obj: Object) -> str:
    theirs, ours = (
        sorted(repr(to_policy_rule(rule)) for rule in rules)
        for rules in (parse_rules(obj.get("rules")), TENANT_ROLES[role])
    )
    return "it has the same rules in another form" if theirs == ours else "its rules differ from ours"


def judge_controllers(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    """Two controllers of the same tenants would write over each other."""
    peers = [each for each in facts.deployments or () if each["metadata"]["name"] == _PEER_CONTROLLER]
    if step is OperatorStep.SHADOW:
        yield Check(_CONTROLLERS, Level.OK, "ours", "a shadow runs none")
        return
    for peer in peers:
        where = f"{peer['metadata'].get('namespace', '')}/{_PEER_CONTROLLER}"
        if step is OperatorStep.REGISTER:
            remedy = "run `tenant-apiserver preflight --for=replace`, and follow docs/live-cozystack.md"
            yield Check(_CONTROLLERS, Level.FAIL, where, "runs here, so this is a live Cozystack", remedy)
        else:
            yield _judge_peer(where, facts)
    if facts.deployments is None:
        remedy = "run preflight with credentials that may list them"
        why = "nobody knows whether it runs, as Deployments cannot be listed"
        yield Check(_CONTROLLERS, Level.UNKNOWN, _PEER_CONTROLLER, why, remedy)
    elif not peers:
        yield Check(_CONTROLLERS, Level.OK, _PEER_CONTROLLER, "does not run here")
    yield from _judge_reconciled_registration(facts, step)


def has_our_controllers(facts: ClusterFacts, step: OperatorStep) -> bool:
    """True if our controllers run after the step, as far as the cluster tells: beside a live Cozystack only where a
    Deployment of ours runs them already."""
    if step is OperatorStep.REGISTER:
        return True
    deployment = facts.found.get(target("Deployment", SERVER, NAMESPACE))
    return step is OperatorStep.REPLACE and deployment is not None and _runs_controllers(deployment)


def _judge_peer(where: str, facts: ClusterFacts) -> Check:
    ours = target("Deployment", SERVER, NAMESPACE)
    if ours in facts.unreadable:
        why = f"runs here, and nobody knows whether ours do: {facts.unreadable[ours]}"
        return Check(_CONTROLLERS, Level.UNKNOWN, where, why, f"run preflight with credentials that may get {ours}")
    deployment = facts.found.get(ours)
    if deployment is not None and _runs_controllers(deployment):
        why = f"runs here, and Deployment {NAMESPACE}/{SERVER} runs controllers of the same tenants"
        remedy = "apply manifests/overlays/live, whose server has --controllers=none"
        return Check(_CONTROLLERS, Level.FAIL, where, why, remedy)
    return Check(_CONTROLLERS, Level.OK, where, "runs here, and goes on: ours are off in manifests/overlays/live")


def _runs_controllers(deployment: Object) -> bool:
    containers: Sequence[Object] = deployment["spec"]["template"]["spec"].get("containers") or ()
    arguments = [each for container in containers for each in container.get("args") or ()]
    return "--controllers=none" not in arguments


def _judge_reconciled_registration(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    """Finds appliers of the APIServices, such as Flux or Helm: the next apply takes them back, unexpectedly."""
    apps = facts.found.get(TargetObject(APISERVICES, "", api_service_name(APPS)))
    if step is not OperatorStep.REPLACE or apps is None or leads_to_us(apps):
        return
    owner = foreign_owner(apps)
    if owner is None or not owner.name:
        return
    release = owner.release
    if release is not None and release in facts.unreadable:
        yield unreadable_check(_CONTROLLERS, release, facts.unreadable[release], subject="APIServices")
    elif release is not None and (facts.found.get(release, {}).get("spec") or {}).get("suspend"):
        yield Check(_CONTROLLERS, Level.OK, "APIServices", f"{owner} is suspended, and does not put them back")
    else:
        why = f"{owner} may put the APIServices back with its next upgrade"
        is_missing = release is not None and release not in facts.found
        remedy = _NO_HELMRELEASE if is_missing else _suspension(owner)
        yield Check(_CONTROLLERS, Level.WARN, "APIServices", why, remedy)


def _suspension(owner: Applier) -> str:
    kind = owner.flux_kind.lower()
    where = f"{kind} -n {owner.namespace} {owner.name}"
    patch = f"""kubectl patch {where} --type=merge -p '{{"spec":{{"suspend":true}}}}'"""
    return f"flux suspend {where}, or {patch}, until the move back"

"""The servers of the groups now, and the kinds that would lose theirs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from admission.cel.library.regex import matches
from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.meta.resource import Object
from registry.application.catalogue import DefinitionState, resolve
from registry.application.forms import read_form
from registry.cluster.interface import APISERVICES
from registry.names import GROUP as APPS
from registry.tenantsecret.convert import GROUP as CORE
from registry.tenantsecret.convert import PLURAL as TENANTSECRETS
from tenant_apiserver.lifecycle.facts import GROUPS, ClusterFacts, api_service_name
from tenant_apiserver.lifecycle.findings import Check, Level
from tenant_apiserver.lifecycle.installed import (
    NAMESPACE,
    SERVER,
    OperatorStep,
    tenants_visible,
    tenantsecrets_readable,
)
from tenant_apiserver.lifecycle.kinds import TargetObject, owner_of
from tenant_apiserver.lifecycle.registration import has_other_port, is_moved, last_mover
from tenant_apiserver.lifecycle.wording import counted

LOCAL = "kube-apiserver itself serves the group, from a CustomResourceDefinition"
_SERVING, _KINDS = "Who serves the groups now", "Kinds"


def service_of(api_service: Object) -> str:
    """`namespace/name` of the Service behind an APIService; empty for one of kube-apiserver itself."""
    service = (api_service.get("spec") or {}).get("service") or {}
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else ""


def leads_to_us(api_service: Object) -> bool:
    return service_of(api_service) == f"{NAMESPACE}/{SERVER}"


def others_leading(names: Sequence[str]) -> Sequence[str]:
    """Those of the APIServices that `back` does not know of."""
    return [each for each in names if each not in {api_service_name(group) for group in GROUPS}]


def is_available(api_service: Object) -> tuple[bool, str]:
    """With the reason if it is not."""
    for condition in (api_service.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Available":
            return condition.get("status") == "True", str(condition.get("message", ""))
    return False, "its availability is not known yet"


def served_by_us(
    own: Mapping[str, frozenset[str]], definitions: Sequence[Object]
) -> tuple[Mapping[str, frozenset[str]], Sequence[DefinitionState]]:
    """The kinds that this version serves with these ApplicationDefinitions besides its `own`, by group, and the
    definitions that it cannot serve."""
    compiler = SchemaRuleCompiler()
    catalogue = resolve({each["metadata"]["name"]: read_form(each, matches, compiler) for each in definitions})
    applications = frozenset(each.plural for each in catalogue.served.values())
    refused = [each for each in catalogue.states if each.why]
    return {**own, APPS: own.get(APPS, frozenset()) | applications}, refused


def unreadable_check(section: str, where: TargetObject, why: str, *, subject: str = "") -> Check:
    """An object that cannot be read. The message is the same for all of its kind that cannot be read for one reason."""
    reason = why.partition(" is forbidden: ")[2] or why
    remedy = "run preflight with credentials that may get each object of this kind"
    return Check(section, Level.UNKNOWN, subject or str(where), f"unknown: {reason}", remedy, kind=where.resource.kind)


def judge_serving(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    yield from (_judge_group(facts, step, group) for group in GROUPS)
    for name in others_leading(facts.leading):
        why = f"leads to {NAMESPACE}/{SERVER}, too, which does not serve it: no namespace can be deleted"
        yield Check(_SERVING, Level.WARN, name, why, f"kubectl delete apiservice {name}, unless somebody needs it")
    yield from _judge_visibility(facts, step)
    yield from _judge_kinds(facts, step)


def _judge_group(facts: ClusterFacts, step: OperatorStep, group: str) -> Check:
    name = api_service_name(group)
    where = TargetObject(APISERVICES, "", name)
    if where in facts.unreadable:
        return unreadable_check(_SERVING, where, facts.unreadable[where], subject=name)
    if where not in facts.found:
        return Check(_SERVING, Level.OK, name, "nobody")
    api_service = facts.found[where]
    if not service_of(api_service) and group in facts.groups and step is not OperatorStep.SHADOW:
        return Check(_SERVING, Level.FAIL, name, LOCAL, _leave_out(facts, [group]))
    available, why = _answers(facts, group, api_service)
    level = Level.OK if available else Level.WARN
    state = "available" if available else f"NOT available: {why}"
    message = f"{service_of(api_service) or 'kube-apiserver itself'}, {state}"
    if leads_to_us(api_service) and has_other_port(api_service):
        message += f"; {last_mover(api_service)} has written a port that our Service does not have"
        return Check(_SERVING, Level.WARN, name, message, "suspend its owner until the move back, then: replace")
    see_why = "" if available else f"kubectl describe apiservice {name} says why"
    if leads_to_us(api_service):
        remedy = see_why and f"{see_why}; so does kubectl logs -n {NAMESPACE} deployment/{SERVER}"
        return Check(_SERVING, level, name, f"{message}; this is our server", remedy)
    if group in facts.silent:
        message += "; its kinds are not known"
    if step is OperatorStep.REGISTER and group in facts.groups:
        remedy = "run `tenant-apiserver preflight --for=replace`, and follow docs/live-cozystack.md"
        return Check(_SERVING, Level.FAIL, name, f"{message}; it stays so, as `kubectl create` would fail", remedy)
    message += _fate(api_service, step, moves=group in facts.groups)
    if is_moved(api_service):
        message += f"; it was moved to us before, and {last_mover(api_service)} has put it back"
        return Check(_SERVING, Level.WARN, name, message, "suspend its owner until the move back, then: replace")
    remedy = see_why and f"{see_why}; to know which kinds would lose their server, repeat this once it answers"
    return Check(_SERVING, level, name, message, remedy)


def _answers(facts: ClusterFacts, group: str, api_service: Object) -> tuple[bool, str]:
    """An APIService says some seconds late that its server is down."""
    if group in facts.silent:
        return False, facts.silent[group]
    return is_available(api_service)


def _leave_out(facts: ClusterFacts, stuck: Sequence[str]) -> str:
    """How to go on without these groups."""
    movable = ",".join(each for each in facts.groups if each not in stuck)
    others = f"move the other groups with --groups={movable}, " if movable else ""
    return f"{others}{'or ' if others else ''}leave them where they are, and use --for=shadow to try this version"


def _fate(api_service: Object, step: OperatorStep, *, moves: bool) -> str:
    if step is not OperatorStep.REPLACE:
        return ""
    if not moves:
        return "; this version does not serve the group, or was not asked to, so it stays there"
    return f"; {owner_of(api_service)}; moves to {NAMESPACE}/{SERVER}"


def _judge_visibility(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    """All users may list Tenants by our binding, and cozystack-api shows everything to those who may list."""
    apps = facts.found.get(TargetObject(APISERVICES, "", api_service_name(APPS)))
    binding = tenants_visible()[-1]
    if binding in facts.unreadable:
        yield unreadable_check(_SERVING, binding, facts.unreadable[binding])
    if binding in facts.found and apps is not None and service_of(apps) and not leads_to_us(apps):
        why = f"all users may list Tenants, and {service_of(apps)} shows all of them to whoever may list"
        remedy = f"kubectl delete clusterrolebinding {binding.name}"
        yield Check(_SERVING, Level.FAIL, str(binding), why, remedy)


def _judge_kinds(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    ours, refused = served_by_us(facts.own, facts.definitions or ())
    # whoever only reads beside them takes nothing from anybody
    level = Level.WARN if step is OperatorStep.SHADOW else Level.FAIL
    known = [each for each in facts.groups if each != APPS or facts.definitions is not None]
    lost = {each: sorted(facts.served.get(each, frozenset()) - ours.get(each, frozenset())) for each in known}
    remedy = _leave_out(facts, [group for group, plurals in lost.items() if plurals])
    if step is OperatorStep.SHADOW:
        remedy = "go on, as a shadow takes it from nobody; --for=replace refuses its group"
    if len(known) < len(facts.groups):
        why = "nobody knows which kinds this version would serve, as ApplicationDefinitions cannot be listed"
        yield Check(_KINDS, Level.UNKNOWN, APPS, why, "run preflight with credentials that may list them")
    for group in known:
        for plural in lost[group]:
            message = "is served now, and not by this version: it would lose its server"
            yield Check(_KINDS, level, f"{plural}.{group}", message, remedy)
        yield Check(_KINDS, Level.INFO, group, f"this version would serve {counted(len(ours.get(group, ())), 'kind')}")
    yield from _judge_tenantsecrets(facts, step)
    for each in refused:
        remedy = f"mend it, or go on without its kind: kubectl edit applicationdefinition {each.name}"
        yield Check(_KINDS, Level.WARN, f"ApplicationDefinition {each.name}", f"cannot be served: {each.why}", remedy)


def _judge_tenantsecrets(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    """They are made from Secrets, which our account may read by a binding that an administrator adds."""
    binding, kind = tenantsecrets_readable()[-1], f"{TENANTSECRETS}.{CORE}"
    is_served = CORE in facts.groups and TENANTSECRETS in facts.served.get(CORE, ())
    if step is not OperatorStep.REPLACE or not is_served or binding in facts.found:
        return
    if binding in facts.unreadable:
        remedy = "run preflight with credentials that may get it"
        yield Check(_KINDS, Level.UNKNOWN, kind, f"unknown, {binding}: {facts.unreadable[binding]}", remedy)
        return
    core = facts.found.get(TargetObject(APISERVICES, "", api_service_name(CORE)))
    # once our server has the group, nobody loses anything by it any more
    level = Level.WARN if core is not None and leads_to_us(core) else Level.FAIL
    why = f"is served now; without {binding}, our server answers empty lists with a warning, and 503"
    remedy = (
        f"kubectl apply --server-side -k manifests/components/{TENANTSECRETS}, or {TENANTSECRETS}=true in the chart's "
        "values, by which whoever takes over the server reads every Secret of the cluster; or "
        f"{_leave_out(facts, [CORE])}"
    )
    yield Check(_KINDS, level, kind, why, remedy)

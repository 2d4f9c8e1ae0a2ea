"""The facts of a user: what RBAC and the host policy allow, and who else may get the Tenant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.meta.resource import Object
from registry.explain.chains.tenant import tenant_object
from registry.explain.known import KnownReaders, KnownUser, Reader
from registry.explain.quoting import quoted_argument, quoted_name
from registry.explain.types import Fact, FactSubject, explanation, fact_object

_RBAC, _VISIBILITY = "rbac.authorization.k8s.io/v1", "visibility.md"
_PEOPLE = "visibility.md#the-people-of-a-tenant"
_MOST_SUBJECTS = 1_000
_LISTS = ("list", "watch")
_VISIBLE = "A tenant is visible to those who may get it."
_FILTERED = "Lists and watches have only tenants that the user may get."
_ON_TENANT = "An action on a tenant needs RBAC in its parent's namespace."
_ON_CHILDREN = "Children of a tenant lie in its workload namespace."


def explain_user(known: KnownUser, about: str) -> Object:
    """The verbs that a user has on the Tenant and below it; the right to get it decides."""
    sees = _sees(known)
    facts = [
        sees,
        *_group_facts(known, sees),
        *_verb_facts(known, known.allowed, "this tenant", _ON_TENANT),
        _list_fact(known),
        *_verb_facts(known, known.children, "its children", _ON_CHILDREN),
        *_child_list_facts(known),
        Fact(
            object=tenant_object(known.tenant, "spec.host"),
            status="True",
            value="may set it" if known.may_set_host else f"{_alone(known)}may not set it",
            rule="Only the groups that the platform trusts set spec.host of a tenant.",
            link="tenants.md#spec",
        ),
    ]
    summary = f"{quoted_name(known.user)} may see {_tenant(known)}"
    return explanation(known.tenant.key, about, facts, summary, deciding=[sees])


def _sees(known: KnownUser) -> Fact:
    """Without its groups, a user may have more rights than are known, and never fewer."""
    common = {"object": tenant_object(known.tenant), "link": _PEOPLE}
    if known.allowed.get("get"):
        return Fact(**common, status="True", value=f"{quoted_name(known.user)} may get it", rule=_VISIBLE)
    denial = f"{quoted_name(known.user)} may not get {_tenant(known)}"
    if known.groups_are_known:
        return Fact(**common, status="False", rule=_VISIBLE, message=denial, remedy=_remedy(known))
    key = known.tenant.key
    return Fact(
        **common,
        status="Unknown",
        rule=_VISIBLE,
        message=f"by name alone, {denial}, and the groups of {quoted_name(known.user)} are not known",
        remedy=f"name them: kubectl tenant explain user {quoted_argument(known.user)} --tenant {key.name} "
        f"-n {key.namespace} --group GROUP",
    )


def _remedy(known: KnownUser) -> str:
    """Never a right in the whole namespace of the parent, which would show siblings, too."""
    if not known.viewers:
        return "wait until the tenant has a namespace: its groups may see it"
    if known.viewers in known.groups:
        return (
            f"wait until the condition AccessReady of the tenant is True: its group {known.viewers} has no access yet"
        )
    remedy = f"add {quoted_name(known.user)} to the group {known.viewers}"
    if known.role:
        place = known.tenant.key.namespace
        remedy += (
            f", or bind {quoted_name(known.user)} to the Role {known.role} in {place}, which shows this tenant alone"
        )
    return remedy


def _group_facts(known: KnownUser, sees: Fact) -> Iterator[Fact]:
    """The groups that the rights are those of."""
    subject = tenant_object(known.tenant)
    if known.groups:
        yield Fact(
            object=subject,
            status="True",
            value=f"groups: {', '.join(map(quoted_name, known.groups))}",
            rule="The rights are those of a user in the groups that the question names.",
            link=_PEOPLE,
        )
    if not known.groups_are_known and sees.status == "True":
        yield Fact(
            object=subject,
            status="Unknown",
            value=f"the groups of {quoted_name(known.user)} are not known: their rights come on top",
            rule="Groups of other users are known only if the question names them.",
            link=_PEOPLE,
        )


def explain_readers(known: KnownReaders, about: str) -> Object:
    """The subjects that may get the Tenant, by the bindings of its parent's namespace and of the cluster."""
    facts, rest = [], _MOST_SUBJECTS
    for each in known.readers:
        if rest > 0:
            facts.append(_reader_fact(each, rest))
        rest -= len(each.subjects)
    if rest < 0:
        facts.append(
            Fact(
                object=tenant_object(known.tenant),
                status="True",
                value=f"{-rest} more subjects are left out",
                rule=f"An answer tells of at most {_MOST_SUBJECTS} subjects.",
                link="explain.md#what-can-be-asked",
            )
        )
    if not known.cluster_wide:
        facts.append(
            Fact(
                object=tenant_object(known.tenant),
                status="True",
                value="bindings of the cluster are left out",
                rule="ClusterRoleBindings are told to those who may list them.",
                link=_VISIBILITY,
            )
        )
    # several bindings may name one subject
    count = len({subject for each in known.readers for subject in each.subjects})
    subjects = "1 subject" if count == 1 else f"{count} subjects"
    return explanation(known.tenant.key, about, facts, f"{subjects} may see the tenant")


def _verb_facts(known: KnownUser, verbs: Mapping[str, bool], what: str, rule: str) -> Iterator[Fact]:
    single = {verb: may for verb, may in verbs.items() if verb not in _LISTS}
    allowed = [verb for verb, may in single.items() if may]
    denied = [verb for verb, may in single.items() if not may]
    for state, named in (("may", allowed), (f"{_alone(known)}may not", denied)):
        if named:
            yield _right(known, f"{state} {', '.join(named)} {what}", rule)


def _list_fact(known: KnownUser) -> Fact:
    allowed = known.allowed
    if not allowed.get("get"):
        return _right(known, f"{_alone(known)}lists and watches leave this tenant out", _FILTERED)
    if any(allowed.get(each) for each in _LISTS):
        return _right(known, "lists and watches have this tenant", _FILTERED)
    return _right(known, f"{_alone(known)}may not list or watch this tenant", _FILTERED)


def _child_list_facts(known: KnownUser) -> Iterator[Fact]:
    children = known.children
    if not children:
        return
    if not any(children.get(each) for each in _LISTS):
        yield _right(known, f"{_alone(known)}may not list or watch its children", _FILTERED)
    elif children.get("get"):
        yield _right(known, "lists and watches have all of its children", _FILTERED)
    else:
        text = "lists and watches have only those of its children that the user may get"
        yield _right(known, f"{_alone(known)}{text}", _FILTERED)


def _right(known: KnownUser, value: str, rule: str) -> Fact:
    return Fact(object=tenant_object(known.tenant), status="True", value=value, rule=rule, link=_VISIBILITY)


def _alone(known: KnownUser) -> str:
    """A group may be allowed more than the name."""
    return "" if known.groups_are_known else "by name alone, "


def _tenant(known: KnownUser) -> str:
    return f"tenant {known.tenant.key.namespace}/{known.tenant.key.name}"


def _reader_fact(reader: Reader, most: int) -> Fact:
    """Tells of `most` subjects."""
    subjects = reader.subjects[:most]
    kind = "RoleBinding" if reader.binding.namespace else "ClusterRoleBinding"
    return Fact(
        object=fact_object(_RBAC, kind, reader.binding, "subjects"),
        status="True",
        value=", ".join(f"{each.kind} {quoted_name(each.name)}" for each in subjects),
        subjects=[FactSubject(kind=each.kind, name=each.name) for each in subjects],
        rule=f"The binding gives its subjects {reader.role}, which allows to get the tenant.",
        link=_VISIBILITY,
    )

"""The facts of a user: what RBAC and the host policy allow, and who else may get the Tenant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.meta.resource import Object
from registry.explain.chains.tenant import tenant_object
from registry.explain.known import KnownReaders, KnownUser, Reader
from registry.explain.types import Fact, explanation, fact_object

_RBAC, _VISIBILITY = "rbac.authorization.k8s.io/v1", "visibility.md"


def explain_user(known: KnownUser, about: str) -> Object:
    """The verbs that a user has on the Tenant and below it; the right to get it decides."""
    facts = [
        *_verb_facts(
            known, known.allowed, "this tenant", "An action on a tenant needs RBAC in its parent's namespace."
        ),
        *_verb_facts(known, known.children, "its children", "Children of a tenant lie in its workload namespace."),
        Fact(
            object=tenant_object(known.tenant, "spec.host"),
            status="True",
            value="may set it" if known.may_set_host else "may not set it",
            rule="Only the groups that the platform trusts set spec.host of a tenant.",
            link="tenants.md#spec",
        ),
    ]
    if not known.is_caller:
        facts.append(
            Fact(
                object=tenant_object(known.tenant),
                status="True",
                rule="Groups of other users are not known here: their rights come on top.",
                link=_VISIBILITY,
            )
        )
    sees = _sees(known)
    return explanation(known.tenant.key, about, [sees, *facts], f"{known.user} may see the tenant", deciding=[sees])


def _sees(known: KnownUser) -> Fact:
    seen = bool(known.allowed.get("get"))
    remedy = f"bind the user to a Role in {known.tenant.key.namespace} that allows it, such as cozy:tenant:view"
    return Fact(
        object=tenant_object(known.tenant),
        status="True" if seen else "False",
        rule="A tenant is visible to those who may get it.",
        link=_VISIBILITY,
        message=None if seen else f"{known.user} may not get the tenant",
        remedy=None if seen else remedy,
    )


def explain_readers(known: KnownReaders, about: str) -> Object:
    """The subjects that may get the Tenant, by the bindings of its parent's namespace and of the cluster."""
    facts = [_reader_fact(each) for each in known.readers]
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
    count = sum(len(each.subjects) for each in known.readers)
    return explanation(known.tenant.key, about, facts, f"{count} subjects may get the tenant")


def _verb_facts(known: KnownUser, verbs: Mapping[str, bool], what: str, rule: str) -> Iterator[Fact]:
    allowed = [verb for verb, may in verbs.items() if may]
    denied = [verb for verb, may in verbs.items() if not may]
    for state, named in (("may", allowed), ("may not", denied)):
        if named:
            yield Fact(
                object=tenant_object(known.tenant),
                status="True",
                value=f"{state} {', '.join(named)} {what}",
                rule=rule,
                link=_VISIBILITY,
            )


def _reader_fact(reader: Reader) -> Fact:
    kind = "RoleBinding" if reader.binding.namespace else "ClusterRoleBinding"
    return Fact(
        object=fact_object(_RBAC, kind, reader.binding, "subjects"),
        status="True",
        value=", ".join(reader.subjects),
        rule=f"The binding gives its subjects {reader.role}, which allows to get the tenant.",
        link=_VISIBILITY,
    )

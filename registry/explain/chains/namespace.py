"""The facts of a Namespace: whose it is, and what its labels say. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.meta.resource import Key, Object
from registry.explain.chains.tenant import gateway_fact, host_fact
from registry.explain.known import TENANT, KnownNamespace
from registry.explain.types import HIDDEN, Fact, explanation, fact_object, hidden_object
from registry.names import GATEWAY_LABEL, HOST_LABEL

_RULE = "A namespace belongs to the tenant whose workload namespace it is."
_LABELS = {HOST_LABEL: "the domain below which its routes may have hostnames", GATEWAY_LABEL: "whose Gateway serves it"}


def explain_namespace(known: KnownNamespace, about: str) -> Object:
    """The answer about a Namespace: one of no tenant, and one of a tenant that is hidden, give the same."""
    owner = known.owner
    if owner is None:
        unknown = Fact(
            object=hidden_object(),
            status="Unknown",
            rule=_RULE,
            link="visibility.md#hidden-objects",
            message=f"namespace {known.name} is of no tenant, or its tenant is {HIDDEN}",
            remedy="check the name, or ask for the right to get the tenant",
        )
        return explanation(known.tenant.key, about, [unknown, *_label_facts(known)], "")
    of = f"{owner.key.namespace}/{owner.key.name}"
    facts = [
        Fact(
            object=fact_object(*TENANT, owner.key, "status.namespace"),
            status="True",
            value=known.name,
            rule=_RULE,
            link="tenants.md",
        ),
        host_fact(owner),
        gateway_fact(owner),
        *_label_facts(known),
    ]
    return explanation(known.tenant.key, about, facts, f"namespace {known.name} belongs to tenant {of}")


def _label_facts(known: KnownNamespace) -> Iterator[Fact]:
    labels = (known.namespace or {}).get("metadata", {}).get("labels") or {}
    for name, meaning in _LABELS.items():
        if name in labels:
            yield Fact(
                object=fact_object("v1", "Namespace", Key("", known.name), f"metadata.labels[{name}]"),
                status="True",
                value=str(labels[name]),
                rule=f"This label of a tenant's namespace says {meaning}.",
                link="inheritance.md",
            )

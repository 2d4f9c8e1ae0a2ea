"""TenantExplanation as pydantic models, and the Resource that the subresource `tenants/explain` returns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from apiserver.meta.resource import Column, Key, Object, Resource
from registry.names import GROUP, VERSION
from registry.structural_schema import structural_schema
from registry.tenant.quota_keys import AllocationRatios

FORMAT = 1
"""The version of the answers: a client that knows it understands each of their fields."""
HIDDEN = "an object that you may not see"

Verdict = Literal["True", "False", "Unknown"]


class _Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True, frozen=True)


class FactObject(_Model):
    """The object that a fact is read from."""

    api_version: str | None = Field(None, alias="apiVersion", description="Its group and version.")
    kind: str | None = Field(None, description="Its kind.")
    namespace: str | None = Field(None, description="Its namespace.")
    name: str | None = Field(None, description="Its name.")
    field: str | None = Field(None, description="The field with the value.")
    hidden: bool | None = Field(None, description="True for an object that the user may not see: nothing else is set.")


class FactSubject(_Model):
    """A subject of a binding. A ServiceAccount is one by its user name."""

    kind: Literal["User", "Group"] = Field(description="User or Group; a ServiceAccount is a User.")
    name: str = Field(description="Its name, as it is: any text.")


class Fact(_Model):
    """One fact of the chain. Each follows from those before it."""

    object: FactObject = Field(description="The object that the fact is read from.")
    status: Verdict = Field(description="False if it keeps the subject from working, Unknown while that is not known.")
    value: str | None = Field(None, description="The value of the field.")
    subjects: list[FactSubject] | None = Field(
        None, description="Of a binding: its subjects. `value` has the same for people, and is not to be parsed."
    )
    rule: str = Field(description="The rule, in one sentence.")
    link: str = Field(description="The page that describes the rule, relative to the documentation.")
    reason: str | None = Field(None, description="The reason of the condition that the fact is about.")
    message: str | None = Field(None, description="The message of the condition that the fact is about.")
    remedy: str | None = Field(None, description="The nearest change that would make it work.")


class DecimalRatios(_Model):
    """The platform's allocation ratios, as decimal numbers."""

    cpu: str = Field(description="The divisor of amounts of cpu.")
    memory: str = Field(description="The divisor of amounts of memory.")
    ephemeral_storage: str = Field(alias="ephemeralStorage", description="The divisor of amounts of ephemeral-storage.")

    @classmethod
    def of(cls, ratios: AllocationRatios) -> DecimalRatios:
        cpu, memory, ephemeral_storage = (str(Decimal(each.numerator) / each.denominator) for each in ratios.values)
        return cls(cpu=cpu, memory=memory, ephemeral_storage=ephemeral_storage)


class _Explanation(_Model):
    about: str = Field(description="The subject, as it was asked for.")
    format: int = Field(description="The version of the answer; it changes when a field changes its meaning.")
    verdict: Verdict = Field(
        description="False if a fact that counts is False, Unknown if one is Unknown, otherwise True."
    )
    summary: str = Field(description="The answer in one sentence.")
    facts: list[Fact] = Field(description="The facts that lead to the answer, in their order.")
    allocation_ratios: DecimalRatios | None = Field(
        None,
        alias="allocationRatios",
        description="Of a tenant: by how much limits may exceed requests, which quotas are compared with.",
    )


def fact_object(api_version: str, kind: str, key: Key, field: str = "") -> FactObject:
    return FactObject(
        api_version=api_version, kind=kind, namespace=key.namespace or None, name=key.name, field=field or None
    )


def hidden_object() -> FactObject:
    return FactObject(hidden=True)


def deciding_fact(facts: Sequence[Fact]) -> Fact | None:
    """The first fact that is False, or else Unknown; None if all are True."""
    for status in ("False", "Unknown"):
        for each in facts:
            if each.status == status:
                return each
    return None


def explanation(
    tenant: Key,
    about: str,
    facts: Sequence[Fact],
    summary: str,
    *,
    deciding: Sequence[Fact] | None = None,
    ratios: AllocationRatios | None = None,
) -> Object:
    """The answer as an object without apiVersion and kind. `summary` is that of an answer without a problem; otherwise
    the first fact that is not True is the summary. Only the `deciding` facts count if they are passed."""
    problem = deciding_fact(facts if deciding is None else deciding)
    if problem is not None:
        summary = problem.message or problem.rule
        summary += f"; {problem.remedy}" if problem.remedy else ""
    body = _Explanation(
        about=about,
        format=FORMAT,
        verdict=problem.status if problem is not None else "True",
        summary=summary,
        facts=list(facts),
        allocation_ratios=DecimalRatios.of(ratios) if ratios is not None else None,
    )
    return {
        "metadata": {"name": tenant.name, "namespace": tenant.namespace},
        **body.model_dump(by_alias=True, exclude_none=True),
    }


def explanation_resource() -> Resource:
    properties = structural_schema(_Explanation)["properties"]
    return Resource(
        group=GROUP,
        version=VERSION,
        kind="TenantExplanation",
        plural="tenants",
        singular="tenant",
        namespaced=True,
        description="TenantExplanation is the chain of facts that leads to the state of a tenant or of what is in it.",
        properties=properties,
        columns=(
            Column("About", description="The subject."),
            Column("Verdict", description="True if it works, False if not."),
            Column("Summary", description="The answer in one sentence."),
        ),
        cells=lambda obj: (obj.get("about", ""), obj.get("verdict", ""), obj.get("summary", "")),
        get_parameters={
            "about": "The subject: tenant (the default), host/NAME, route/NAMESPACE/NAME, namespace/NAME, user/NAME or "
            "who-can-see.",
            "group": "A group of the user of about=user/NAME; can be repeated. Without one, the groups of a user other "
            "than the caller are not known.",
        },
    )

"""The facts of a route: its hostnames, its parents, and what their controllers say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.explain.hostnames import mappings
from registry.explain.known import KnownRoute
from registry.explain.reasons import condition_fact
from registry.explain.types import HIDDEN, Fact, FactObject, explanation, fact_object, hidden_object
from registry.explain.variants_of_gateways import OF_ANOTHER_PARENT

_GATEWAYS, _EXPLAIN = "gateways.md", "explain.md#hostnames"
# the Gateway of a tenant and its TenantGateway have one name
_OF_TENANT = ("Gateway", "TenantGateway")


def explain_route(known: KnownRoute, about: str) -> Object:
    """The answer about a route: a missing one, and one that the user may not get, give the same."""
    name = f"{known.key.namespace}/{known.key.name}"
    if known.route is None:
        facts = [
            Fact(
                object=hidden_object(),
                status="Unknown",
                rule="A route is explained to those who may get it.",
                link="visibility.md#hidden-objects",
                message=f"route {name} does not exist, or is {HIDDEN}",
                remedy="check the name, or ask for the right to get the route",
            )
        ]
        return explanation(known.tenant.key, about, facts, "")
    facts = list(route_facts(known.route, known.gateway))
    return explanation(known.tenant.key, about, facts, f"route {name} is served")


def route_facts(route: Object, gateway: Key | None = None, *, most: int | None = None) -> Iterator[Fact]:
    """Each parentRef with the conditions of its controllers, of at most `most`, those of the gateway first. `gateway`
    is the one that the route should name, if that is known."""
    metadata, spec = route["metadata"], route.get("spec") or {}
    subject = fact_object(
        str(route.get("apiVersion") or "gateway.networking.k8s.io/v1"),
        str(route.get("kind") or "HTTPRoute"),
        Key(metadata["namespace"], metadata["name"]),
    )
    hostnames = [str(each) for each in spec.get("hostnames") or ()]
    yield Fact(
        object=subject.model_copy(update={"field": "spec.hostnames"}),
        status="True",
        value=", ".join(hostnames) or "those of the listeners",
        rule="A route serves its hostnames on the Gateways that it names.",
        link=_GATEWAYS,
    )
    references = mappings(spec.get("parentRefs"))
    if not references:
        yield Fact(
            object=subject.model_copy(update={"field": "spec.parentRefs"}),
            status="False",
            rule="A route names the Gateways that serve it.",
            link=_GATEWAYS,
            message="the route names no Gateway",
            remedy=_name(gateway) if gateway else "add a parentRef with the name and namespace of the Gateway",
        )
    told: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for each in mappings((route.get("status") or {}).get("parents")):
        told.setdefault(_hashable(_identity(each.get("parentRef"), subject)), []).append(each)
    for at in _nearest(references, subject, gateway, most):
        reference = references[at]
        for fact in _parent_facts(subject, at, reference, told):
            yield _with_gateway(fact, reference, subject, gateway)
    if most is not None and len(references) > most:
        yield Fact(
            object=subject.model_copy(update={"field": "spec.parentRefs"}),
            status="True",
            value=f"{len(references) - most} more are left out",
            rule="An answer about a route tells of all of its parentRefs.",
            link=_EXPLAIN,
        )


def _nearest(
    references: Sequence[Mapping[str, Any]], subject: FactObject, gateway: Key | None, most: int | None
) -> Sequence[int]:
    """The positions of the parentRefs to tell of, in their order."""
    positions = range(len(references))
    if most is None or gateway is None:
        return positions[:most]
    return sorted(sorted(positions, key=lambda at: _identity(references[at], subject)[1:3] != gateway)[:most])


def route_name(route: Object) -> str:
    """Its kind, namespace and name."""
    metadata = route["metadata"]
    return f"{route.get('kind') or 'HTTPRoute'} {metadata['namespace']}/{metadata['name']}"


def is_refused(route: Object) -> bool:
    """True if a controller does not accept the route: then it has no hostnames there."""
    parents = mappings((route.get("status") or {}).get("parents"))
    conditions = (condition for each in parents for condition in mappings(each.get("conditions")))
    return any(each.get("type") == "Accepted" and each.get("status") == "False" for each in conditions)


def is_accepted(route: Object) -> bool:
    """True if a controller accepts the route, and none refuses it."""
    parents = mappings((route.get("status") or {}).get("parents"))
    conditions = (condition for each in parents for condition in mappings(each.get("conditions")))
    accepted = [each.get("status") == "True" for each in conditions if each.get("type") == "Accepted"]
    return bool(accepted) and all(accepted)


def attaches_to(route: Object, namespace: str) -> bool:
    """True if a parentRef names an object in the namespace."""
    references = mappings((route.get("spec") or {}).get("parentRefs"))
    return any((each.get("namespace") or route["metadata"]["namespace"]) == namespace for each in references)


def _with_gateway(fact: Fact, reference: Mapping[str, Any], subject: FactObject, gateway: Key | None) -> Fact:
    """The fact with the Gateway to name, where the route names another one that does not serve it."""
    kind, namespace, name, *_ = _identity(reference, subject)
    if gateway is None or kind not in _OF_TENANT or (namespace, name) == gateway or fact.status == "True":
        return fact
    if fact.reason is not None and fact.remedy not in OF_ANOTHER_PARENT:
        return fact
    return fact.model_copy(update={"remedy": _name(gateway, str(kind))})


def _name(gateway: Key, kind: str = "Gateway") -> str:
    return f"name {kind} {gateway.namespace}/{gateway.name} in parentRefs"


def _parent_facts(
    subject: FactObject,
    at: int,
    reference: Mapping[str, Any],
    parents: Mapping[tuple[object, ...], Sequence[Mapping[str, Any]]],
) -> Iterator[Fact]:
    """`parents` are the statuses of the parentRefs by identity."""
    kind, namespace, name, *_ = identity = _identity(reference, subject)
    named = f"{kind} {namespace}/{name}"
    told = parents.get(_hashable(identity), ())
    if not any(mappings(each.get("conditions")) for each in told):
        yield Fact(
            object=subject.model_copy(update={"field": f"spec.parentRefs[{at}]"}),
            status="Unknown",
            value=named,
            rule="The controller of a Gateway reports on each route that names it.",
            link=_GATEWAYS,
            message=f"no controller has reported on {named}",
            remedy="check that the Gateway exists, and that the controller of its class is running",
        )
    for each in told:
        controller = each.get("controllerName")
        for condition in mappings(each.get("conditions")):
            fact = condition_fact(subject, condition)
            field = f"status.parents[{at}].conditions[{condition.get('type')}]"
            yield fact.model_copy(
                update={
                    "object": subject.model_copy(update={"field": field}),
                    "value": f"{fact.value} at {named}, says {controller}",
                }
            )


def _hashable(identity: tuple[object, ...]) -> tuple[object, ...]:
    """Fields of the wrong type, which the schema of routes excludes, are told apart by their text."""
    return tuple(each if isinstance(each, str | int | None) else repr(each) for each in identity)


def _identity(reference: object, subject: FactObject) -> tuple[object, ...]:
    """The fields of a parentRef with their defaults: controllers repeat it with or without them."""
    found = reference if isinstance(reference, dict) else {}
    namespace = found.get("namespace") or subject.namespace
    return found.get("kind") or "Gateway", namespace, found.get("name"), found.get("sectionName"), found.get("port")

"""A ValidatingAdmissionPolicy for each kind that our ServiceAccount writes, which binds the account and nobody else.

They fail closed. The expressions of the table read these variables:

* `target`: the object before the write, or the new one of a creation
* `name`, `namespaceName`: those of `target`; empty for the namespace of cluster-scoped objects
* `home`: the namespace of the account

The account's name is in the match condition of each policy and nowhere else, so that one kustomize patch changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from apiserver.meta.resource import Object
from tenant_apiserver.least_privilege.right import Installation, Limit, Right

PART_OF = {"app.kubernetes.io/component": "account-limits"}
NAME_PREFIX = "tenant-apiserver-limits-"
_ACCOUNT = "the account of tenant-apiserver"
_API_VERSION = "admissionregistration.k8s.io/v1"
_WRITES = frozenset(("create", "update", "patch", "delete"))
_VARIABLES = {
    "target": "oldObject == null ? object : oldObject",
    "name": "variables.target.metadata.name",
    "namespaceName": "variables.target.metadata.?namespace.orValue('')",
    "home": "request.userInfo.username.split(':')[2]",
}


def policies(rights: Sequence[Right], installation: Installation) -> Mapping[str, tuple[Object, Object]]:
    """The policy and its binding of each kind whose writes are limited, by the name of both."""
    rows: dict[tuple[str, tuple[str, ...]], list[Right]] = {}
    for right in rights:
        if right.place is not None or right.limits:
            rows.setdefault((right.group, tuple(right.resources)), []).append(right)
    rendered = {}
    for (group, resources), limited in rows.items():
        name = f"{NAME_PREFIX}{'-'.join(resources).replace('/', '-')}"
        rendered[name] = _policy(name, group, resources, limited, installation), _binding(name)
    return rendered


def _policy(
    name: str, group: str, resources: Sequence[str], rows: Sequence[Right], installation: Installation
) -> Object:
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": list(resources),
    }
    variables, validations = dict(_VARIABLES), []
    places = [right.place for right in rows if right.place is not None]
    if places:
        names = ["place"] if len(places) == 1 else [f"place{number}" for number, _ in enumerate(places)]
        variables |= {each: place.expression for each, place in zip(names, places, strict=True)}
        words = ", or ".join(place.words for place in places)
        message = f"{_ACCOUNT} may write {' and '.join(resources)} only so: {words}"
        validations.append(_validation(" || ".join(f"variables.{each}" for each in names), message))
    for number, right in enumerate(rows):
        unless = f"!variables.place{number} || " if len(places) > 1 else ""
        for limit in right.limits:
            variables |= limit.variables
            validations.append(_validation(_guarded(limit, unless), f"{_ACCOUNT}: {limit.message}"))
    return {
        "apiVersion": _API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": PART_OF},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": "account", "expression": f"request.userInfo.username == '{installation.user}'"}
            ],
            "variables": [{"name": each, "expression": text} for each, text in _needed(variables, validations)],
            "validations": validations,
        },
    }


def _guarded(limit: Limit, unless: str) -> str:
    """Limits are about what is written, and a deletion writes nothing."""
    other = f"request.operation != '{limit.operation}'" if limit.operation else "request.operation == 'DELETE'"
    return f"{other} || {unless}({limit.expression})"


def _validation(expression: str, message: str) -> Mapping[str, str]:
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _needed(variables: Mapping[str, str], validations: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """The variables that an expression reads, directly or through another variable."""
    texts = [each["expression"] for each in validations]
    needed: dict[str, str] = {}
    for name, text in reversed(tuple(variables.items())):
        if any(f"variables.{name}" in each for each in (*texts, *needed.values())):
            needed[name] = text
    return reversed(tuple(needed.items()))


def _binding(name: str) -> Object:
    return {
        "apiVersion": _API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": PART_OF},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }

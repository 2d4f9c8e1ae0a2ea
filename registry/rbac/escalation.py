"""Nobody gives away more than they hold: what RBAC rules another set of rules leaves uncovered. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from registry.rbac.role_index import ALL, RbacRule, path_matches

ALL_RULES = (
    RbacRule(verbs=(ALL,), groups=(ALL,), resources=(ALL,)),
    RbacRule(verbs=(ALL,), paths=(ALL,)),
)
"""What a ClusterRole may come to hold whose rules are aggregated."""


def uncovered(held: Sequence[RbacRule], wanted: Sequence[RbacRule]) -> list[RbacRule]:
    """What `wanted` allows and `held` does not: a rule for each group and resource, or path, with its verbs."""
    missing: dict[RbacRule, list[str]] = {}
    for rule in wanted:
        for single in _single(rule):
            if not any(_covers(holder, single) for holder in held):
                target = RbacRule((), single.groups, single.resources, single.names, single.paths)
                missing.setdefault(target, []).extend(single.verbs)
    return [
        RbacRule(tuple(dict.fromkeys(verbs)), target.groups, target.resources, target.names, target.paths)
        for target, verbs in missing.items()
    ]


def describe(rule: RbacRule) -> str:
    """The rule as Kubernetes prints it in a refusal."""
    fields = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("ResourceNames", rule.names),
        ("NonResourceURLs", rule.paths),
        ("Verbs", rule.verbs),
    )
    shown = [f"{name}:[{', '.join(_quoted(value) for value in values)}]" for name, values in fields if values]
    return "{" + ", ".join(shown) + "}"


def _quoted(text: str) -> str:
    return f'"{text}"'


def _single(rule: RbacRule) -> Iterator[RbacRule]:
    """The rule in parts that are covered as a whole or not at all: one verb on one thing."""
    for verb in rule.verbs:
        for path in rule.paths:
            yield RbacRule(verbs=(verb,), paths=(path,))
        for group in rule.groups:
            for resource in rule.resources:
                for name in rule.names or ("",):
                    yield RbacRule((verb,), (group,), (resource,), (name,) if name else ())


def _covers(holder: RbacRule, single: RbacRule) -> bool:
    if not _has(holder.verbs, single.verbs[0]):
        return False
    if single.paths:
        return any(path_matches(path, single.paths[0]) for path in holder.paths)
    return (
        _has(holder.groups, single.groups[0])
        and _covers_resource(holder.resources, single.resources[0])
        and (not holder.names or (bool(single.names) and single.names[0] in holder.names))
    )


def _covers_resource(held: Sequence[str], resource: str) -> bool:
    if _has(held, resource):
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"{ALL}/{subresource}" in held


def _has(values: Sequence[str], value: str) -> bool:
    return ALL in values or value in values

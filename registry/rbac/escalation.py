"""The escalation check: RBAC rules that are not covered by the rules of the user who grants them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from registry.rbac.role_index import ALL, RbacRule, path_matches

ALL_RULES = (
    RbacRule(verbs=(ALL,), groups=(ALL,), resources=(ALL,)),
    RbacRule(verbs=(ALL,), paths=(ALL,)),
)
"""The widest rules that an aggregated ClusterRole can get."""


MAX_PERMISSIONS = 5_000
"""The maximum number of single permissions that one check breaks the rules of a role down to. ClusterRoles of
Kubernetes and of its operators have some hundreds."""


def number_of_permissions(rules: Sequence[RbacRule]) -> int:
    """The number of single permissions of rules: one with 50 verbs, groups, resources and names has six million."""
    return sum(
        len(rule.verbs) * (len(rule.paths) + len(rule.groups) * len(rule.resources) * max(len(rule.names), 1))
        for rule in rules
    )


def uncovered(owned: Sequence[RbacRule], requested: Sequence[RbacRule]) -> list[RbacRule]:
    """The permissions of `requested` that `owned` lacks: a rule for each resource or path, with the verbs missing. It
    takes time for each of `number_of_permissions`."""
    missing: dict[RbacRule, list[str]] = {}
    for rule in requested:
        for single in _break_down(rule):
            if not any(_covers(owner_rule, single) for owner_rule in owned):
                target = RbacRule((), single.groups, single.resources, single.names, single.paths)
                missing.setdefault(target, []).extend(single.verbs)
    return [
        RbacRule(tuple(dict.fromkeys(verbs)), target.groups, target.resources, target.names, target.paths)
        for target, verbs in missing.items()
    ]


def describe_rule(rule: RbacRule) -> str:
    """The rule in the format of kube-apiserver's escalation error."""
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


def _break_down(rule: RbacRule) -> Iterator[RbacRule]:
    """Breaks the rule down into rules with one verb and one resource, resource name or path."""
    for verb in rule.verbs:
        for path in rule.paths:
            yield RbacRule(verbs=(verb,), paths=(path,))
        for group in rule.groups:
            for resource in rule.resources:
                for name in rule.names or ("",):
                    yield RbacRule((verb,), (group,), (resource,), (name,) if name else ())


def _covers(owner_rule: RbacRule, single: RbacRule) -> bool:
    if not _has(owner_rule.verbs, single.verbs[0]):
        return False
    if single.paths:
        return any(path_matches(path, single.paths[0]) for path in owner_rule.paths)
    return (
        _has(owner_rule.groups, single.groups[0])
        and _covers_resource(owner_rule.resources, single.resources[0])
        and (not owner_rule.names or (bool(single.names) and single.names[0] in owner_rule.names))
    )


def _covers_resource(resources: Sequence[str], resource: str) -> bool:
    if _has(resources, resource):
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"{ALL}/{subresource}" in resources


def _has(values: Sequence[str], value: str) -> bool:
    return ALL in values or value in values

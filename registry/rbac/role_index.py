"""RBAC authorization over an in-memory index of roles and bindings. No I/O.

The embedded cluster authorizes requests with it, and registry/visibility computes the namespaces that a user may see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, NewType, TypeVar

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.interned import interned
from registry.multimap import Multimap
from registry.rbac.subject_bindings import SubjectBindings, namespace_of

GROUP = "rbac.authorization.k8s.io"
ALL = "*"

_SERVICE_ACCOUNT = "system:serviceaccount"
_CACHE_SIZE = 1024
_SHARED_CHARACTERS = 1024

S = TypeVar("S", bound=str)


@dataclass(frozen=True, slots=True)
class RbacRule:
    """A PolicyRule of RBAC, either for resources or for non-resource `paths`."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, access: AccessAttributes) -> bool:
        if not _has(self.verbs, access.verb):
            return False
        if not access.is_resource:
            return any(path_matches(path, access.path) for path in self.paths)
        return (
            _has(self.groups, access.group)
            and resource_matches(self.resources, access.resource, access.subresource)
            and (not self.names or access.name in self.names)
        )


# These are strings because there are many for each tenant, and the garbage collector does not traverse strings. They
# are interned, because the same subject or key occurs in objects that are listed far from each other.

Subject = NewType("Subject", str)
"""`<kind>:<name>` of a user or group, from `make_subject`; `split_subject` is the inverse."""

RoleKey = NewType("RoleKey", str)
"""`<namespace>/<name>` of a Role or ClusterRole, from `make_role_key`; `split_key` is the inverse."""

BindingKey = NewType("BindingKey", str)
"""`<namespace>/<name>` of a RoleBinding or ClusterRoleBinding, from `make_binding_key`."""


class RbacBinding(NamedTuple):
    key: BindingKey
    role: RoleKey
    subjects: tuple[Subject, ...]

    @property
    def namespace(self) -> str:
        """Empty for a ClusterRoleBinding."""
        return split_key(self.key).namespace


BoundRole = tuple[str, RoleKey]
"""The namespace of a binding, empty for a ClusterRoleBinding, and its role."""


class Grant(NamedTuple):
    """The rules that a user has by one binding, and the subject of it that matches the user."""

    binding: RbacBinding
    subject: Subject
    rules: Sequence[RbacRule]


class RoleIndex:
    """Roles and bindings, updated one object at a time. Bindings are indexed by subject, so that the cost of a decision
    does not depend on the number of tenants."""

    def __init__(self) -> None:
        self._rules: dict[RoleKey, tuple[RbacRule, ...]] = {}
        # the role and the subjects of each binding
        self._bindings: dict[BindingKey, tuple[RoleKey, tuple[Subject, ...]]] = {}
        self._by_subject: SubjectBindings[Subject, BindingKey] = SubjectBindings()
        self._by_role: Multimap[RoleKey, BindingKey] = Multimap()

    def put_role(self, key: RoleKey, rules: Iterable[RbacRule]) -> None:
        self._rules[key] = tuple(rules)

    def drop_role(self, key: RoleKey) -> None:
        self._rules.pop(key, None)

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None:
        """None if there is no such role."""
        return self._rules.get(key)

    @property
    def roles(self) -> Iterable[RoleKey]:
        return self._rules.keys()

    @property
    def bindings(self) -> Iterable[BindingKey]:
        return self._bindings.keys()

    def put_binding(self, binding: RbacBinding) -> None:
        self.drop_binding(binding.key)
        self._bindings[binding.key] = binding.role, binding.subjects
        for subject in binding.subjects:
            self._by_subject.add(subject, binding.key)
        self._by_role.add(binding.role, binding.key)

    def drop_binding(self, key: BindingKey) -> None:
        role, subjects = self._bindings.pop(key, (None, ()))
        for subject in subjects:
            self._by_subject.discard(subject, key)
        if role is not None:
            self._by_role.discard(role, key)

    def binding(self, key: BindingKey) -> RbacBinding | None:
        return RbacBinding(key, *self._bindings[key]) if key in self._bindings else None

    def bindings_of(self, subject: Subject, namespace: str | None = None) -> Iterator[RbacBinding]:
        """The bindings of a subject: all of them, or those in `namespace`, '' for ClusterRoleBindings."""
        for key in self._keys(subject, namespace):
            yield RbacBinding(key, *self._bindings[key])

    def roles_of(self, subject: Subject, namespace: str | None = None) -> Iterator[BoundRole]:
        """The roles of the same bindings."""
        for key in self._keys(subject, namespace):
            yield namespace_of(key), self._bindings[key][0]

    def _keys(self, subject: Subject, namespace: str | None) -> Iterable[BindingKey]:
        return self._by_subject.keys(subject) if namespace is None else self._by_subject.keys_in(subject, namespace)

    def bindings_of_role(self, role: RoleKey) -> Iterator[RbacBinding]:
        return (RbacBinding(key, *self._bindings[key]) for key in self._by_role[role])

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """The grants of `user` in the whole cluster, followed by those in `namespace` unless it is empty."""
        scopes = ("", namespace) if namespace else ("",)
        for scope in scopes:
            for subject in subjects_of(user):
                for key in self._by_subject.keys_in(subject, scope):
                    role, subjects = self._bindings[key]
                    if (rules := self._rules.get(role)) is not None:
                        yield Grant(RbacBinding(key, role, subjects), subject, rules)

    def rules_for(self, user: User, namespace: str) -> list[RbacRule]:
        """The distinct rules of `user` in a namespace, '' for cluster-wide rules only."""
        return list(dict.fromkeys(rule for grant in self.grants(user, namespace) for rule in grant.rules))

    def decide(self, access: AccessAttributes) -> Decision:
        """Allowed, or no opinion: RBAC never denies."""
        namespace = access.namespace if access.is_resource else ""
        for grant in self.grants(access.user, namespace):
            if any(rule.allows(access) for rule in grant.rules):
                return Decision(allowed=True, reason=_reason(grant))
        return Decision()


@lru_cache(maxsize=_CACHE_SIZE)
def make_subject(kind: str, name: str) -> Subject:
    """`kind` is User or Group; a ServiceAccount is a subject by its user name."""
    return Subject(interned(f"{kind}:{name}"))


def split_subject(subject: Subject) -> tuple[str, str]:
    kind, _, name = subject.partition(":")
    return kind, name


def make_role_key(namespace: str, name: str) -> RoleKey:
    """A ClusterRole's namespace is empty."""
    return RoleKey(interned(f"{namespace}/{name}"))


def make_binding_key(namespace: str, name: str) -> BindingKey:
    """A ClusterRoleBinding's namespace is empty."""
    return BindingKey(interned(f"{namespace}/{name}"))


def split_key(key: RoleKey | BindingKey) -> Key:
    namespace, _, name = key.partition("/")
    return Key(namespace, name)


def resource_matches(resources: Sequence[str], resource: str, subresource: str) -> bool:
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"{ALL}/{subresource}" in resources


def path_matches(pattern: str, path: str) -> bool:
    """`pattern` is a path, or a prefix followed by `*`."""
    return path.startswith(pattern[:-1]) if pattern.endswith(ALL) else path == pattern


def parse_rules(document: object) -> tuple[RbacRule, ...]:
    """Parses the rules of a Role or ClusterRole. Malformed parts grant nothing."""
    items = document if isinstance(document, list) else []
    return tuple(_rule(item) for item in items if isinstance(item, dict))


def resolve_role_ref(reference: Mapping[str, Any], namespace: str) -> RoleKey | None:
    """The role that the roleRef of a binding in `namespace` names, None if it is invalid."""
    name, kind = reference.get("name"), reference.get("kind")
    if reference.get("apiGroup", GROUP) != GROUP or not isinstance(name, str):
        return None
    if kind == "ClusterRole":
        return _cluster_role(name)
    return make_role_key(namespace, name) if kind == "Role" and namespace else None


def parse_binding(obj: Object) -> RbacBinding | None:
    """Parses a RoleBinding or ClusterRoleBinding. None if its roleRef is invalid, so that it grants nothing."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    bound = resolve_role_ref(obj.get("roleRef") or {}, namespace)
    if bound is None:
        return None
    subjects = [_subject(item, namespace) for item in obj.get("subjects") or () if isinstance(item, dict)]
    distinct = tuple(dict.fromkeys(subject for subject in subjects if subject is not None))
    return RbacBinding(make_binding_key(namespace, metadata["name"]), bound, _share(distinct))


def service_account_user(
    namespace: str, name: str, uid: str = "", *, extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """The user as which a ServiceAccount is authenticated."""
    groups = (f"{_SERVICE_ACCOUNT}s", f"{_SERVICE_ACCOUNT}s:{namespace}")
    return User(name=f"{_SERVICE_ACCOUNT}:{namespace}:{name}", uid=uid, groups=groups, extra=extra or {})


def to_policy_rule(rule: RbacRule) -> Object:
    """The rule as a PolicyRule document."""
    fields = {
        "verbs": rule.verbs,
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
        "nonResourceURLs": rule.paths,
    }
    return {name: list(values) for name, values in fields.items() if values}


def subjects_of(user: User) -> Iterator[Subject]:
    """The subjects that match this user: their name and each of their groups."""
    yield make_subject("User", user.name)
    for group in dict.fromkeys(user.groups):
        yield make_subject("Group", group)


# Bindings of thousands of tenants name the same few roles, and those of one tenant the same subjects, and the rules of
# the roles by which tenants are seen differ in names only, so equal values are shared.


@lru_cache(maxsize=_CACHE_SIZE)
def _cluster_role(name: str) -> RoleKey:
    return make_role_key("", name)


def _share(strings: tuple[S, ...]) -> tuple[S, ...]:
    """An equal tuple of before, if it is remembered. Long ones are rare, and would occupy memory when their objects are
    deleted (ATTACK-19)."""
    return _remembered(strings) if sum(map(len, strings)) <= _SHARED_CHARACTERS else strings


@lru_cache(maxsize=_CACHE_SIZE)
def _remembered(strings: tuple[Any, ...]) -> tuple[Any, ...]:
    return strings


def _subject(item: Mapping[str, Any], namespace: str) -> Subject | None:
    kind, name = item.get("kind"), item.get("name")
    if not isinstance(name, str) or not name:
        return None
    if kind in ("User", "Group"):
        return _bound_subject(kind, name)
    account_namespace = item.get("namespace") or namespace
    return (
        _bound_subject("User", f"{_SERVICE_ACCOUNT}:{account_namespace}:{name}")
        if kind == "ServiceAccount" and account_namespace
        else None
    )


def _bound_subject(kind: str, name: str) -> Subject:
    """A subject of a binding. A long one is not remembered: it would occupy memory when its binding is deleted
    (ATTACK-19)."""
    return make_subject(kind, name) if len(name) <= _SHARED_CHARACTERS else Subject(f"{kind}:{name}")


def _rule(item: Mapping[str, Any]) -> RbacRule:
    return RbacRule(
        verbs=_share(_strings(item.get("verbs"))),
        groups=_share(_strings(item.get("apiGroups"))),
        resources=_share(_strings(item.get("resources"))),
        names=_strings(item.get("resourceNames")),
        paths=_strings(item.get("nonResourceURLs")),
    )


def _strings(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _has(values: Sequence[str], value: str) -> bool:
    return ALL in values or value in values


def _reason(grant: Grant) -> str:
    bound, bound_to = split_key(grant.binding.key), split_key(grant.binding.role)
    bound_by = (
        f'RoleBinding "{bound.name}/{bound.namespace}"' if bound.namespace else f'ClusterRoleBinding "{bound.name}"'
    )
    role_kind = "Role" if bound_to.namespace else "ClusterRole"
    kind, name = split_subject(grant.subject)
    return f'RBAC: allowed by {bound_by} of {role_kind} "{bound_to.name}" to {kind} "{name}"'

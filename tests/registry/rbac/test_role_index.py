"""RBAC decisions by roles and bindings, and the escalation check."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.request.context import User
from registry.rbac import role_index as rbac
from registry.rbac.escalation import ALL_RULES, describe_rule, uncovered
from registry.rbac.role_index import (
    RbacRule,
    RoleIndex,
    RoleKey,
    parse_binding,
    parse_rules,
    resolve_role_ref,
    service_account_user,
    to_policy_rule,
)
from registry.tenant.cluster_roles import TENANT_ROLES

BOB = User(name="bob", groups=("devs", "system:authenticated"))


def access_to(verb: str = "get", resource: str = "pods", **more: Any) -> AccessAttributes:
    return AccessAttributes(**{"user": BOB, "verb": verb, "resource": resource, **more})


@pytest.mark.parametrize(
    ("rule", "access", "allowed"),
    [
        pytest.param(RbacRule(("get",), ("",), ("pods",)), access_to(), True, id="an exact match"),
        pytest.param(RbacRule(("get",), ("",), ("pods",)), access_to("list"), False, id="another verb"),
        pytest.param(RbacRule(("get",), ("apps",), ("pods",)), access_to(), False, id="another group"),
        pytest.param(RbacRule(("*",), ("*",), ("*",)), access_to(subresource="log"), True, id="everything"),
        pytest.param(
            RbacRule(("get",), ("",), ("pods",)),
            access_to(subresource="log"),
            False,
            id="a resource without its subresource",
        ),
        pytest.param(RbacRule(("get",), ("",), ("pods/log",)), access_to(subresource="log"), True, id="a subresource"),
        pytest.param(
            RbacRule(("get",), ("",), ("*/log",)),
            access_to(subresource="log"),
            True,
            id="a subresource of every resource",
        ),
        pytest.param(
            RbacRule(("get",), ("",), ("*/log",)), access_to(), False, id="a subresource without its resource"
        ),
        pytest.param(RbacRule(("get",), ("",), ("pods",), ("a",)), access_to(name="a"), True, id="a name"),
        pytest.param(RbacRule(("get",), ("",), ("pods",), ("a",)), access_to(name="b"), False, id="another name"),
        pytest.param(
            RbacRule(("list",), ("",), ("pods",), ("a",)), access_to("list"), False, id="a name does not allow a list"
        ),
        pytest.param(RbacRule(("get",), paths=("/a",)), access_to(resource="", path="/a"), True, id="a path"),
        pytest.param(RbacRule(("get",), paths=("/a",)), access_to(resource="", path="/a/b"), False, id="below a path"),
        pytest.param(
            RbacRule(("get",), paths=("/a/*",)), access_to(resource="", path="/a/b"), True, id="a path with a star"
        ),
        pytest.param(RbacRule(("get",), paths=("*",)), access_to(resource="", path="/x"), True, id="all paths"),
        pytest.param(RbacRule(("get",), paths=("*",)), access_to(), False, id="paths are not resources"),
        pytest.param(
            RbacRule(("get",), ("*",), ("*",)), access_to(resource="", path="/x"), False, id="resources are not paths"
        ),
    ],
)
def test_a_rule_allows(rule: RbacRule, access: AccessAttributes, allowed: bool) -> None:
    assert rule.allows(access) is allowed


def binding(name: str, role: dict[str, str], *subjects: dict[str, str], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, "roleRef": role, "subjects": list(subjects)}


def index_of(roles: dict[RoleKey, list[RbacRule]], *bindings: dict[str, Any]) -> RoleIndex:
    index = RoleIndex()
    for key, rules in roles.items():
        index.put_role(key, rules)
    for each in bindings:
        parsed = parse_binding(each)
        assert parsed is not None
        index.put_binding(parsed)
    return index


VIEW = {"kind": "ClusterRole", "name": "view"}
LOCAL = {"kind": "Role", "name": "view"}
PODS = [RbacRule(("get",), ("",), ("pods",))]


def test_a_cluster_role_binding_applies_everywhere() -> None:
    index = index_of({rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, {"kind": "User", "name": "bob"}))
    assert index.decide(access_to(namespace="ns")).allowed
    assert (
        index.decide(access_to()).reason
        == 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "view" to User "bob"'
    )


def test_a_role_binding_applies_in_its_namespace_only() -> None:
    index = index_of(
        {rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, {"kind": "Group", "name": "devs"}, namespace="ns")
    )
    assert index.decide(access_to(namespace="ns")).reason == (
        'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "view" to Group "devs"'
    )
    assert not index.decide(access_to(namespace="other")).allowed
    assert not index.decide(access_to()).allowed


def test_a_role_ref_names_a_role_in_the_namespace_of_its_binding() -> None:
    bob = {"kind": "User", "name": "bob"}
    index = index_of({rbac.make_role_key("other", "view"): PODS}, binding("b", LOCAL, bob, namespace="ns"))
    assert not index.decide(access_to(namespace="ns")).allowed
    index.put_role(rbac.make_role_key("ns", "view"), PODS)
    assert index.decide(access_to(namespace="ns")).allowed


def test_a_role_binding_does_not_grant_non_resource_paths() -> None:
    rules = {rbac.make_role_key("", "view"): [RbacRule(("get",), paths=("*",))]}
    index = index_of(rules, binding("b", VIEW, {"kind": "User", "name": "bob"}, namespace="ns"))
    assert not index.decide(access_to(resource="", path="/x", namespace="ns")).allowed


def test_a_service_account_is_identified_by_namespace_and_name() -> None:
    """R-332."""
    subject = {"kind": "ServiceAccount", "name": "sa", "namespace": "a"}
    index = index_of({rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, subject))
    assert index.decide(access_to(user=service_account_user("a", "sa"))).allowed
    assert not index.decide(access_to(user=service_account_user("b", "sa"))).allowed


@pytest.mark.parametrize("kind", ["Robot", "user", "Users", "Service", "Namespace", ""])
def test_subjects_of_other_kinds_match_no_user(kind: str) -> None:
    """R-332: only users, groups and service accounts are subjects."""
    index = index_of(
        {rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, {"kind": kind, "name": "bob", "namespace": "a"})
    )
    assert not index.decide(access_to()).allowed
    assert not index.decide(access_to(user=User(name="x", groups=("bob",)))).allowed
    assert not index.decide(access_to(user=service_account_user("a", "bob"))).allowed


def parsed_binding(index: int, group: str) -> rbac.RbacBinding | None:
    subject = {"kind": "Group", "apiGroup": rbac.GROUP, "name": group}
    reference = {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": "view"}
    return rbac.parse_binding(
        {"metadata": {"namespace": "a", "name": str(index)}, "roleRef": reference, "subjects": [subject]}
    )


@pytest.mark.parametrize(("length", "shared"), [(10, True), (2000, False)])
def test_short_parts_of_equal_rules_and_bindings_occupy_memory_once(length: int, shared: bool) -> None:
    """Long ones would stay in memory when their objects are deleted."""
    document = [{"verbs": ["v" * length], "apiGroups": ["g" * length], "resources": ["r" * length]}]
    (one,), (other,) = rbac.parse_rules(document), rbac.parse_rules(copy.deepcopy(document))
    assert one == other
    parts = [(getattr(one, name), getattr(other, name)) for name in ("verbs", "groups", "resources")]
    assert [first is second for first, second in parts] == [shared] * 3
    bindings = parsed_binding(1, "n" * length), parsed_binding(2, "n" * length)
    assert bindings[0] is not None
    assert bindings[1] is not None
    assert (bindings[0].subjects is bindings[1].subjects) is shared


def test_removed_rules_and_bindings_no_longer_apply() -> None:
    bob = {"kind": "User", "name": "bob"}
    index = index_of({rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, bob))
    index.put_role(rbac.make_role_key("", "view"), [])
    assert not index.decide(access_to()).allowed
    index.put_role(rbac.make_role_key("", "view"), PODS)
    other = parse_binding(binding("b", VIEW, {"kind": "User", "name": "alice"}))
    assert other is not None
    index.put_binding(other)
    assert not index.decide(access_to()).allowed
    assert index.decide(access_to(user=User(name="alice"))).allowed
    index.drop_binding(rbac.make_binding_key("", "b"))
    assert not index.decide(access_to(user=User(name="alice"))).allowed


def test_rules_for_lists_each_rule_once() -> None:
    bob, devs = {"kind": "User", "name": "bob"}, {"kind": "Group", "name": "devs"}
    index = index_of(
        {rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, bob, devs), binding("c", VIEW, bob, namespace="ns")
    )
    assert index.rules_for(BOB, "ns") == PODS


@pytest.mark.parametrize(
    ("document", "rules"),
    [
        pytest.param(None, (), id="none"),
        pytest.param("x", (), id="not a list"),
        pytest.param([1, {"verbs": "get"}], (RbacRule(()),), id="wrong types"),
        pytest.param(
            [{"verbs": ["get", 1], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
            (RbacRule(("get",), ("",), ("pods",), ("a",)),),
            id="with an invalid entry",
        ),
    ],
)
def test_malformed_rules_grant_nothing(document: object, rules: tuple[RbacRule, ...]) -> None:
    assert parse_rules(document) == rules


@pytest.mark.parametrize(
    ("reference", "namespace", "key"),
    [
        pytest.param(VIEW, "ns", rbac.make_role_key("", "view"), id="a ClusterRole in a namespace"),
        pytest.param(LOCAL, "ns", rbac.make_role_key("ns", "view"), id="a Role"),
        pytest.param(LOCAL, "", None, id="a Role for the whole cluster"),
        pytest.param({"kind": "Role"}, "ns", None, id="no name"),
        pytest.param({**VIEW, "apiGroup": "example.org"}, "ns", None, id="another API group"),
    ],
)
def test_a_role_ref_is_resolved(reference: dict[str, str], namespace: str, key: RoleKey | None) -> None:
    assert resolve_role_ref(reference, namespace) == key


@pytest.mark.parametrize(
    ("owned", "requested", "missing"),
    [
        pytest.param(PODS, PODS, [], id="the same"),
        pytest.param([], PODS, ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'], id="no own rules"),
        pytest.param(ALL_RULES, [*PODS, RbacRule(("get",), paths=("*",))], [], id="owner of everything"),
        pytest.param(
            PODS,
            ALL_RULES,
            ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}', '{NonResourceURLs:["*"], Verbs:["*"]}'],
            id="everything requested",
        ),
        pytest.param(
            [RbacRule(("get",), ("",), ("pods",), ("a",))],
            PODS,
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
            id="one name does not cover all",
        ),
        pytest.param(PODS, [RbacRule(("get",), ("",), ("pods",), ("a",))], [], id="all names cover one"),
        pytest.param(
            [RbacRule(("get",), ("",), ("pods",)), RbacRule(("list",), ("",), ("pods",))],
            [RbacRule(("get", "list", "watch"), ("",), ("pods",))],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}'],
            id="rules add up",
        ),
        pytest.param(
            [RbacRule(("get",), ("",), ("*/log",))], [RbacRule(("get",), ("",), ("pods/log",))], [], id="a subresource"
        ),
        pytest.param(
            [RbacRule(("get",), paths=("/a/*",))],
            [RbacRule(("get",), paths=("/a/b", "/b"))],
            ['{NonResourceURLs:["/b"], Verbs:["get"]}'],
            id="paths",
        ),
    ],
)
def test_uncovered_rules_are_described(owned: list[RbacRule], requested: list[RbacRule], missing: list[str]) -> None:
    assert [describe_rule(rule) for rule in uncovered(owned, requested)] == missing


_some = st.lists(st.sampled_from(("a", "b", "*")), min_size=1, max_size=2, unique=True).map(tuple)
_names = st.lists(st.sampled_from(("x", "y")), max_size=2, unique=True).map(tuple)
_rules = st.lists(st.builds(RbacRule, verbs=_some, groups=_some, resources=_some, names=_names), max_size=3)
# every access that the rules above can distinguish; "z" stands for all values that they do not name
_ACCESSES = [
    AccessAttributes(user=BOB, verb=verb, group=group, resource=resource, name=name)
    for verb, group, resource in itertools.product(("a", "b", "z"), repeat=3)
    for name in ("x", "y", "z", "")
]


def allowed(rules: list[RbacRule], access: AccessAttributes) -> bool:
    return any(rule.allows(access) for rule in rules)


@given(owned=_rules, requested=_rules)
def test_covered_rules_grant_nothing_new(owned: list[RbacRule], requested: list[RbacRule]) -> None:
    missing = uncovered(owned, requested)
    for access in _ACCESSES:
        if allowed(requested, access):
            assert allowed([*owned, *missing], access)


@given(_rules)
def test_rules_round_trip_through_policy_rules(rules: list[RbacRule]) -> None:
    assert list(parse_rules([to_policy_rule(rule) for rule in rules])) == rules


def tenant_role_allows(role: str, verb: str, group: str, resource: str) -> bool:
    return allowed(list(TENANT_ROLES[f"cozy:tenant:{role}"]), access_to(verb, resource, group=group))


@pytest.mark.parametrize("role", ["view", "use", "admin", "super-admin"])
@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection", "bind", "escalate"])
@pytest.mark.parametrize(
    ("group", "resource"),
    [
        pytest.param("gateway.networking.k8s.io", "httproutes", id="R-020"),
        pytest.param("", "namespaces", id="R-021"),
        pytest.param("cozystack.io", "packages", id="R-022"),
        pytest.param("gateway.cozystack.io", "tenantgateways", id="R-023"),
        pytest.param("rbac.authorization.k8s.io", "rolebindings", id="bindings"),
        pytest.param("helm.toolkit.fluxcd.io", "helmreleases", id="the storage of Tenants"),
    ],
)
def test_tenant_roles_cannot_write_platform_resources(role: str, verb: str, group: str, resource: str) -> None:
    assert not tenant_role_allows(role, verb, group, resource)


@pytest.mark.parametrize("role", ["view", "use", "admin", "super-admin"])
@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
@pytest.mark.parametrize(
    ("group", "resource"),
    [("networking.k8s.io", "networkpolicies"), ("cilium.io", "ciliumnetworkpolicies")],
)
def test_tenant_roles_hold_no_right_on_network_policies(role: str, verb: str, group: str, resource: str) -> None:
    """R-077."""
    assert not tenant_role_allows(role, verb, group, resource)


@pytest.mark.parametrize(
    ("role", "verb", "may"),
    [
        ("view", "get", True),
        ("view", "create", False),
        ("use", "watch", True),
        ("use", "delete", False),
        ("admin", "create", True),
        ("admin", "deletecollection", False),
        ("super-admin", "create", True),
        ("super-admin", "deletecollection", True),
    ],
)
def test_administrators_can_create_sub_tenants(role: str, verb: str, may: bool) -> None:
    """R-025."""
    assert tenant_role_allows(role, verb, "apps.cozystack.io", "tenants") is may

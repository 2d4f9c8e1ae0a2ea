"""Who may do what by roles and bindings, and what nobody may give away."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.request.context import User
from registry.rbac import role_index as rbac
from registry.rbac.escalation import ALL_RULES, describe, uncovered
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


def asks(verb: str = "get", resource: str = "pods", **more: Any) -> AccessAttributes:
    return AccessAttributes(**{"user": BOB, "verb": verb, "resource": resource, **more})


@pytest.mark.parametrize(
    ("rule", "access", "allowed"),
    [
        pytest.param(RbacRule(("get",), ("",), ("pods",)), asks(), True, id="as it says"),
        pytest.param(RbacRule(("get",), ("",), ("pods",)), asks("list"), False, id="another verb"),
        pytest.param(RbacRule(("get",), ("apps",), ("pods",)), asks(), False, id="another group"),
        pytest.param(RbacRule(("*",), ("*",), ("*",)), asks(subresource="log"), True, id="everything"),
        pytest.param(
            RbacRule(("get",), ("",), ("pods",)), asks(subresource="log"), False, id="a subresource is another thing"
        ),
        pytest.param(RbacRule(("get",), ("",), ("pods/log",)), asks(subresource="log"), True, id="a subresource"),
        pytest.param(
            RbacRule(("get",), ("",), ("*/log",)), asks(subresource="log"), True, id="a subresource of anything"
        ),
        pytest.param(RbacRule(("get",), ("",), ("*/log",)), asks(), False, id="a subresource is not the thing"),
        pytest.param(RbacRule(("get",), ("",), ("pods",), ("a",)), asks(name="a"), True, id="a name"),
        pytest.param(RbacRule(("get",), ("",), ("pods",), ("a",)), asks(name="b"), False, id="another name"),
        pytest.param(
            RbacRule(("list",), ("",), ("pods",), ("a",)), asks("list"), False, id="a list is not of one name"
        ),
        pytest.param(RbacRule(("get",), paths=("/a",)), asks(resource="", path="/a"), True, id="a path"),
        pytest.param(RbacRule(("get",), paths=("/a",)), asks(resource="", path="/a/b"), False, id="below a path"),
        pytest.param(
            RbacRule(("get",), paths=("/a/*",)), asks(resource="", path="/a/b"), True, id="a path with a star"
        ),
        pytest.param(RbacRule(("get",), paths=("*",)), asks(resource="", path="/x"), True, id="all paths"),
        pytest.param(RbacRule(("get",), paths=("*",)), asks(), False, id="paths are no resources"),
        pytest.param(
            RbacRule(("get",), ("*",), ("*",)), asks(resource="", path="/x"), False, id="resources are no paths"
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


def test_a_cluster_role_binding_counts_everywhere() -> None:
    index = index_of({rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, {"kind": "User", "name": "bob"}))
    assert index.decide(asks(namespace="ns")).allowed
    assert index.decide(asks()).reason == 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "view" to User "bob"'


def test_a_role_binding_counts_in_its_namespace_alone() -> None:
    index = index_of(
        {rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, {"kind": "Group", "name": "devs"}, namespace="ns")
    )
    assert index.decide(asks(namespace="ns")).reason == (
        'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "view" to Group "devs"'
    )
    assert not index.decide(asks(namespace="other")).allowed
    assert not index.decide(asks()).allowed


def test_a_role_is_looked_for_in_the_namespace_of_its_binding() -> None:
    bob = {"kind": "User", "name": "bob"}
    index = index_of({rbac.make_role_key("other", "view"): PODS}, binding("b", LOCAL, bob, namespace="ns"))
    assert not index.decide(asks(namespace="ns")).allowed
    index.put_role(rbac.make_role_key("ns", "view"), PODS)
    assert index.decide(asks(namespace="ns")).allowed


def test_rules_of_a_namespace_say_nothing_about_paths() -> None:
    rules = {rbac.make_role_key("", "view"): [RbacRule(("get",), paths=("*",))]}
    index = index_of(rules, binding("b", VIEW, {"kind": "User", "name": "bob"}, namespace="ns"))
    assert not index.decide(asks(resource="", path="/x", namespace="ns")).allowed


def test_a_service_account_is_known_by_namespace_and_name() -> None:
    """R-332."""
    subject = {"kind": "ServiceAccount", "name": "sa", "namespace": "a"}
    index = index_of({rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, subject))
    assert index.decide(asks(user=service_account_user("a", "sa"))).allowed
    assert not index.decide(asks(user=service_account_user("b", "sa"))).allowed


@pytest.mark.parametrize("kind", ["Robot", "user", "Users", "Service", "Namespace", ""])
def test_subjects_of_other_kinds_are_nobody(kind: str) -> None:
    """R-332: users, groups and service accounts, and no more."""
    index = index_of(
        {rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, {"kind": kind, "name": "bob", "namespace": "a"})
    )
    assert not index.decide(asks()).allowed
    assert not index.decide(asks(user=User(name="x", groups=("bob",)))).allowed
    assert not index.decide(asks(user=service_account_user("a", "bob"))).allowed


def test_what_is_taken_back_counts_no_more() -> None:
    bob = {"kind": "User", "name": "bob"}
    index = index_of({rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, bob))
    index.put_role(rbac.make_role_key("", "view"), [])
    assert not index.decide(asks()).allowed
    index.put_role(rbac.make_role_key("", "view"), PODS)
    other = parse_binding(binding("b", VIEW, {"kind": "User", "name": "alice"}))
    assert other is not None
    index.put_binding(other)
    assert not index.decide(asks()).allowed
    assert index.decide(asks(user=User(name="alice"))).allowed
    index.drop_binding(rbac.make_binding_key("", "b"))
    assert not index.decide(asks(user=User(name="alice"))).allowed


def test_rules_are_listed_once() -> None:
    bob, devs = {"kind": "User", "name": "bob"}, {"kind": "Group", "name": "devs"}
    index = index_of(
        {rbac.make_role_key("", "view"): PODS}, binding("b", VIEW, bob, devs), binding("c", VIEW, bob, namespace="ns")
    )
    assert index.rules_for(BOB, "ns") == PODS


@pytest.mark.parametrize(
    ("document", "rules"),
    [
        pytest.param(None, (), id="none"),
        pytest.param("x", (), id="no list"),
        pytest.param([1, {"verbs": "get"}], (RbacRule(()),), id="of the wrong types"),
        pytest.param(
            [{"verbs": ["get", 1], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
            (RbacRule(("get",), ("",), ("pods",), ("a",)),),
            id="with something odd in it",
        ),
    ],
)
def test_rules_that_are_not_well_formed_grant_nothing(document: object, rules: tuple[RbacRule, ...]) -> None:
    assert parse_rules(document) == rules


@pytest.mark.parametrize(
    ("reference", "namespace", "key"),
    [
        pytest.param(VIEW, "ns", rbac.make_role_key("", "view"), id="a ClusterRole in a namespace"),
        pytest.param(LOCAL, "ns", rbac.make_role_key("ns", "view"), id="a Role"),
        pytest.param(LOCAL, "", None, id="a Role for the whole cluster"),
        pytest.param({"kind": "Role"}, "ns", None, id="no name"),
        pytest.param({**VIEW, "apiGroup": "example.org"}, "ns", None, id="of another group"),
    ],
)
def test_a_role_reference_names(reference: dict[str, str], namespace: str, key: RoleKey | None) -> None:
    assert resolve_role_ref(reference, namespace) == key


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param(PODS, PODS, [], id="the same"),
        pytest.param([], PODS, ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'], id="nothing held"),
        pytest.param(ALL_RULES, [*PODS, RbacRule(("get",), paths=("*",))], [], id="everything held"),
        pytest.param(
            PODS,
            ALL_RULES,
            ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}', '{NonResourceURLs:["*"], Verbs:["*"]}'],
            id="everything wanted",
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
def test_what_is_wanted_beyond_what_is_held_is_told(
    held: list[RbacRule], wanted: list[RbacRule], missing: list[str]
) -> None:
    assert [describe(rule) for rule in uncovered(held, wanted)] == missing


_some = st.lists(st.sampled_from(("a", "b", "*")), min_size=1, max_size=2, unique=True).map(tuple)
_names = st.lists(st.sampled_from(("x", "y")), max_size=2, unique=True).map(tuple)
_rules = st.lists(st.builds(RbacRule, verbs=_some, groups=_some, resources=_some, names=_names), max_size=3)
# every question that the rules above could tell apart; "z" stands for all that they do not name
_QUESTIONS = [
    AccessAttributes(user=BOB, verb=verb, group=group, resource=resource, name=name)
    for verb, group, resource in itertools.product(("a", "b", "z"), repeat=3)
    for name in ("x", "y", "z", "")
]


def allowed(rules: list[RbacRule], access: AccessAttributes) -> bool:
    return any(rule.allows(access) for rule in rules)


@given(held=_rules, wanted=_rules)
def test_whoever_is_let_through_gains_nothing(held: list[RbacRule], wanted: list[RbacRule]) -> None:
    missing = uncovered(held, wanted)
    for question in _QUESTIONS:
        if allowed(wanted, question):
            assert allowed([*held, *missing], question)


@given(_rules)
def test_rules_survive_their_documents(rules: list[RbacRule]) -> None:
    assert list(parse_rules([to_policy_rule(rule) for rule in rules])) == rules


def tenant_role_allows(role: str, verb: str, group: str, resource: str) -> bool:
    return allowed(list(TENANT_ROLES[f"cozy:tenant:{role}"]), asks(verb, resource, group=group))


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
        pytest.param("helm.toolkit.fluxcd.io", "helmreleases", id="what a Tenant is stored as"),
    ],
)
def test_tenant_roles_never_write_to_the_platform(role: str, verb: str, group: str, resource: str) -> None:
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
def test_administrators_make_sub_tenants(role: str, verb: str, may: bool) -> None:
    """R-025."""
    assert tenant_role_allows(role, verb, "apps.cozystack.io", "tenants") is may

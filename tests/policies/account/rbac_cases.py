"""RoleBindings and Roles."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.meta.resource import Object
from tests.policies.account.case import CHILD, OTHER, ROLEBINDINGS, ROLES, ROOT, TENANT, AccountCase, case

_RBAC = "rbac.authorization.k8s.io"


def role_bindings() -> Iterator[AccountCase]:
    def binding(role: str, *subjects: Object, kind: str = "ClusterRole") -> Object:
        return {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role}, "subjects": list(subjects)}

    def write(
        id: str, new: Object, refusal: str = "", *, old: Object | None = None, where: str = TENANT
    ) -> AccountCase:
        return case(ROLEBINDINGS, id, where, "limits", old=old, new=new, refusal=refusal)

    def group(name: str) -> Object:
        return {"kind": "Group", "apiGroup": _RBAC, "name": name}

    def account(namespace: str, name: str = "") -> Object:
        return {"kind": "ServiceAccount", "namespace": namespace, "name": name or namespace}

    user = {"kind": "User", "apiGroup": _RBAC, "name": "mallory"}
    place = "may write rolebindings only so: in namespaces tenant-*"
    role = "only the ClusterRoles cozy:tenant and cozy:tenant:* may be bound, and Roles cozy:tenant-self:*"
    subject = "a role is bound only to the groups and the ServiceAccounts of the tenant and its ancestors"
    for level in ("view", "use", "admin", "super-admin"):
        yield write(f"for the group {level}", binding(f"cozy:tenant:{level}", group(f"{TENANT}-{level}")))
        yield write(f"for the group {level} of the root", binding(f"cozy:tenant:{level}", group(f"{ROOT}-{level}")))
    yield write("without a level", binding("cozy:tenant", account(TENANT)))
    yield write("for the root", binding("cozy:tenant", account(ROOT)))
    yield write("for a parent", binding("cozy:tenant", account(TENANT)), where=CHILD)
    yield write("for no tenant", binding("cozy:tenant", account("tenant")), subject)
    yield write("for the group of a parent", binding("cozy:tenant:use", group(f"{TENANT}-use")), where=CHILD)
    yield write("for another namespace like a group", binding("cozy:tenant:use", group("tenant-use")), subject)
    yield write("for a group of tenant", binding("cozy:tenant:use", group("tenant-x-use")), subject)
    yield write("for a group without a level", binding("cozy:tenant:use", group(TENANT)), subject)
    yield write("for a group of another word", binding("cozy:tenant:use", group(f"{TENANT}-used")), subject)
    yield write("for the group of a child", binding("cozy:tenant:use", group(f"{CHILD}-use")), subject)
    yield write("for the group of a sibling", binding("cozy:tenant:use", group("tenant-lim-use")), subject)
    yield write("without subjects", binding("cozy:tenant"))
    yield write("elsewhere", binding("cozy:tenant", account(TENANT)), place, where="kube-system")
    yield write("an administrator", binding("cluster-admin", account(TENANT)), role)
    yield write("a similar name", binding("cozy:tenants:visible", account(TENANT)), role)
    yield write("a Role named like a ClusterRole", binding("cozy:tenant:admin", account(TENANT), kind="Role"), role)
    yield write("a ClusterRole named like a Role", binding("cozy:tenant-self:a", account(TENANT)), role)
    yield write("any Role", binding("admin", account(TENANT), kind="Role"), role)
    yield write("for a user", binding("cozy:tenant:admin", user), subject)
    yield write("for a user beside others", binding("cozy:tenant:admin", group(f"{TENANT}-admin"), user), subject)
    yield write("for everyone", binding("cozy:tenant:admin", group("system:authenticated")), subject)
    yield write("for a user like a group", binding("cozy:tenant:admin", {**user, "name": f"{TENANT}-admin"}), subject)
    yield write("for another tenant's group", binding("cozy:tenant:admin", group("tenant-bob-admin")), subject)
    yield write("for another account", binding("cozy:tenant:admin", account(TENANT, "default")), subject)
    yield write("for an account like a namespace", binding("cozy:tenant:admin", account(OTHER, TENANT)), subject)
    yield write(
        "for a user like an account", binding("cozy:tenant:admin", {**account(TENANT), "kind": "User"}), subject
    )
    yield write("for a sibling", binding("cozy:tenant:admin", account("tenant-lim")), subject)
    yield write("for a child", binding("cozy:tenant:admin", account(f"{TENANT}-a")), subject)
    kept = binding("cozy:tenant:admin", user)
    yield write("a user remains", {**kept, "metadata": {"labels": {"x": "y"}}}, old=kept)
    more = binding("cozy:tenant:admin", user, {**user, "name": "eve"})
    yield write("a user is added", more, subject, old=kept)
    yield case(ROLEBINDINGS, "deleted", TENANT, "limits", old=kept)
    yield case(ROLEBINDINGS, "deleted elsewhere", OTHER, "limits", old=kept, refusal=place)


def bindings_of_own_roles() -> Iterator[AccountCase]:
    """RoleBindings of the Roles that let people see their own Tenant."""
    name, own = "cozy:tenant-self:a", f"{TENANT}-a"

    def write(id: str, *subjects: Object, refusal: str = "", where: str = TENANT, role: str = name) -> AccountCase:
        reference = {"apiGroup": _RBAC, "kind": "Role", "name": role}
        new = {"roleRef": reference, "subjects": list(subjects)}
        return case(ROLEBINDINGS, id, where, name, new=new, refusal=refusal)

    def group(name: str) -> Object:
        return {"kind": "Group", "apiGroup": _RBAC, "name": name}

    def account(namespace: str, name: str = "") -> Object:
        return {"kind": "ServiceAccount", "namespace": namespace, "name": name or namespace}

    subject = "and the Role of one Tenant to its own"
    every_level = [group(f"{own}-{level}") for level in ("view", "use", "admin", "super-admin")]
    yield write("an own Role", *every_level, account(own))
    yield write("an own Role below the root", group("tenant-a-view"), account("tenant-a"), where=ROOT)
    for id, kind, role in (
        ("a ClusterRole like an own Role", "ClusterRole", name),
        ("an admin's Role", "Role", "admin"),
    ):
        reference = {"apiGroup": _RBAC, "kind": kind, "name": role}
        new = {"roleRef": reference, "subjects": []}
        yield case(ROLEBINDINGS, id, TENANT, role, new=new, refusal="and Roles cozy:tenant-self:* by a RoleBinding")
    yield write(
        "an own Role by another name",
        refusal="and Roles cozy:tenant-self:* by a RoleBinding of their name",
        role="cozy:tenant-self:b",
    )
    for id, other in (
        ("a user", {"kind": "User", "apiGroup": _RBAC, "name": "mallory"}),
        ("a user like a group", {"kind": "User", "apiGroup": _RBAC, "name": f"{own}-view"}),
        ("a user like an account", {"kind": "User", "apiGroup": _RBAC, "name": own, "namespace": own}),
        ("everyone", group("system:authenticated")),
        ("a sibling", group(f"{TENANT}-b-view")),
        ("a parent", group(f"{TENANT}-view")),
        ("another account", account(own, "default")),
        ("an account elsewhere", account(OTHER, own)),
        ("the account of a sibling", account(f"{TENANT}-b")),
        ("the account of a parent", account(TENANT)),
    ):
        yield write(f"an own Role for {id}", other, refusal=subject)


def roles() -> Iterator[AccountCase]:
    rule = {
        "apiGroups": ["apps.cozystack.io"],
        "resources": ["tenants", "tenants/diff", "tenants/explain"],
        "resourceNames": ["a"],
        "verbs": ["get", "list", "watch"],
    }
    place = "may write roles only so: cozy:tenant-self:* in namespaces tenant-*"
    limit = "a Role has one rule, which allows to get, list and watch the Tenant that it is named after"
    name = "cozy:tenant-self:a"
    yield case(ROLES, "of a tenant", TENANT, name, new={"rules": [rule]})
    yield case(ROLES, "for get only", TENANT, name, new={"rules": [{**rule, "verbs": ["get"]}]})
    yield case(ROLES, "of an earlier version", TENANT, name, new={"rules": [{**rule, "resources": ["tenants"]}]})
    yield case(ROLES, "elsewhere", OTHER, name, new={"rules": [rule]}, refusal=place)
    yield case(ROLES, "another name", TENANT, "a", new={"rules": [rule]}, refusal=place)
    yield case(ROLES, "deleted", TENANT, name, old={"rules": [rule]})
    yield case(ROLES, "deleted elsewhere", OTHER, name, old={"rules": [rule]}, refusal=place)
    for id, rules in (
        ("no rule", []),
        ("two rules", [rule, rule]),
        ("another group", [{**rule, "apiGroups": [""]}]),
        ("two groups", [{**rule, "apiGroups": ["apps.cozystack.io", ""]}]),
        ("secrets", [{**rule, "resources": ["secrets"]}]),
        ("every resource", [{**rule, "resources": ["*"]}]),
        ("all names", [{**rule, "resourceNames": []}]),
        ("the name of another", [{**rule, "resourceNames": ["b"]}]),
        ("two names", [{**rule, "resourceNames": ["a", "b"]}]),
        ("all verbs", [{**rule, "verbs": ["*"]}]),
        ("deletion", [{**rule, "verbs": ["get", "delete"]}]),
    ):
        yield case(ROLES, id, TENANT, name, new={"rules": rules}, refusal=limit)

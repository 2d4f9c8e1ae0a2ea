"""RoleBindings and Roles."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.meta.resource import Object
from tests.policies.account.case import OTHER, ROLEBINDINGS, ROLES, ROOT, TENANT, AccountCase, case

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
    role = "only the ClusterRoles cozy:tenant and cozy:tenant:* and Roles cozy:tenant-self:* may be bound"
    subject = "a role is bound only to the groups of the namespace"
    for level in ("view", "use", "admin", "super-admin"):
        yield write(f"for the group {level}", binding(f"cozy:tenant:{level}", group(f"{TENANT}-{level}")))
    yield write("without a level", binding("cozy:tenant", account(TENANT)))
    yield write("for the root", binding("cozy:tenant", account(ROOT)))
    yield write("for a parent", binding("cozy:tenant", account("tenant")))
    yield write("a Role of its own", binding("cozy:tenant-self:a", user, kind="Role"))
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


def roles() -> Iterator[AccountCase]:
    rule = {
        "apiGroups": ["apps.cozystack.io"],
        "resources": ["tenants"],
        "resourceNames": ["a"],
        "verbs": ["get", "list", "watch"],
    }
    place = "may write roles only so: cozy:tenant-self:* in namespaces tenant-*"
    limit = "a Role has one rule, which allows to get, list and watch one Tenant by name"
    name = "cozy:tenant-self:a"
    yield case(ROLES, "of a tenant", TENANT, name, new={"rules": [rule]})
    yield case(ROLES, "for get only", TENANT, name, new={"rules": [{**rule, "verbs": ["get"]}]})
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
        ("two names", [{**rule, "resourceNames": ["a", "b"]}]),
        ("all verbs", [{**rule, "verbs": ["*"]}]),
        ("deletion", [{**rule, "verbs": ["get", "delete"]}]),
    ):
        yield case(ROLES, id, TENANT, name, new={"rules": rules}, refusal=limit)

"""Every right of our ServiceAccount is used: one that is not fails here, and should be removed from the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from registry.rbac.role_index import to_policy_rule
from registry.tenant.cluster_roles import TENANTS_VISIBLE
from registry.tenantgateway.types import tenantgateway_crd
from tenant_apiserver.least_privilege.right import Right
from tenant_apiserver.least_privilege.rights import CLUSTER_ROLE, RIGHTS
from tenant_apiserver.least_privilege.roles import rules_of
from tests.e2e.support.admission.every_right import EveryRight
from tests.e2e.support.clusters import audit_log
from tests.e2e.support.clusters.audit_log import Use
from tests.e2e.support.clusters.cluster import RBAC, ROOT
from tests.e2e.support.clusters.control_plane import Binaries, ControlPlane
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.server_fixtures import prepared_kube_cluster

_ROOT = Path(__file__).parents[3]
EVERY_VERB = [
    pytest.param(right, resource, verb, id=f"{verb} {resource}{'.' if right.group else ''}{right.group}")
    for right in RIGHTS
    for resource in right.resources
    for verb in right.verbs
]


@pytest.fixture(scope="module")
def uses(tmp_path_factory: pytest.TempPathFactory) -> set[Use]:
    """The requests of a server that uses all of its features."""
    directory = tmp_path_factory.mktemp("rights")
    running = prepared_kube_cluster(directory, tmp_path_factory)
    try:
        if not running.has_controllers:
            pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")
        EveryRight(running, directory).use_all()
        seen = audit_log.uses(running.audit_log)
    finally:
        running.stop()
    assert audit_log.refused_by_own_limits(running.audit_log) == []
    return seen


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("right", "resource", "verb"), EVERY_VERB)
def test_every_right_is_used(uses: set[Use], right: Right, resource: str, verb: str) -> None:
    """A right with names is used only for objects of these names."""
    if verb in right.proofs:
        return
    named = right.names if verb != "create" else ()
    found = [each for each in uses if (each.group, each.resource, each.verb) == (right.group, resource, verb)]
    assert [each for each in found if not named or each.name in ("", *named)], "remove the right, or use it"


def test_a_right_that_the_log_does_not_show_names_its_test() -> None:
    for right in RIGHTS:
        for verb, proof in right.proofs.items():
            file, _, name = proof.partition("::")
            assert verb in right.verbs
            assert f"def {name}(" in (_ROOT / file).read_text(), proof


def _role(name: str, *without: str) -> dict[str, Any]:
    """Our ClusterRole under another name, without the rights to these resources."""
    rights = [each for each in RIGHTS if each.role == CLUSTER_ROLE and not set(without) & set(each.resources)]
    rules = [to_policy_rule(rule) for right in rights if right.verbs for rule in rules_of(right)]
    return {"metadata": {"name": name}, "rules": rules}


def _is_allowed(admin: Client, user: str, writer: Client, path: str, body: dict[str, Any], *without: str) -> bool:
    """True if a user with our ClusterRole, without the rights to some resources, may create the object."""
    roles, bindings = (f"/apis/{RBAC}/v1/{plural}" for plural in ("clusterroles", "clusterrolebindings"))
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": user}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user}]
    admin.request("POST", roles, _role(user, *without)).expect(201)
    binding = {"metadata": {"name": user}, "roleRef": role, "subjects": subjects}
    admin.request("POST", bindings, binding).expect(201)
    try:
        # the role is in force once a write that needs no more than it is not forbidden
        plain = {"metadata": {"name": user}}
        accounts = f"/api/v1/namespaces/{ROOT}/serviceaccounts"
        wait_until(
            "the role is in force",
            lambda: writer.request("POST", accounts, plain, query={"dryRun": "All"}).status == 201,
        )
        answer = writer.request("POST", path, body, query={"dryRun": "All"})
        # without `bind`, a ClusterRole that does not exist is not found
        assert answer.status in (201, 403, 404), answer.content
        return answer.status == 201
    finally:
        admin.request("DELETE", f"{bindings}/{user}")
        admin.request("DELETE", f"{roles}/{user}")


def test_bindings_need_the_verb_bind(kube: KubeCluster, unique: str) -> None:
    for number, name in enumerate(("cozy:tenant", "cozy:tenant:admin")):
        path = f"/apis/{RBAC}/v1/namespaces/{ROOT}/rolebindings"
        subject = {"apiGroup": RBAC, "kind": "Group", "name": f"{ROOT}-admin"}
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        body = {"metadata": {"name": unique}, "roleRef": role, "subjects": [subject]}
        for without in ((), ("clusterroles",)):
            user = f"{unique}-{number}-{len(without)}"
            assert _is_allowed(kube.client(), user, kube.client(user), path, body, *without) == (not without), name


def test_roles_need_the_rights_that_they_give(kube: KubeCluster, unique: str) -> None:
    """The server never reads Tenants through the API, but Kubernetes lets nobody grant what they do not have. The role
    that lets everyone list them may have been removed."""
    path = f"/apis/{RBAC}/v1/namespaces/{ROOT}/roles"
    everyone = f"/apis/{RBAC}/v1/clusterrolebindings/{TENANTS_VISIBLE}"
    body = kube.client().get(everyone).expect(200)
    kube.client().request("DELETE", everyone).expect(200)
    try:
        _assert_every_verb_is_needed(kube, unique, path)
    finally:
        metadata = {"name": TENANTS_VISIBLE, "labels": body["metadata"].get("labels", {})}
        restored = {"metadata": metadata, "roleRef": body["roleRef"], "subjects": body["subjects"]}
        kube.client().request("POST", everyone.rpartition("/")[0], restored).expect(201)


def _assert_every_verb_is_needed(kube: KubeCluster, unique: str, path: str) -> None:
    resources = ["tenants", "tenants/diff", "tenants/explain"]
    rule = {"apiGroups": ["apps.cozystack.io"], "resources": resources, "resourceNames": [unique]}
    for verb in ("get", "list", "watch"):
        body = {"metadata": {"name": f"cozy:tenant-self:{unique}"}, "rules": [{**rule, "verbs": [verb]}]}
        for without in ((), ("tenants",)):
            user = f"{unique}-{verb}-{len(without)}"
            assert _is_allowed(kube.client(), user, kube.client(user), path, body, *without) == (not without), verb


def test_owned_objects_need_the_right_to_the_owners_finalizers(
    tmp_path: Path, control_plane_files: tuple[Binaries, Path]
) -> None:
    """The cluster enables the plugin OwnerReferencesPermissionEnforcement."""
    binaries, _ = control_plane_files
    running = ControlPlane(tmp_path, binaries, admission_plugins=["OwnerReferencesPermissionEnforcement"])
    try:
        admin = Client(running.url, running.admin.tls, running.admin.headers)
        admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": ROOT}}).expect(201)
        _create_tenantgateways(admin)
        gateway = {"apiVersion": "gateway.cozystack.io/v1alpha1", "kind": "TenantGateway", "name": "g", "uid": "u"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "name": ROOT, "uid": "u"}
        path = f"/api/v1/namespaces/{ROOT}/serviceaccounts"
        for owner, right in ((gateway, "tenantgateways/finalizers"), (namespace, "namespaces/finalizers")):
            body = {"metadata": {"name": "owned", "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}}
            for user, without in (
                (f"complete-{owner['kind'].lower()}", ()),
                (f"lacking-{owner['kind'].lower()}", (right,)),
            ):
                writer = Client(running.url, running.identity(user).tls, {})
                assert _is_allowed(admin, user, writer, path, body, *without) == (not without), user
    finally:
        running.stop()


def _create_tenantgateways(admin: Client) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    admin.request("POST", crds, tenantgateway_crd()).expect(201)
    served = f"/apis/gateway.cozystack.io/v1alpha1/namespaces/{ROOT}/tenantgateways"
    wait_until("TenantGateways are served", lambda: admin.get(served).status == 200)

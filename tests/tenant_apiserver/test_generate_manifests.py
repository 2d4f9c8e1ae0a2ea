"""The manifests agree with the code: generated files are up to date, and names are those that the process uses."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.tenant.host_policy import TRUSTED_GROUPS
from apiserver.json.values import deep_copy
from controller.tenant.rbac_step import ROLES
from registry.tenant.cluster_roles import TENANT_ROLES, TENANT_ROUTES, TENANTS_VISIBLE
from registry.tenant.quota_keys import EQUAL
from tenant_apiserver import __version__
from tenant_apiserver import generate_manifests as manifests
from tenant_apiserver.certificates.cluster_secret import SECRET_NAME
from tenant_apiserver.least_privilege.page import with_table
from tenant_apiserver.options.command_line import ServeOptions, parse_command_line
from tenant_apiserver.options.flag import ENVIRONMENT_PREFIX
from tenant_apiserver.options.settings_file import parse_settings
from tenant_apiserver.serve import API_SERVICES

ROOT = Path(__file__).parents[2] / "manifests"
INSTALL_PAGE = ROOT.parent / "docs" / "install.md"
LIMITS = "tenant-apiserver-limits-"
GENERATED = manifests.generated()
KUBECTL = Path(sys.executable).parent / "kubectl"
PAGE = ROOT.parent / "docs" / "security.md"
OVERLAYS = sorted(f"overlays/{path.name}" for path in (ROOT / "overlays").iterdir())
COMPONENTS = sorted(f"components/{path.name}" for path in (ROOT / "components").iterdir())
PATCHES = "components/platform-settings"
"""The component that builds only with a base."""
ALONE = [each for each in COMPONENTS if each != PATCHES]
KUSTOMIZATIONS = [".", "base", "base/limits", "base/tenants-visible", "policies", *OVERLAYS, *ALONE]
INSTALLATIONS = [".", "overlays/cert-manager", "overlays/plain"]
"""The alternatives for installing the server."""
PART_OF = {"app.kubernetes.io/part-of": "tenant-apiserver"}


def built(directory: str) -> list[dict[str, Any]]:
    """The objects of a kustomization, built by the real kubectl: once, because no test writes into the folder."""
    return deep_copy(_built(directory))


@functools.cache
def _built(directory: str) -> list[dict[str, Any]]:
    result = subprocess.run([KUBECTL, "kustomize", ROOT / directory], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return list(yaml.load_all(result.stdout, Loader=yaml.CSafeLoader))


def of_kind(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    [found] = [each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    return found


def registered() -> list[dict[str, Any]]:
    """The Services that the APIServices refer to."""
    return [each["spec"]["service"] for each in built("overlays/register")]


def names_of(objects: list[dict[str, Any]], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in objects if each["kind"] == kind}


@pytest.mark.parametrize("path", sorted(GENERATED))
def test_a_generated_manifest_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text() == GENERATED[path], "run make manifests"


def test_the_table_of_rights_on_the_page_is_up_to_date() -> None:
    assert manifests.with_tables(PAGE.read_text()) == PAGE.read_text(), "run make manifests"


def test_generating_writes_every_file(tmp_path: Path) -> None:
    for path in GENERATED:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "base" / "limits" / "former-policy.yaml").touch()
    page = tmp_path / "security.md"
    page.write_text(with_table(PAGE.read_text(), ()))
    assert manifests.main([str(tmp_path), str(page)]) == 0
    assert {path: (tmp_path / path).read_text() for path in GENERATED} == GENERATED
    assert not (tmp_path / "base" / "limits" / "former-policy.yaml").exists()
    assert page.read_text() == PAGE.read_text()


@pytest.mark.parametrize("directory", KUSTOMIZATIONS)
def test_every_kustomization_builds(directory: str) -> None:
    assert built(directory)


@pytest.mark.parametrize("directory", KUSTOMIZATIONS[1:])
def test_every_manifest_is_part_of_a_kustomization(directory: str) -> None:
    folder = ROOT / directory
    text = (folder / "kustomization.yaml").read_text()
    unused = [
        path.name for path in folder.glob("*.yaml") if path.name != "kustomization.yaml" and path.name not in text
    ]
    assert unused == []


def test_each_served_version_has_an_api_service() -> None:
    for overlay in ("overlays/register", "overlays/register-cert-manager"):
        assert names_of(built(overlay), "APIService") == set(API_SERVICES)


@pytest.mark.parametrize("directory", INSTALLATIONS)
def test_the_command_accepts_the_settings_of_the_deployment(directory: str, tmp_path: Path) -> None:
    objects = built(directory)
    container = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    environment = {each["name"]: each["value"] for each in container["env"]}
    for name in environment:
        if name.endswith("_FILE"):
            environment[name] = str(tmp_path / "pem")
    (tmp_path / "pem").touch()
    if (config := f"{ENVIRONMENT_PREFIX}CONFIG") in environment:
        settings = of_kind(objects, "ConfigMap", "tenant-apiserver-platform")["data"]["platform.yaml"]
        (tmp_path / "platform.yaml").write_text(settings)
        environment[config] = str(tmp_path / "platform.yaml")
    options = parse_command_line(container["args"], environment)
    assert isinstance(options, ServeOptions)
    assert options.root_host == "example.org"
    known = {
        ENVIRONMENT_PREFIX + field.upper() for field in ServeOptions.__dataclass_fields__ if field != "deprecations"
    }
    assert set(environment) <= known


def test_the_platform_settings_come_from_a_mounted_configmap(tmp_path: Path) -> None:
    """Its name has no hash, so that a change restarts no Pod; it is mounted without subPath, so that changes arrive."""
    above = os.path.relpath(ROOT, tmp_path.resolve())
    own = {"resources": [f"{above}/base"], "components": [f"{above}/components/platform-settings"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    objects = built(str(tmp_path))
    settings = of_kind(objects, "ConfigMap", "tenant-apiserver-platform")
    pod = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [environment] = [each["value"] for each in container["env"] if each["name"] == f"{ENVIRONMENT_PREFIX}CONFIG"]
    [volume] = [
        each for each in pod["volumes"] if each.get("configMap", {}).get("name") == settings["metadata"]["name"]
    ]
    [mount] = [each for each in container["volumeMounts"] if each["name"] == volume["name"]]
    assert environment == f"{mount['mountPath']}/platform.yaml"
    assert "subPath" not in mount
    assert settings["metadata"]["namespace"] == of_kind(objects, "Deployment")["metadata"]["namespace"]
    assert parse_settings(settings["data"]["platform.yaml"].encode()).publishing.host == "example.org"


def test_a_cluster_without_cozystack_gets_the_same_objects_and_settings() -> None:
    def keys(directory: str) -> set[tuple[str, str, str]]:
        found = [(each["kind"], each["metadata"]) for each in built(directory)]
        return {(kind, metadata.get("namespace", ""), metadata["name"]) for kind, metadata in found}

    assert keys("overlays/plain") - keys(".") == {("ConfigMap", "cozy-system", "tenant-apiserver-platform")}
    assert keys(".") <= keys("overlays/plain")


def test_on_a_cluster_without_cozystack_the_networks_have_to_be_named() -> None:
    """Without Cilium, nobody knows what is outside of the cluster. The other settings are complete."""
    text = of_kind(built("overlays/plain"), "ConfigMap", "tenant-apiserver-platform")["data"]["platform.yaml"]
    with pytest.raises(ValueError, match=r"^isolation\.clusterCIDRs\.0: must be a network such as [^;]*$"):
        parse_settings(text.encode())
    found = parse_settings(text.replace("the-networks-of-pods-services-and-nodes", "10.244.0.0/16").encode())
    assert (found.tenants.chart, found.tenants.release, found.publishing.host) == ("none", "none", "example.org")
    assert found.resources.to_ratios({"cpu-allocation-ratio": "10"})[0].values == EQUAL.values


def test_the_service_has_the_name_that_the_process_expects() -> None:
    objects = built(".")
    options = parse_command_line(["serve"], {})
    assert isinstance(options, ServeOptions)
    service = of_kind(objects, "Service")["metadata"]
    assert (service["namespace"], service["name"]) == (options.service_namespace, options.service_name)
    for reference in registered():
        assert (reference["namespace"], reference["name"]) == (service["namespace"], service["name"])


@pytest.mark.parametrize("directory", INSTALLATIONS)
def test_the_service_selects_the_pods_of_the_deployment(directory: str) -> None:
    objects = built(directory)
    pod = of_kind(objects, "Deployment")["spec"]["template"]
    [container] = pod["spec"]["containers"]
    service = of_kind(objects, "Service")["spec"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    [port] = service["ports"]
    assert {reference.get("port", 443) for reference in registered()} == {port["port"]}
    assert port["targetPort"] in {each["name"] for each in container["ports"]}


@pytest.mark.parametrize("directory", INSTALLATIONS)
def test_the_readiness_probe_is_readyz(directory: str) -> None:
    [container] = of_kind(built(directory), "Deployment")["spec"]["template"]["spec"]["containers"]
    probe = container["readinessProbe"]["httpGet"]
    assert (probe["path"], probe["scheme"]) == ("/readyz", "HTTPS")


def test_the_role_grants_access_to_the_serving_certificate_secret() -> None:
    role = of_kind(built("."), "Role", "tenant-apiserver:serving-certificate")
    [named] = [rule for rule in role["rules"] if "resourceNames" in rule]
    assert named["resourceNames"] == [SECRET_NAME]


def test_the_service_account_may_delegate() -> None:
    bindings = [each for each in built("base") if each["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    granted = {(each["roleRef"]["name"], each["metadata"].get("namespace", "")): each["subjects"] for each in bindings}
    account = {"kind": "ServiceAccount", "name": "tenant-apiserver", "namespace": "cozy-system"}
    assert account in granted[("system:auth-delegator", "")]
    assert account in granted[("extension-apiserver-authentication-reader", "kube-system")]


def test_the_host_policy_trusts_the_service_account() -> None:
    """R-259: layer 4 allows it to write the label of a tenant's namespace."""
    deployment = of_kind(built("."), "Deployment")
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    assert of_kind(built("."), "ServiceAccount", account)["metadata"]["namespace"] == "cozy-system"
    assert f"system:serviceaccounts:{deployment['metadata']['namespace']}" in TRUSTED_GROUPS


def test_the_role_for_all_users_grants_only_listing() -> None:
    """R-337: users see what RBAC lets them `get`, so the role for all users must not grant `get` on tenants
    and applications, and nothing of other groups."""
    role = of_kind(built("."), "ClusterRole", "cozy:tenants:visible")
    granted = [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in role["rules"]]
    assert granted == [
        (["apps.cozystack.io"], ["*"], ["list", "watch"]),
        (["core.cozystack.io"], ["tenantnamespaces"], ["get", "list", "watch"]),
    ]
    options = parse_command_line(["serve"], {})
    assert isinstance(options, ServeOptions)
    assert options.visibility == "rbac"


def test_the_pod_runs_with_least_privilege() -> None:
    pod = of_kind(built("."), "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("directory", INSTALLATIONS)
def test_the_image_has_the_version_of_the_code(directory: str) -> None:
    [container] = of_kind(built(directory), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].rpartition(":")[2] == __version__


def test_cert_manager_changes_nothing_about_the_policies() -> None:
    default, with_cert_manager = (built(directory) for directory in (".", "overlays/cert-manager"))
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        assert names_of(default, kind) == names_of(with_cert_manager, kind)
        assert len(names_of(default, kind)) > 7


@pytest.mark.parametrize("directory", [each for each in KUSTOMIZATIONS if not each.startswith("overlays/register")])
def test_only_the_registration_takes_an_api_service(directory: str) -> None:
    assert "APIService" not in {each["kind"] for each in built(directory)}


def test_a_live_cozystack_gets_neither_controllers_nor_what_it_has_itself() -> None:
    live = built("overlays/live")
    [container] = of_kind(live, "Deployment")["spec"]["template"]["spec"]["containers"]
    options = parse_command_line(container["args"], {})
    assert isinstance(options, ServeOptions)
    assert options.controllers == ()
    kept = {(each["kind"], each["metadata"]["name"]) for each in live}
    everything = {(each["kind"], each["metadata"]["name"]) for each in built("base")}
    assert everything - kept == {(kind, TENANTS_VISIBLE) for kind in ("ClusterRole", "ClusterRoleBinding")}
    assert {each["metadata"]["name"] for each in built("overlays/tenants-visible")} == {TENANTS_VISIBLE}


def test_a_shadow_can_only_read() -> None:
    shadow = built("overlays/shadow")
    rules = [rule for each in shadow for rule in each.get("rules") or ()]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert "secrets" not in {resource for rule in rules for resource in rule["resources"]}
    [container] = of_kind(shadow, "Deployment")["spec"]["template"]["spec"]["containers"]
    options = parse_command_line(container["args"], {})
    assert isinstance(options, ServeOptions)
    assert (options.shadow, options.controllers, options.leader_elect) == (True, (), False)
    labels = of_kind(shadow, "Deployment")["spec"]["template"]["metadata"]["labels"]
    # the Service of the server must not send it requests
    assert not of_kind(built("base"), "Service")["spec"]["selector"].items() <= labels.items()
    assert container["image"].rpartition(":")[2] == __version__


@pytest.mark.parametrize("directory", INSTALLATIONS)
def test_an_installation_contains_nothing_that_others_may_share(directory: str) -> None:
    """`kubectl delete` with its files destroys nothing of others, except for the roles of tenants."""
    kinds = {each["kind"] for each in built(directory)}
    assert kinds.isdisjoint({"Namespace", "CustomResourceDefinition", "APIService"})


@pytest.mark.parametrize(
    "directory",
    [
        *INSTALLATIONS,
        "overlays/register",
        "overlays/network-policy",
        "components/ingress-hostnames",
        "components/tenantsecrets",
    ],
)
def test_everything_that_is_removed_has_the_label_by_which_it_is(directory: str) -> None:
    """Everything but the roles of tenants, which Cozystack has, too."""
    found = [each for each in built(directory) if each["metadata"]["name"] not in TENANT_ROLES]
    assert [each for each in found if not PART_OF.items() <= each["metadata"]["labels"].items()] == []


def test_the_prerequisites_and_the_roles_of_tenants_are_not_removed() -> None:
    for overlay in ("overlays/prerequisites", "overlays/cozy-tenant-roles", "overlays/cozy-tenant-routes"):
        assert [each for each in built(overlay) if "labels" in each["metadata"]] == []


@pytest.mark.parametrize("directory", INSTALLATIONS)
def test_an_installation_has_every_role_that_tenants_people_are_bound_to(directory: str) -> None:
    roles = {each["metadata"]["name"]: each for each in built(directory) if each["kind"] == "ClusterRole"}
    assert {role: "labels" in roles[role]["metadata"] for role in ROLES} == dict.fromkeys(ROLES, False)


def test_the_network_policy_selects_the_pods_and_lets_requests_in() -> None:
    deployment = of_kind(built("."), "Deployment")
    policy = of_kind(built("overlays/network-policy"), "NetworkPolicy")
    pod = deployment["spec"]["template"]
    [container] = pod["spec"]["containers"]
    assert policy["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    [ingress] = policy["spec"]["ingress"]
    assert [each["port"] for each in ingress["ports"]] == [each["name"] for each in container["ports"]]


def test_one_patch_limits_an_account_of_another_name(tmp_path: Path) -> None:
    """The patch of docs/install.md."""
    [patch] = re.findall(r"```yaml\n(patches:.*?)```", INSTALL_PAGE.read_text(), re.DOTALL)
    above = os.path.relpath(ROOT, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{above}]\n{patch}")
    limits = [each for each in built(str(tmp_path)) if each["metadata"]["name"].startswith(LIMITS)]
    policies = [each for each in limits if each["kind"] == "ValidatingAdmissionPolicy"]
    texts = {str(each["spec"]["matchConditions"][0]["expression"]) for each in policies}
    assert texts == {"request.userInfo.username == 'system:serviceaccount:my-namespace:my-account'"}
    assert [each for each in policies if "cozy-system:tenant-apiserver" in str(each)] == []


def test_no_rule_has_a_wildcard() -> None:
    """Except for tenants' people, who may write all applications, and for lists of these, which are filtered."""
    own = [each for each in built(".") if each["metadata"]["name"] not in (*TENANT_ROLES, TENANTS_VISIBLE)]
    rules = [rule for each in own for rule in each.get("rules") or ()]
    assert rules
    assert [rule for rule in rules if "*" in {*rule.get("apiGroups", ()), *rule["resources"], *rule["verbs"]}] == []


def test_the_roles_of_tenants_grant_no_writes_to_platform_kinds() -> None:
    writes = {"create", "update", "patch", "delete", "deletecollection"}
    forbidden = {"gateway.networking.k8s.io", "gateway.cozystack.io", "cozystack.io", "helm.toolkit.fluxcd.io"}
    for role in built("overlays/cozy-tenant-roles"):
        for rule in role["rules"]:
            if writes & set(rule["verbs"]):
                assert forbidden.isdisjoint(rule["apiGroups"])
                assert "namespaces" not in rule["resources"]


def test_writing_routes_is_a_role_that_no_installation_has() -> None:
    """R-359 asks for no kinds of their own, and an administrator decides who may write routes at all."""
    (role,) = built("overlays/cozy-tenant-routes")
    assert role["metadata"]["name"] == TENANT_ROUTES
    plurals = {plural for rule in role["rules"] for plural in rule["resources"]}
    assert plurals == {"httproutes", "grpcroutes", "tlsroutes", "referencegrants"}
    for directory in INSTALLATIONS:
        assert TENANT_ROUTES not in {each["metadata"]["name"] for each in built(directory)}


def test_requirements_are_pinned_by_hash_without_urls() -> None:
    for path in (ROOT.parent / "requirements").glob("*.txt"):
        text = path.read_text()
        assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text), path.name
        entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
        assert [entry for entry in entries if not re.match(r"\S+==\S+[^\n]*\\\n +--hash=sha256:", entry)] == []

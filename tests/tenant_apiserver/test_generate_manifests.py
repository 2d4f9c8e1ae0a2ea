"""The manifests agree with the code: generated files are up to date, and names are those that the process uses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.tenant.host_policy import TRUSTED_GROUPS
from tenant_apiserver import generate_manifests as manifests
from tenant_apiserver.certificates.cluster_secret import SECRET_NAME
from tenant_apiserver.options.command_line import ENVIRONMENT_PREFIX, ServeOptions, parse_command_line
from tenant_apiserver.options.settings_file import parse_settings
from tenant_apiserver.serve import API_SERVICES

ROOT = Path(__file__).parents[2] / "manifests"
KUBECTL = Path(sys.executable).parent / "kubectl"
KUSTOMIZATIONS = [".", "base", "policies", "overlays/cozy-tenant-roles", "overlays/cert-manager"]


def built(directory: str) -> list[dict[str, Any]]:
    """The objects of a kustomization, built by the real kubectl."""
    result = subprocess.run([KUBECTL, "kustomize", ROOT / directory], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


def of_kind(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    [found] = [each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    return found


def registered(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The Services that the APIServices refer to."""
    return [each["spec"]["service"] for each in objects if each["kind"] == "APIService"]


@pytest.mark.parametrize("path", sorted(manifests.generated()))
def test_a_generated_manifest_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text() == manifests.generated()[path], "run make manifests"


def test_generating_writes_every_file(tmp_path: Path) -> None:
    for path in manifests.generated():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    assert manifests.main([str(tmp_path)]) == 0
    assert {path: (tmp_path / path).read_text() for path in manifests.generated()} == manifests.generated()


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
    names = {each["metadata"]["name"] for each in built(".") if each["kind"] == "APIService"}
    assert names == set(API_SERVICES)


@pytest.mark.parametrize("directory", [".", "overlays/cert-manager"])
def test_the_command_accepts_the_settings_of_the_deployment(directory: str, tmp_path: Path) -> None:
    container = of_kind(built(directory), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    environment = {each["name"]: each["value"] for each in container["env"]}
    for name in environment:
        if name.endswith("_FILE"):
            environment[name] = str(tmp_path / "pem")
    (tmp_path / "pem").touch()
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


def test_the_service_has_the_name_that_the_process_expects() -> None:
    objects = built(".")
    options = parse_command_line(["serve"], {})
    assert isinstance(options, ServeOptions)
    service = of_kind(objects, "Service")["metadata"]
    assert (service["namespace"], service["name"]) == (options.service_namespace, options.service_name)
    for reference in registered(objects):
        assert (reference["namespace"], reference["name"]) == (service["namespace"], service["name"])


@pytest.mark.parametrize("directory", [".", "overlays/cert-manager"])
def test_the_service_selects_the_pods_of_the_deployment(directory: str) -> None:
    objects = built(directory)
    pod = of_kind(objects, "Deployment")["spec"]["template"]
    [container] = pod["spec"]["containers"]
    service = of_kind(objects, "Service")["spec"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    [port] = service["ports"]
    assert {reference.get("port", 443) for reference in registered(objects)} == {port["port"]}
    assert port["targetPort"] in {each["name"] for each in container["ports"]}


@pytest.mark.parametrize("directory", [".", "overlays/cert-manager"])
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
    """R-337: users see what RBAC lets them `get`, so the role for all users must not grant `get` on tenants."""
    role = of_kind(built("."), "ClusterRole", "cozy:tenants:visible")
    granted = {resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    assert granted == {"tenants": {"list", "watch"}, "tenantnamespaces": {"get", "list", "watch"}}
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


def test_no_rule_has_a_wildcard() -> None:
    rules = [rule for each in built(".") for rule in each.get("rules") or ()]
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


def test_requirements_are_pinned_by_hash_without_urls() -> None:
    for path in (ROOT.parent / "requirements").glob("*.txt"):
        text = path.read_text()
        assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", text), path.name
        entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
        assert [entry for entry in entries if not re.match(r"\S+==\S+[^\n]*\\\n +--hash=sha256:", entry)] == []

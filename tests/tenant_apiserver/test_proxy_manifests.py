"""The overlay of `tenant-apiserver proxy`: it forwards, and writes nothing as itself."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import GroupResource
from registry.names import GROUP as APPS
from registry.tenant.cluster_roles import TENANT_ROLES
from tenant_apiserver import __version__
from tenant_apiserver.options.command_line import parse_command_line
from tenant_apiserver.options.proxy import ProxyOptions
from tenant_apiserver.options.proxy_settings import load_proxy_settings
from tenant_apiserver.proxy.own_rights import ACCESS_REVIEWS, FORWARDING, TOKEN_REVIEWS, OwnRight
from tests.tenant_apiserver.test_generate_manifests import INSTALLATIONS, ROOT, built, of_kind

PROXY = "overlays/proxy"
NAMESPACE = "tenant-apiserver-proxy"
REVIEWS = {"tokenreviews", "subjectaccessreviews"}


def test_the_account_reads_impersonates_and_reviews() -> None:
    """Nothing that it serves is read with its own rights but namespaces, and it can read no Secret."""
    role = of_kind(built(PROXY), "ClusterRole", "tenant-apiserver:proxy")
    for rule in role["rules"]:
        verbs, resources = set(rule["verbs"]), set(rule["resources"])
        if verbs == {"impersonate"}:
            continue
        if verbs == {"create"}:
            assert resources <= REVIEWS
            continue
        assert verbs == {"get", "list", "watch"}
        assert resources <= {"namespaces", "roles", "rolebindings", "clusterroles", "clusterrolebindings"}


@pytest.mark.parametrize("right", [*FORWARDING, TOKEN_REVIEWS, ACCESS_REVIEWS], ids=lambda right: right.name)
def test_the_role_has_each_right_that_the_proxy_asks_for(right: OwnRight) -> None:
    rules = of_kind(built(PROXY), "ClusterRole", "tenant-apiserver:proxy")["rules"]
    access = right.accesses[0]
    found = [
        rule for rule in rules if access["verb"] in rule["verbs"] and {access["resource"], "*"} & {*rule["resources"]}
    ]
    assert [rule for rule in found if access.get("group", "") in rule["apiGroups"] and "resourceNames" not in rule]
    assert "ClusterRole tenant-apiserver:proxy" in right.remedy


def test_everything_of_the_proxy_is_in_a_namespace_of_its_own() -> None:
    """The creator of a Pod beside it could use its account."""
    objects = [each for each in built(PROXY) if "namespace" in each["metadata"]]
    assert {each["metadata"]["namespace"] for each in objects} == {NAMESPACE, "kube-system"}
    assert {each["kind"] for each in objects if each["metadata"]["namespace"] == "kube-system"} == {"RoleBinding"}


def test_no_installation_has_the_proxy() -> None:
    for directory in INSTALLATIONS:
        assert NAMESPACE not in {each["metadata"]["name"] for each in built(directory)}


def test_the_command_accepts_the_arguments_of_the_deployment() -> None:
    objects = built(PROXY)
    pod = of_kind(objects, "Deployment")["spec"]["template"]
    [container] = pod["spec"]["containers"]
    arguments = [each for each in container["args"] if not each.startswith(("--tls-", "--config="))]
    config = ROOT / PROXY / "config.yaml"
    options = parse_command_line([*arguments, "--cert-dir=.", f"--config={config}"], {})
    assert isinstance(options, ProxyOptions)
    assert not options.allow_privileged_groups
    assert GroupResource("", "pods") in options.config.namespaced_kinds
    mounted = next(each for each in pod["spec"]["volumes"] if each["name"] == "config")["configMap"]["name"]
    assert of_kind(objects, "ConfigMap", mounted)["data"]["config.yaml"] == config.read_text()
    assert container["image"].rpartition(":")[2] == __version__
    assert container["readinessProbe"]["httpGet"]["path"] == "/proxy/readyz"
    service = of_kind(objects, "Service")["spec"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    policy = of_kind(objects, "NetworkPolicy")["spec"]
    assert (policy["podSelector"], policy["policyTypes"]) == ({}, ["Ingress", "Egress"])


def test_viewers_of_a_tenant_may_get_their_namespace() -> None:
    role = of_kind(built(PROXY), "ClusterRole", "tenant-apiserver:namespace-view")
    assert role["metadata"]["labels"]["rbac.cozystack.io/aggregate-to-tenant-view"] == "true"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]


def test_the_rights_for_selected_kinds_are_apart_and_only_read() -> None:
    """They are no Secrets, nor anything of a namespace; the account is that of the proxy."""
    objects = built("overlays/proxy-cluster-kinds")
    rules = of_kind(objects, "ClusterRole")["rules"]
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)
    granted = {f"{plural}.{rule['apiGroups'][0]}".rstrip(".") for rule in rules for plural in rule["resources"]}
    settings = load_proxy_settings(ROOT / PROXY / "config.yaml")
    assert granted == {str(each) for each in settings.cluster_kinds} - {"persistentvolumes"}
    assert of_kind(objects, "ClusterRoleBinding")["subjects"] == of_kind(built(PROXY), "ClusterRoleBinding")["subjects"]


def test_the_right_to_persistent_volumes_is_apart_and_only_reads() -> None:
    """An administrator applies it where the settings say `persistentVolumesByClaim: true`, which is not the default."""
    objects = built("overlays/proxy-persistent-volumes")
    role = of_kind(objects, "ClusterRole", "tenant-apiserver:proxy-persistent-volumes")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["list", "watch"]}]
    assert of_kind(objects, "ClusterRoleBinding")["subjects"] == of_kind(built(PROXY), "ClusterRoleBinding")["subjects"]
    assert not load_proxy_settings(ROOT / PROXY / "config.yaml").persistent_volumes_by_claim


def test_every_kind_that_the_roles_of_tenants_list_is_listed_in_all_namespaces() -> None:
    """Otherwise people get a 403 for what is theirs. Tenants and applications the server itself lists."""
    settings = load_proxy_settings(ROOT / PROXY / "config.yaml")
    rules = [rule for each in TENANT_ROLES.values() for rule in each if "list" in rule.verbs]
    listed = {GroupResource(group, kind) for each in rules for group in each.groups for kind in each.resources}
    own = {each for each in listed if each.group == APPS or each.resource in ("tenantnamespaces", "pods/log")}
    assert listed - own <= {*settings.namespaced_kinds}

"""The findings of `preflight` about a step, before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import (
    APISERVICES,
    APPLICATIONDEFINITIONS,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
    HELMRELEASES,
    NAMESPACES,
    VALIDATINGADMISSIONPOLICIES,
    ClusterResource,
)
from registry.rbac.role_index import to_policy_rule
from registry.tenant.cluster_roles import TENANT_ROLES
from tenant_apiserver.lifecycle.facts import GROUPS, api_service_name
from tenant_apiserver.lifecycle.findings import Check, Level, as_json, as_table, exit_status
from tenant_apiserver.lifecycle.installed import (
    SHADOW,
    OperatorStep,
    applied,
    proxy_objects,
    registered,
    tenants_visible,
)
from tenant_apiserver.lifecycle.kinds import CRDS, DEPLOYMENTS, PROXY
from tenant_apiserver.lifecycle.preflight import judge
from tenant_apiserver.lifecycle.reader import read_facts
from tenant_apiserver.lifecycle.registration import OurServer, moved_to_us
from tenant_apiserver.serve import API_SERVICES
from tests.tenant_apiserver.lifecycle.live_cozystack import (
    HELM,
    LiveCozystack,
    api_service,
    crd,
    definition,
    deployment,
    live_cozystack,
    local,
)
from tests.tenant_apiserver.test_generate_manifests import built

NAMES = "Objects of the same names"
OURS = {"namespace": "cozy-system", "name": "tenant-apiserver"}
PART_OF = {"app.kubernetes.io/part-of": "tenant-apiserver"}


async def checks_of(cluster: LiveCozystack, step: OperatorStep) -> list[Check]:
    found = list(judge(await read_facts(cluster, step), step))
    assert cluster.writes == []
    # whoever is refused or warned is told what to do
    told = (Level.FAIL, Level.WARN, Level.UNKNOWN)
    assert [each for each in found if each.level in told and not each.remedy] == []
    return found


def failures(checks: list[Check]) -> list[str]:
    return [each.subject for each in checks if each.level is Level.FAIL]


def one(checks: list[Check], subject: str, section: str = "") -> Check:
    [found] = [each for each in checks if each.subject == subject and section in ("", each.section)]
    return found


@pytest.mark.parametrize("step", [OperatorStep.SHADOW, OperatorStep.REPLACE])
async def test_a_live_cozystack_may_be_moved_or_shadowed(step: OperatorStep) -> None:
    checks = await checks_of(live_cozystack(), step)
    assert failures(checks) == []
    assert exit_status(checks) == 0
    serving = one(checks, "v1alpha1.apps.cozystack.io")
    assert serving.message.startswith("cozy-system/cozystack-api, available")


async def test_what_somebody_serves_is_not_registered_anew() -> None:
    checks = await checks_of(live_cozystack(), OperatorStep.REGISTER)
    assert failures(checks)[:2] == ["v1alpha1.apps.cozystack.io", "v1alpha1.core.cozystack.io"]
    assert "cozy-system/cozystack-controller" in failures(checks)
    assert "--for=replace" in one(checks, "v1alpha1.apps.cozystack.io").remedy
    assert exit_status(checks) == 1


async def test_a_kind_that_would_lose_its_server_is_named() -> None:
    cluster = live_cozystack()
    cluster.served["core.cozystack.io"] = ["tenantnamespaces", "somethings"]
    cluster.served["apps.cozystack.io"] = ["tenants", "postgreses", "redises"]
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    assert failures(checks) == ["redises.apps.cozystack.io", "somethings.core.cozystack.io"]
    shadow = await checks_of(cluster, OperatorStep.SHADOW)
    assert one(shadow, "redises.apps.cozystack.io").level is Level.WARN
    assert failures(shadow) == []


async def test_a_definition_that_this_version_cannot_serve_is_named_with_the_reason() -> None:
    cluster = live_cozystack()
    cluster.served["apps.cozystack.io"] = ["tenants", "postgreses", "redises"]
    cluster.add(APPLICATIONDEFINITIONS, definition("Redis", "redises", openAPISchema="no JSON"))
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    assert failures(checks) == ["redises.apps.cozystack.io"]
    assert "openAPISchema" in one(checks, "ApplicationDefinition redis").message


async def test_a_rule_whose_message_is_no_text_does_not_end_preflight() -> None:
    cluster = live_cozystack()
    schema = '{"type": "object", "x-kubernetes-validations": [{"rule": "true", "message": {}}]}'
    cluster.add(APPLICATIONDEFINITIONS, definition("Redis", "redises", openAPISchema=schema))
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    found = one(checks, "ApplicationDefinition redis")
    assert "wrong type" in found.message
    assert "kubectl edit applicationdefinition redis" in found.remedy


async def test_a_definition_that_nobody_thought_of_does_not_end_preflight(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> str:
        raise KeyError("unforeseen")

    monkeypatch.setattr("registry.application.forms.rule_problem", fail)
    checks = await checks_of(live_cozystack(), OperatorStep.REPLACE)
    assert one(checks, "ApplicationDefinition postgres").message == "cannot be served: it cannot be read: KeyError"


async def test_one_is_no_plural() -> None:
    messages = [each.message for each in await checks_of(live_cozystack(), OperatorStep.REPLACE)]
    assert "this version would serve 1 kind" in messages
    assert "this version would serve 4 kinds" in messages


async def test_versions_come_from_the_objects_that_tell_them() -> None:
    checks = await checks_of(live_cozystack(), OperatorStep.REPLACE)
    told = {each.subject: each.message for each in checks if each.section == "Versions"}
    assert told == {
        "Kubernetes": "v1.34.2",
        "Flux": "CRD v2.7.1; serves v2 (stored)",
        "Cilium": "not installed: there are no SecurityGroups, which are stored as its CiliumNetworkPolicies",
        "cert-manager": "runs v1.19.1; serves v1 (stored)",
        "Gateway API": "CRD v1.4.0 (experimental); serves v1beta1, v1 (stored)",
    }


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (OperatorStep.SHADOW, "this step needs nothing of it"),
        (OperatorStep.REPLACE, "this step needs nothing of it"),
        (OperatorStep.REGISTER, "tenants get no Gateways"),
    ],
)
async def test_what_only_our_controllers_need_is_missed_where_they_run(step: OperatorStep, says: str) -> None:
    cluster = live_cozystack()
    await cluster.delete(CRDS, "", "gateways.gateway.networking.k8s.io")
    cluster.clear_writes()
    checks = await checks_of(cluster, step)
    assert one(checks, "Gateway API").message == f"not installed: {says}"
    isolated = "tenants are isolated by NetworkPolicies instead" in one(checks, "Cilium").message
    assert isolated is (step is OperatorStep.REGISTER)


async def test_after_a_take_over_the_needs_of_our_controllers_count() -> None:
    cluster = live_cozystack()
    _controllers(cluster)
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "Cilium")
    assert found.message.endswith("; tenants are isolated by NetworkPolicies instead")


def _old_kubernetes(cluster: LiveCozystack) -> None:
    cluster.version = "v1.29.9"


def _old_flux(cluster: LiveCozystack) -> None:
    cluster.add(CRDS, crd("helmreleases.helm.toolkit.fluxcd.io", "v2beta1"))


def _foreign_role(cluster: LiveCozystack) -> None:
    cluster.add(CLUSTERROLES, {"metadata": {"name": "tenant-apiserver", "managedFields": [{"manager": "somebody"}]}})


def _controllers(cluster: LiveCozystack) -> None:
    cluster.add(DEPLOYMENTS, deployment("tenant-apiserver", "serve", labels=PART_OF))


def _visible(cluster: LiveCozystack) -> None:
    cluster.add(CLUSTERROLEBINDINGS, {"metadata": {"name": "cozy:tenants:visible", "labels": PART_OF}})


@pytest.mark.parametrize(
    ("change", "subject", "text"),
    [
        pytest.param(_old_kubernetes, "Kubernetes", "v1.29.9 has no ValidatingAdmissionPolicies", id="Kubernetes"),
        pytest.param(_old_flux, "Flux", "serves v2beta1", id="Flux"),
        pytest.param(_foreign_role, "ClusterRole tenant-apiserver", "written by somebody", id="a role of that name"),
        pytest.param(_controllers, "cozy-system/cozystack-controller", "same tenants", id="two controllers"),
        pytest.param(_visible, "ClusterRoleBinding cozy:tenants:visible", "shows all of them", id="all may list"),
    ],
)
async def test_what_would_break_is_refused(change: Callable[[LiveCozystack], None], subject: str, text: str) -> None:
    cluster = live_cozystack()
    change(cluster)
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    assert failures(checks) == [subject]
    [found] = [each for each in checks if each.subject == subject and each.level is Level.FAIL]
    assert text in found.message


async def test_objects_of_others_stay_and_are_named_with_their_owner() -> None:
    cluster = LiveCozystack()
    cluster.served = {}
    labels = {"helm.toolkit.fluxcd.io/name": "basics", "helm.toolkit.fluxcd.io/namespace": "cozy-system"}
    cluster.add(
        VALIDATINGADMISSIONPOLICIES, {"metadata": {"name": "cozystack-route-hostname-policy", "labels": labels}}
    )
    cluster.add(NAMESPACES, {"metadata": {"name": "cozy-system"}})
    cluster.add(CRDS, crd("helmreleases.helm.toolkit.fluxcd.io", "v2"))
    checks = await checks_of(cluster, OperatorStep.REGISTER)
    policy = one(checks, "ValidatingAdmissionPolicy cozystack-route-hostname-policy", "Objects of the same names")
    assert policy.level is Level.WARN
    assert "Flux's HelmRelease cozy-system/basics" in policy.message
    assert one(checks, "Namespace cozy-system", "Objects of the same names").level is Level.OK
    assert failures(checks) == []


async def test_after_the_move_preflight_finds_our_server() -> None:
    cluster = live_cozystack()
    cluster.add(APISERVICES, *(api_service(f"{each}.cozystack.io", OURS) for each in ("apps", "core")))
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    assert failures(checks) == []
    assert one(checks, "v1alpha1.apps.cozystack.io").message.endswith("this is our server")


async def test_whoever_upgrades_the_peer_takes_the_api_services_back() -> None:
    cluster = live_cozystack()
    cluster.add(HELMRELEASES, {"metadata": {"name": "cozystack-api", "namespace": "cozy-system"}, "spec": {}})
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices")
    assert found.level is Level.WARN
    assert found.remedy.startswith("flux suspend helmrelease -n cozy-system cozystack-api, or kubectl patch")


async def test_a_release_that_flux_does_not_know_cannot_be_suspended() -> None:
    """Somebody has run `helm install`."""
    found = one(await checks_of(live_cozystack(), OperatorStep.REPLACE), "APIServices")
    assert found.level is Level.WARN
    assert found.message.startswith("Helm release cozy-system/cozystack-api may put")
    assert found.remedy == "no HelmRelease to suspend: run no helm upgrade or rollback of it until the move back"


@pytest.mark.parametrize("suspended", [True, False])
async def test_a_helmrelease_is_found_whatever_the_name_of_its_release(suspended: bool) -> None:
    """With a target namespace, Flux gives the release of Helm another name than the HelmRelease has. All that it
    applies has the marks of both: https://fluxcd.io/flux/components/helm/helmreleases/#release-name."""
    cluster = live_cozystack()
    moved = api_service("apps.cozystack.io")
    moved["metadata"]["annotations"] |= {**HELM, "meta.helm.sh/release-name": "cozy-system-api"}
    moved["metadata"]["labels"] = {
        "helm.toolkit.fluxcd.io/name": "api",
        "helm.toolkit.fluxcd.io/namespace": "cozy-fluxcd",
    }
    cluster.add(APISERVICES, moved)
    release = {"metadata": {"name": "api", "namespace": "cozy-fluxcd"}, "spec": {"suspend": suspended}}
    cluster.add(HELMRELEASES, release)
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices")
    assert found.level is (Level.OK if suspended else Level.WARN)
    assert found.message.startswith("Flux's HelmRelease cozy-fluxcd/api ")
    assert suspended or found.remedy.startswith("flux suspend helmrelease -n cozy-fluxcd api, or kubectl patch")


def _annotated(**annotations: str) -> LiveCozystack:
    """The annotations are on the APIService of apps.cozystack.io."""
    cluster = live_cozystack()
    moved = api_service("apps.cozystack.io")
    moved["metadata"]["annotations"] |= annotations
    cluster.add(APISERVICES, moved)
    return cluster


async def test_an_annotation_of_flux_that_names_nobody_hides_no_release() -> None:
    cluster = _annotated(**{"helm.toolkit.fluxcd.io/driftDetection": "disabled"})
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices")
    assert found.message.startswith("Helm release cozy-system/cozystack-api may put")


async def test_a_kustomization_that_applies_the_api_services_is_to_be_suspended() -> None:
    cluster = live_cozystack()
    moved = api_service("apps.cozystack.io")
    moved["metadata"]["annotations"] = {}
    moved["metadata"]["labels"] = {
        "kustomize.toolkit.fluxcd.io/name": "api",
        "kustomize.toolkit.fluxcd.io/namespace": "cozy-fluxcd",
    }
    cluster.add(APISERVICES, moved)
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices")
    assert found.level is Level.WARN
    assert found.remedy.startswith("flux suspend kustomization -n cozy-fluxcd api, or kubectl patch kustomization ")


async def test_a_release_that_is_suspended_puts_nothing_back() -> None:
    """preflight is repeated after its own advice has been followed."""
    cluster = live_cozystack()
    release = {"metadata": {"name": "cozystack-api", "namespace": "cozy-system"}, "spec": {"suspend": True}}
    cluster.add(HELMRELEASES, release)
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices")
    assert found.level is Level.OK
    assert found.message == "Helm release cozy-system/cozystack-api is suspended, and does not put them back"
    cluster.add(HELMRELEASES, {**release, "spec": {"suspend": False}})
    assert one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices").level is Level.WARN


async def test_a_release_that_may_not_be_read_is_not_known() -> None:
    cluster = live_cozystack()

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if res == HELMRELEASES:
            raise StatusError(403, "Forbidden", "you may not get it")

    cluster.before = deny
    assert one(await checks_of(cluster, OperatorStep.REPLACE), "APIServices").level is Level.UNKNOWN


async def test_whoever_has_put_an_api_service_back_is_named() -> None:
    cluster = _annotated(**{"apps.cozystack.io/former-registration": "{}"})
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "v1alpha1.apps.cozystack.io")
    assert found.level is Level.WARN
    assert "it was moved to us before, and somebody has put it back" in found.message
    assert "suspend its owner" in found.remedy


async def test_a_port_that_an_upgrade_has_written_is_named() -> None:
    cluster = live_cozystack()
    moved = moved_to_us(api_service("apps.cozystack.io"), OurServer("b3Vycw=="))
    moved["spec"]["service"]["port"] = 9443
    cluster.add(APISERVICES, moved)
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "v1alpha1.apps.cozystack.io")
    assert found.level is Level.WARN
    assert "somebody has written a port that our Service does not have" in found.message
    assert found.remedy == "suspend its owner until the move back, then: replace"


async def test_what_may_not_be_read_is_not_known() -> None:
    cluster = live_cozystack()

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if res in (DEPLOYMENTS, APISERVICES):
            raise StatusError(403, "Forbidden", f"{res.plural} is forbidden")

    cluster.before = deny
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    unknown = [each for each in checks if each.level is Level.UNKNOWN]
    assert [each.subject for each in unknown][:3] == [api_service_name(group) for group in GROUPS]
    assert any(each.section == "Not known" and "deployments.apps" in each.message for each in unknown)
    assert all(each.remedy for each in unknown)
    assert failures(checks) == []
    # neither safe nor harmful: preflight cannot find out
    assert exit_status(checks) == 2
    assert "The step cannot be judged" in as_table(checks)


async def test_a_server_that_is_down_is_not_available() -> None:
    """Its APIService says so some seconds later."""
    cluster = live_cozystack()
    del cluster.served["core.cozystack.io"]
    for step in (OperatorStep.REPLACE, OperatorStep.SHADOW):
        checks = await checks_of(cluster, step)
        found = one(checks, "v1alpha1.core.cozystack.io")
        assert found.level is Level.WARN
        text = "NOT available: the answer is 503 Service Unavailable: service unavailable; its kinds are not known"
        assert text in found.message
        assert exit_status(checks) == 0
    cluster.add(APISERVICES, api_service("apps.cozystack.io", OURS))
    del cluster.served["apps.cozystack.io"]
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "v1alpha1.apps.cozystack.io")
    assert found.level is Level.WARN
    assert "NOT available: the answer is 503" in found.message
    assert found.message.endswith("this is our server")


@pytest.mark.parametrize("step", [OperatorStep.REPLACE, OperatorStep.REGISTER])
async def test_the_group_of_a_custom_resource_definition_is_not_taken(step: OperatorStep) -> None:
    cluster = live_cozystack()
    cluster.add(APISERVICES, local("sdn.cozystack.io"))
    found = one(await checks_of(cluster, step), "v1alpha1.sdn.cozystack.io")
    assert found.level is Level.FAIL
    assert "kube-apiserver itself serves the group, from a CustomResourceDefinition" in found.message
    others = await read_facts(cluster, step, ("apps.cozystack.io",))
    assert one(list(judge(others, step)), "v1alpha1.sdn.cozystack.io").level is Level.OK


async def test_other_api_services_that_lead_to_us_are_named() -> None:
    cluster = live_cozystack()
    for version, group in (("v1alpha2", "apps.cozystack.io"), ("v1", "example.org")):
        other = api_service(group, OURS)
        other["metadata"]["name"] = f"{version}.{group}"
        cluster.add(APISERVICES, other)
    checks = await checks_of(cluster, OperatorStep.REPLACE)
    for name in ("v1.example.org", "v1alpha2.apps.cozystack.io"):
        assert one(checks, name).level is Level.WARN
        assert one(checks, name).remedy.startswith(f"kubectl delete apiservice {name}")


async def test_the_groups_that_can_move_are_named_where_another_would_lose_a_kind() -> None:
    cluster = live_cozystack()
    cluster.served["core.cozystack.io"] = ["tenantnamespaces", "somethings"]
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "somethings.core.cozystack.io")
    assert "--groups=apps.cozystack.io,sdn.cozystack.io" in found.remedy
    cluster.served = {group: ["somethings"] for group in GROUPS}
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "somethings.core.cozystack.io")
    assert "--groups" not in found.remedy
    assert "--for=shadow" in found.remedy


async def test_an_object_with_our_label_that_helm_owns_is_not_ours() -> None:
    cluster = live_cozystack()
    release = {"meta.helm.sh/release-name": "umbrella", "meta.helm.sh/release-namespace": "ns"}
    cluster.add(CLUSTERROLES, {"metadata": {"name": "tenant-apiserver", "labels": PART_OF, "annotations": release}})
    found = one(await checks_of(cluster, OperatorStep.REPLACE), "ClusterRole tenant-apiserver", NAMES)
    assert found.level is Level.FAIL
    assert "owned by Helm release ns/umbrella" in found.message


@pytest.mark.parametrize(
    ("rules", "level", "text"),
    [
        pytest.param(
            [to_policy_rule(each) for each in TENANT_ROLES["cozy:tenant:view"]],
            Level.OK,
            "an apply changes nothing, as it has the same rules",
            id="same",
        ),
        pytest.param(
            [to_policy_rule(each) for each in TENANT_ROLES["cozy:tenant:view"]][::-1],
            Level.WARN,
            "the same rules in another form",
            id="sorted",
        ),
        pytest.param(
            [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}], Level.WARN, "its rules differ", id="other"
        ),
    ],
)
async def test_the_rules_of_a_role_of_others_are_compared(rules: list[dict[str, Any]], level: Level, text: str) -> None:
    cluster = live_cozystack()
    cluster.add(CLUSTERROLES, {"metadata": {"name": "cozy:tenant:view"}, "rules": rules})
    found = one(await checks_of(cluster, OperatorStep.REGISTER), "ClusterRole cozy:tenant:view", NAMES)
    assert found.level is level
    assert text in found.message


async def test_an_installation_is_applied_again_without_a_conflict() -> None:
    """The roles of tenants' people have no label of ours, as others may use them."""
    roles = [each for each in built("overlays/cozy-tenant-roles") if each["kind"] == "ClusterRole"]
    cluster = live_cozystack()
    cluster.add(CLUSTERROLES, *roles)
    checks = await checks_of(cluster, OperatorStep.REGISTER)
    levels = {each.subject: each.level for each in checks if each.section == NAMES}
    assert {levels[f"ClusterRole {each['metadata']['name']}"] for each in roles} == {Level.OK}


async def test_long_lists_are_counted_by_kind_unless_asked_for() -> None:
    checks = await checks_of(live_cozystack(), OperatorStep.REPLACE)
    policies = [each for each in checks if each.subject.startswith("ValidatingAdmissionPolicy tenant-apiserver-")]
    assert len(policies) > 20
    folded = as_table(checks)
    assert f"ValidatingAdmissionPolicy ({len(policies)})" in folded
    assert policies[0].subject not in folded
    assert "ServiceAccount tenant-apiserver in cozy-system" in folded
    full = as_table(checks, full=True)
    assert all(each.subject in full for each in checks)
    assert policies[0].subject in as_json(checks)


async def test_the_writes_are_listed_with_their_places() -> None:
    shadow = [
        each
        for each in await checks_of(live_cozystack(), OperatorStep.SHADOW)
        if each.section == "What would be written"
    ]
    assert {each.subject for each in shadow} == {*map(str, applied(OperatorStep.SHADOW)), "the running server"}
    assert one(shadow, "the running server").message.startswith("nothing at all")
    replace = await checks_of(live_cozystack(), OperatorStep.REPLACE)
    assert "the server: helmreleases.helm.toolkit.fluxcd.io" in {each.subject for each in replace}
    written = {each.subject.removeprefix("the server: ") for each in replace if each.subject.startswith("the server")}
    assert written == {
        "helmreleases.helm.toolkit.fluxcd.io",
        "ciliumnetworkpolicies.cilium.io",
        "secrets",
        "configmaps",
        "leases.coordination.k8s.io",
        "events.events.k8s.io",
        "apiservices.apiregistration.k8s.io",
    }
    assert "sdn.cozystack.io/securitygroup" in one(replace, "the server: ciliumnetworkpolicies.cilium.io").message
    assert "tenant-apiserver-application-kinds" in one(replace, "the server: configmaps").message
    assert "tenant-apiserver-serving-cert" in one(replace, "the server: secrets").message
    assert "former-registration" in one(replace, "APIService v1alpha1.core.cozystack.io").message
    assert one(replace, "finalizers").message == "none, with --controllers=none"
    register = await checks_of(live_cozystack(), OperatorStep.REGISTER)
    assert one(register, "finalizers").message == (
        "apps.cozystack.io/tenant on HelmReleases of Tenants; `tenant-apiserver uninstall` removes them"
    )
    assert one(register, "the server: grpcroutes/status.gateway.networking.k8s.io").message == "patch; any"


async def test_the_output_is_a_table_or_json() -> None:
    checks = await checks_of(live_cozystack(), OperatorStep.REGISTER)
    lines = as_table(checks).splitlines()
    assert lines[0] == "Who serves the groups now"
    assert lines[1].split()[:2] == ["FAIL", "v1alpha1.apps.cozystack.io"]
    assert lines[2].lstrip().startswith("-> ")
    assert lines[-1].startswith("The step would break something: ")
    document = json.loads(as_json(checks))
    assert document["ok"] is False
    assert [each["subject"] for each in document["checks"]] == [each.subject for each in checks]


@pytest.mark.parametrize(
    ("step", "directories"),
    [
        (OperatorStep.SHADOW, ["overlays/shadow"]),
        (OperatorStep.REPLACE, ["overlays/live", "overlays/register"]),
        (OperatorStep.REGISTER, ["overlays/prerequisites", ".", "overlays/register"]),
        (OperatorStep.PROXY, ["overlays/proxy"]),
    ],
)
def test_the_objects_of_a_step_are_those_of_its_manifests(step: OperatorStep, directories: list[str]) -> None:
    objects = [each for directory in directories for each in built(directory)]
    expected = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in objects}
    # the name of the proxy's settings ends with a hash of their content
    expected = {(kind, place, f"{PROXY}-<hash>" if kind == "ConfigMap" else name) for kind, place, name in expected}
    assert {(each.resource.kind, each.namespace, each.name) for each in applied(step)} == expected
    assert SHADOW in {each.name for each in applied(OperatorStep.SHADOW)}
    assert set(registered()).isdisjoint(applied(OperatorStep.SHADOW))
    assert set(tenants_visible()).isdisjoint(applied(OperatorStep.REPLACE))


def test_all_objects_of_the_proxy_have_its_label_and_are_known() -> None:
    folders = ["overlays/proxy", "overlays/proxy-cluster-kinds", "overlays/proxy-persistent-volumes"]
    objects = [each for folder in folders for each in built(folder) if each["kind"] != "ConfigMap"]
    assert {each["metadata"]["labels"]["app.kubernetes.io/part-of"] for each in objects} == {"tenant-apiserver-proxy"}
    found = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in objects}
    assert {(each.resource.kind, each.namespace, each.name) for each in proxy_objects()} == found


async def test_the_proxy_needs_no_server_and_no_cozystack() -> None:
    checks = await checks_of(LiveCozystack(), OperatorStep.PROXY)
    assert exit_status(checks) == 0
    writes = {each.subject: each for each in checks if each.section == "What would be written"}
    assert {*writes} == {*map(str, applied(OperatorStep.PROXY)), "the running proxy"}
    assert writes["Deployment tenant-apiserver-proxy in tenant-apiserver-proxy"].message == "created"
    settings = "ConfigMap tenant-apiserver-proxy-<hash> in tenant-apiserver-proxy"
    assert writes[settings].message == "created"
    assert (
        one(checks, "all others", NAMES).message
        == f"{len(built('overlays/proxy'))} would be created, 0 are of an earlier installation of ours"
    )
    assert writes["the running proxy"].message.startswith("nothing as itself but reviews")


async def test_objects_of_others_with_the_names_of_the_proxy_are_refused() -> None:
    """Above all its namespace: whoever may run Pods there has the rights of its account."""
    cluster = live_cozystack()
    cluster.add(NAMESPACES, {"metadata": {"name": "tenant-apiserver-proxy"}})
    cluster.add(CLUSTERROLES, {"metadata": {"name": "tenant-apiserver:proxy"}})
    checks = await checks_of(cluster, OperatorStep.PROXY)
    assert failures(checks) == ["Namespace tenant-apiserver-proxy", "ClusterRole tenant-apiserver:proxy"]
    assert "must be alone in it" in one(checks, "Namespace tenant-apiserver-proxy", NAMES).message


async def test_a_proxy_that_is_there_already_is_applied_again() -> None:
    cluster = live_cozystack()
    labels = {"app.kubernetes.io/part-of": "tenant-apiserver-proxy"}
    cluster.add(NAMESPACES, {"metadata": {"name": "tenant-apiserver-proxy", "labels": labels}})
    checks = await checks_of(cluster, OperatorStep.PROXY)
    assert failures(checks) == []
    assert one(checks, "Namespace tenant-apiserver-proxy").message == "applied, exists"
    cluster.add(CONFIGMAPS, {"metadata": {"namespace": "tenant-apiserver-proxy", "name": "kube-root-ca.crt"}})
    metadata = {"namespace": "tenant-apiserver-proxy", "name": "tenant-apiserver-proxy-6m", "labels": labels}
    cluster.add(CONFIGMAPS, {"metadata": metadata})
    settings = "ConfigMap tenant-apiserver-proxy-<hash> in tenant-apiserver-proxy"
    assert one(await checks_of(cluster, OperatorStep.PROXY), settings).message == "applied, exists"


async def test_the_kinds_of_this_version_are_those_that_it_builds() -> None:
    facts = await read_facts(live_cozystack(), OperatorStep.REPLACE)
    assert facts.own["apps.cozystack.io"] == {"tenants"}
    assert "tenantnamespaces" in facts.own["core.cozystack.io"]
    assert {api_service_name(group) for group in facts.own} == set(API_SERVICES)

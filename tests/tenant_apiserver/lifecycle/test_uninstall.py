"""`uninstall` takes away what is ours, and nothing else, also if it is killed in between."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import (
    APISERVICES,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
    HELMRELEASES,
    LEASES,
    NAMESPACES,
    SECRETS,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    ClusterResource,
)
from registry.securitygroup.convert import POLICIES
from tenant_apiserver.lifecycle.command import StepFailed, StepRefused, run_command
from tenant_apiserver.lifecycle.kinds import CRDS, DEPLOYMENTS
from tenant_apiserver.lifecycle.marks import stripping_patch
from tenant_apiserver.lifecycle.remainder import remainder
from tenant_apiserver.lifecycle.replicas import LeaseSighting, deployment_ends, leases_end, sightings
from tenant_apiserver.lifecycle.uninstall import OperatorClock, Uninstallation
from tenant_apiserver.options.lifecycle import UninstallOptions
from tests.tenant_apiserver.lifecycle.live_cozystack import LiveCozystack, api_service, deployment, live_cozystack

FINALIZER, FLUX = "apps.cozystack.io/tenant", "finalizers.fluxcd.io"
PART_OF = {"app.kubernetes.io/part-of": "tenant-apiserver"}
OURS = {
    "apps.cozystack.io/application-status": "{}",
    "apps.cozystack.io/tenant-status": "[]",
    "apps.cozystack.io/managed-fields": "[]",
    "apps.cozystack.io/unconfirmed": "x",
}
WRITTEN = {"managedFields": [{"manager": "tenant-apiserver"}]}
LED = {"managedFields": [{"manager": "tenant-controller"}]}
KEYS = {"ca.crt": "", "ca.key": "", "tls.crt": "", "tls.key": ""}
HELMS = {"app.kubernetes.io/managed-by": "Helm"}
RELEASE = {"meta.helm.sh/release-name": "umbrella", "meta.helm.sh/release-namespace": "ns"}
CALLERS = {"apps.cozystack.io-team": "a", "apps.cozystack.io/long-keys": '{"labels": {}}', "example.org/other": "b"}


HOME = {"namespace": "cozy-system"}
SECRET_NAME = "tenant-apiserver-serving-cert"


def options(**changes: Any) -> UninstallOptions:
    defaults = {"kubeconfig": None, "dry_run": False, "keep_objects": False, "keep_managed_fields": False}
    return UninstallOptions(**{**defaults, "timeout": 60.0, **changes})


def release(name: str, *finalizers: str, annotations: Mapping[str, str] = CALLERS, **metadata: Any) -> Object:
    labels = {"apps.cozystack.io/application.group": "apps.cozystack.io"}
    shown = {"name": name, "namespace": "tenant-root", "labels": labels, "annotations": dict(annotations)}
    optional = {"finalizers": list(finalizers)} if finalizers else {}
    return {"metadata": {**shown, **optional, **metadata}, "spec": {"values": {"host": name}}}


def installed() -> LiveCozystack:
    """Our server beside the peer, which has the APIServices."""
    cluster = live_cozystack()
    cluster.add(DEPLOYMENTS, deployment("tenant-apiserver", labels=PART_OF))
    cluster.add(CLUSTERROLES, {"metadata": {"name": "tenant-apiserver", "labels": PART_OF}})
    cluster.add(CLUSTERROLES, {"metadata": {"name": "cozy:tenant"}})
    # no step applies it: an administrator may have added it
    cluster.add(CLUSTERROLEBINDINGS, {"metadata": {"name": "tenant-apiserver:tenantsecrets", "labels": PART_OF}})
    home = {"namespace": "cozy-system"}
    cluster.add(SECRETS, {"metadata": {"name": "tenant-apiserver-serving-cert", **home, **WRITTEN}, "data": KEYS})
    cluster.add(SECRETS, {"metadata": {"name": "theirs", **home}})
    cluster.add(CONFIGMAPS, {"metadata": {"name": "tenant-apiserver-application-kinds", **home, **LED}})
    for name in ("tenant-apiserver", "tenant-apiserver-application-kinds"):
        cluster.add(LEASES, {"metadata": {"name": name, **home, **WRITTEN}, "spec": {"holderIdentity": ""}})
    cluster.add(NAMESPACES, {"metadata": {"name": "tenant-root", "labels": HELMS}})
    cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alice", "annotations": {"apps.cozystack.io/tenant": "a/b"}}})
    cluster.add(CRDS, {"metadata": {"name": "tenantgateways.gateway.cozystack.io", "labels": PART_OF}})
    cluster.add(
        HELMRELEASES,
        release("tenant-alice", FLUX, FINALIZER, annotations={**CALLERS, **OURS}),
        release("tenant-bob", FINALIZER),
        release("postgres-db", FLUX),
    )
    return cluster


class VirtualClock(OperatorClock):
    def __init__(self) -> None:
        self.time = 0.0
        super().__init__(now=lambda: self.time, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.time += seconds


async def run(cluster: LiveCozystack, **changes: Any) -> tuple[int, str]:
    said: list[str] = []
    status = await Uninstallation(cluster, options(**changes), clock=VirtualClock(), say=said.append).run()
    return status, "\n".join(said)


def metadata_of(cluster: LiveCozystack, name: str) -> Object:
    found = cluster.peek(HELMRELEASES, "tenant-root", name)
    assert found is not None
    return dict(found["metadata"])


async def test_what_is_ours_goes_and_everything_else_stays() -> None:
    cluster = installed()
    specs = {each["metadata"]["name"]: each["spec"] for each in cluster.peek_all(HELMRELEASES)}
    untouched = [cluster.peek(APISERVICES, "", "v1alpha1.apps.cozystack.io"), cluster.peek_all(NAMESPACES)]
    status, said = await run(cluster)
    assert status == 0
    assert metadata_of(cluster, "tenant-alice")["finalizers"] == [FLUX]
    assert metadata_of(cluster, "tenant-alice")["annotations"] == CALLERS
    assert "finalizers" not in metadata_of(cluster, "tenant-bob")
    assert {each["metadata"]["name"]: each["spec"] for each in cluster.peek_all(HELMRELEASES)} == specs
    assert {each["metadata"]["generation"] for each in cluster.peek_all(HELMRELEASES)} == {1}
    assert [cluster.peek(APISERVICES, "", "v1alpha1.apps.cozystack.io"), cluster.peek_all(NAMESPACES)] == untouched
    assert {each["metadata"]["name"] for each in cluster.peek_all(DEPLOYMENTS)} == {
        "cozystack-controller",
        "cert-manager",
    }
    assert [each["metadata"]["name"] for each in cluster.peek_all(CLUSTERROLES)] == ["cozy:tenant"]
    assert cluster.peek_all(CLUSTERROLEBINDINGS) == []
    assert [each["metadata"]["name"] for each in cluster.peek_all(SECRETS)] == ["theirs"]
    assert cluster.peek_all(LEASES) == cluster.peek_all(CONFIGMAPS) == []
    assert cluster.peek(CRDS, "", "tenantgateways.gateway.cozystack.io") is not None
    for line in ("3 HelmReleases", "2 Namespaces", "kubectl delete crd tenantgateways.gateway.cozystack.io"):
        assert line in said


async def test_the_proxy_stays_and_is_named() -> None:
    """Kubeconfigs of users point at it, and it serves them without the server."""
    cluster = installed()
    labels = {"app.kubernetes.io/part-of": "tenant-apiserver-proxy"}
    for name in ("tenant-apiserver:proxy", "tenant-apiserver:proxy-persistent-volumes"):
        cluster.add(CLUSTERROLES, {"metadata": {"name": name, "labels": labels}})
    status, said = await run(cluster)
    assert status == 0
    assert {each["metadata"]["name"] for each in cluster.peek_all(CLUSTERROLES)} > {"tenant-apiserver:proxy"}
    for line in (
        "The proxy stays, with 2 objects",
        "  ClusterRole tenant-apiserver:proxy-persistent-volumes",
        "kubectl delete --ignore-not-found -k manifests/overlays/proxy\n",
    ):
        assert line in f"{said}\n"
    assert "The proxy stays" not in (await run(installed()))[1]


async def test_a_policy_without_our_label_stays_and_is_named_with_its_effect() -> None:
    cluster = installed()
    name = "cozystack-helmrelease-deletion-policy"
    for kind in (VALIDATINGADMISSIONPOLICIES, VALIDATINGADMISSIONPOLICYBINDINGS):
        cluster.add(kind, {"metadata": {"name": name}})
    _, said = await run(cluster)
    assert [each["metadata"]["name"] for each in cluster.peek_all(VALIDATINGADMISSIONPOLICIES)] == [name]
    both = f"ValidatingAdmissionPolicy {name} and ValidatingAdmissionPolicyBinding {name}"
    for line in (
        f"  {both}, which refuses to delete HelmReleases of tenants",
        "      kubectl delete --ignore-not-found -k manifests/components/deletion-guard",
    ):
        assert line in said.splitlines()
    assert "deletion-guard" not in (await run(installed()))[1]


async def test_the_dashboard_and_the_settings_go() -> None:
    cluster = installed()
    for name in ("tenant-apiserver-dashboard", "tenant-apiserver-platform"):
        cluster.add(CONFIGMAPS, {"metadata": {"name": name, "namespace": "cozy-system", "labels": PART_OF}})
    _, plan = await run(cluster, dry_run=True)
    for name in ("tenant-apiserver-dashboard", "tenant-apiserver-platform"):
        assert f"  ConfigMap {name} in cozy-system: of an unknown owner" in plan.splitlines()
    await run(cluster)
    assert cluster.peek_all(CONFIGMAPS) == []


async def test_it_is_refused_while_the_api_services_lead_to_us() -> None:
    cluster = installed()
    cluster.add(APISERVICES, api_service("core.cozystack.io", {"namespace": "cozy-system", "name": "tenant-apiserver"}))
    with pytest.raises(StepRefused, match=r"v1alpha1\.core\.cozystack\.io .* first: tenant-apiserver back"):
        await run(cluster)
    assert cluster.writes == []


@pytest.mark.parametrize("name", ["v1alpha2.apps.cozystack.io", "v1.example.org"])
async def test_it_is_refused_while_any_api_service_leads_to_us(name: str) -> None:
    """Without a server behind it, no namespace could be deleted."""
    cluster = installed()
    other = api_service("apps.cozystack.io", {"namespace": "cozy-system", "name": "tenant-apiserver"})
    other["metadata"]["name"] = name
    cluster.add(APISERVICES, other)
    with pytest.raises(
        StepRefused, match=f"{re.escape(name)} would be left .* first: kubectl delete apiservice {name}"
    ):
        await run(cluster)
    assert cluster.writes == []


async def test_nothing_is_deleted_if_a_group_moves_to_us_meanwhile() -> None:
    cluster = installed()
    ours = api_service("core.cozystack.io", {"namespace": "cozy-system", "name": "tenant-apiserver"})

    async def move(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "patch":
            cluster.add(APISERVICES, ours)

    cluster.before = move
    with pytest.raises(StepRefused, match=r"v1alpha1\.core\.cozystack\.io would be left without a server"):
        await run(cluster)
    assert {each.verb for each in cluster.writes} == {"patch"}


async def test_it_does_not_begin_if_the_api_services_cannot_be_listed() -> None:
    cluster = installed()

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res) == ("list", APISERVICES):
            raise StatusError(403, "Forbidden", "you may not list them")

    cluster.before = deny
    with pytest.raises(StepFailed, match=r"apiservices.apiregistration.k8s.io cannot be listed: you may not list them"):
        await run(cluster)
    assert cluster.writes == []


async def test_a_dry_run_writes_nothing_and_names_owners() -> None:
    cluster = installed()
    status, said = await run(cluster, dry_run=True)
    assert (status, cluster.writes) == (0, [])
    for line in (
        "2 HelmReleases",
        "tenant-root/tenant-alice",
        "Secret tenant-apiserver-serving-cert in cozy-system: written by tenant-apiserver",
    ):
        assert line in said


def test_a_signal_ends_it_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = installed()

    async def interrupt(verb: str, res: ClusterResource, key: Key) -> None:
        if len(cluster.writes) == 2:
            signal.raise_signal(signal.SIGTERM)
            for _ in range(5):
                await asyncio.sleep(0)

    async def action() -> int:
        return (await run(cluster))[0]

    cluster.before = interrupt
    assert run_command("uninstall", action, after="run it again: it continues") == 143
    expected = "tenant-apiserver uninstall: interrupted by SIGTERM; run it again: it continues\n"
    assert capsys.readouterr().err == expected


async def test_it_can_be_repeated_after_a_kill_at_any_write() -> None:
    expected = installed()
    await run(expected)
    count = len(expected.writes)
    assert count >= 6
    for survived in range(count):
        cluster = installed()

        async def kill(
            verb: str, res: ClusterResource, key: Key, *, allowed: int = survived, of: LiveCozystack = cluster
        ) -> None:
            if verb in ("patch", "delete", "update", "create") and len(of.writes) >= allowed:
                raise KeyboardInterrupt

        cluster.before = kill
        with pytest.raises(KeyboardInterrupt):
            await run(cluster)
        cluster.before = None
        assert (await run(cluster))[0] == 0
        assert len(cluster.writes) == count
        for res in (HELMRELEASES, DEPLOYMENTS, CLUSTERROLES, SECRETS, LEASES):
            assert _shape(cluster, res) == _shape(expected, res)


def _shape(cluster: LiveCozystack, res: ClusterResource) -> list[Object]:
    found = deepcopy(cluster.peek_all(res))
    for each in found:
        each["metadata"].pop("resourceVersion")
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


@pytest.mark.parametrize("name", ["tenant-apiserver", "tenant-apiserver-application-kinds"])
async def test_finalizers_stay_until_nobody_leads(name: str) -> None:
    """A server that runs elsewhere is noticed with controllers and without: each holds a Lease."""
    cluster = installed()
    lease = cluster.peek(LEASES, "cozy-system", name)
    assert lease is not None
    lease["spec"] = {"holderIdentity": "a-process-elsewhere", "leaseDurationSeconds": 15}
    cluster.add(LEASES, lease)
    renewals = 0

    async def renew(verb: str, res: ClusterResource, key: Key) -> None:
        nonlocal renewals
        if (verb, res) == ("get", LEASES) and key.name == name:
            renewals += 1
            cluster.add(LEASES, lease)

    cluster.before = renew
    with pytest.raises(StepRefused, match=r"the end of the Lease of a-process-elsewhere; a server that runs else"):
        await run(cluster)
    assert renewals > 30
    assert FINALIZER in metadata_of(cluster, "tenant-alice")["finalizers"]
    # killed without releasing the Lease, it leads no more when the Lease's duration is over
    cluster.before = None
    assert (await run(cluster))[0] == 0


async def test_a_tenant_that_is_being_deleted_is_left_to_the_operator() -> None:
    """Without our finalizer, the HelmRelease would be gone, and its Namespace nobody's."""
    cluster = installed()
    cluster.add(HELMRELEASES, release("tenant-gone", FINALIZER, deletionTimestamp="2026-01-01T00:00:00Z"))
    status, said = await run(cluster)
    assert status == 1
    assert "tenant-root/tenant-gone" in said
    assert metadata_of(cluster, "tenant-gone")["finalizers"] == [FINALIZER]


async def test_objects_and_managed_fields_can_be_kept() -> None:
    cluster = installed()
    _, said = await run(cluster, keep_objects=True, keep_managed_fields=True)
    # an apply of the manifests would be refused, as the number of replicas is not theirs any more
    assert "  to run it again: kubectl scale -n cozy-system deployment/tenant-apiserver --replicas=2" in said
    server = cluster.peek(DEPLOYMENTS, "cozy-system", "tenant-apiserver")
    assert server is not None
    assert server["spec"]["replicas"] == 0
    assert metadata_of(cluster, "tenant-alice")["annotations"].keys() == {*CALLERS, "apps.cozystack.io/managed-fields"}


async def test_a_change_of_somebody_else_in_between_is_kept() -> None:
    cluster = installed()
    raced = False

    async def race(verb: str, res: ClusterResource, key: Key) -> None:
        nonlocal raced
        if (verb, res, key.name, raced) == ("patch", HELMRELEASES, "tenant-alice", False):
            raced = True
            cluster.add(HELMRELEASES, release("tenant-alice", FLUX, FINALIZER, "example.org/new", annotations=OURS))

    cluster.before = race
    await run(cluster)
    assert metadata_of(cluster, "tenant-alice")["finalizers"] == [FLUX, "example.org/new"]


def test_a_release_without_marks_is_not_written() -> None:
    untouched = release("postgres-db", FLUX, uid="u", resourceVersion="1")
    assert stripping_patch(untouched, keep_managed_fields=False) is None


@pytest.mark.parametrize(
    ("found", "pods", "expected"),
    [
        pytest.param(None, [], "", id="no Deployment"),
        pytest.param({"spec": {"replicas": 2}}, [], "scaled up again", id="scaled up"),
        pytest.param({"spec": {}}, [], "scaled up again", id="one replica by default"),
        pytest.param({"spec": {"replicas": 0}, "status": {"replicas": 1}}, [], "1 replicas", id="one is left"),
        pytest.param({"spec": {"replicas": 0}, "status": {"observedGeneration": 1}}, [], "not seen", id="not observed"),
        pytest.param({"spec": {"replicas": 0}, "status": {"observedGeneration": 2}}, [], "", id="none"),
        pytest.param(None, [{"metadata": {"name": "x-1"}}], "Pods x-1", id="a Pod that is shutting down"),
    ],
)
def test_replicas_have_ended(found: Object | None, pods: list[Object], expected: str) -> None:
    if found is not None:
        found = {**found, "metadata": {"generation": 2}}
    remaining = deployment_ends(found, pods)
    assert (expected in remaining) if expected else remaining == ""


def test_a_lease_counts_until_it_was_not_renewed_for_its_duration() -> None:
    lease: Object = {
        "metadata": {"name": "l", "resourceVersion": "1"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2001-01-01T00:00:00Z"},
    }
    seen = sightings([lease], {}, 100.0)
    assert seen == {"l": LeaseSighting("1", 100.0)}
    assert leases_end([lease], seen, 110.0) == "the Lease of a"
    assert sightings([lease], seen, 110.0) == seen
    assert leases_end([lease], seen, 115.1) == ""
    other: Object = {"metadata": {"name": "m", "resourceVersion": "1"}, "spec": {"holderIdentity": "b"}}
    both = sightings([lease, other], seen, 114.0)
    assert leases_end([lease, other], both, 115.0) == "the Lease of a and b"
    assert leases_end([lease, other], both, 115.1) == "the Lease of b"
    lease["metadata"]["resourceVersion"] = "2"
    assert sightings([lease], seen, 114.0) == {"l": LeaseSighting("2", 114.0)}
    lease["spec"]["holderIdentity"] = ""
    assert sightings([lease], seen, 114.0) == {}
    assert leases_end([lease], {}, 114.0) == ""


async def test_all_that_stays_of_a_live_cozystack_is_counted() -> None:
    """Also what cozystack-api and the charts have made, and what this server wrote for callers."""
    cluster = installed()
    label = {"tenant.cozystack.io/tenant-bob": ""}
    cluster.add(NAMESPACES, {"metadata": {"name": "tenant-bob", "labels": {**HELMS, **label}}})
    cluster.add(NAMESPACES, {"metadata": {"name": "default"}})
    place = {"namespace": "tenant-bob"}
    for name, value in (("web", "true"), ("other", "false")):
        labels = {"sdn.cozystack.io/securitygroup": value}
        cluster.add(POLICIES, {"metadata": {"name": name, "labels": labels, **place}})
    for number in range(3):
        labels = {"internal.cozystack.io/tenantresource": "true"}
        cluster.add(SECRETS, {"metadata": {"name": f"s{number}", "labels": labels, **place}})
    _, said = await run(cluster)
    for line in (
        "  3 Namespaces of tenants",
        "  1 CiliumNetworkPolicy of SecurityGroups",
        "  3 Secrets shown as TenantSecrets",
    ):
        assert line in said, said


def test_a_number_that_cannot_be_read_is_unknown() -> None:
    kinds = ("HelmRelease", "Namespace", "Gateway", "CiliumNetworkPolicy")
    lines = remainder({**dict.fromkeys(kinds, 0), "Secret": None}, [], found=(), unreadable={})
    assert [each for each in lines if not each.startswith("      ")][1:] == [
        "  an unknown number of Secrets shown as TenantSecrets, whoever was the writer"
    ]


def test_where_nothing_stays_nothing_is_named() -> None:
    kinds = ("HelmRelease", "Namespace", "Gateway", "CiliumNetworkPolicy", "Secret")
    lines = remainder(dict.fromkeys(kinds, 0), [], found=(), unreadable={})
    assert lines == ["Nothing else stays that an installation of this server brings."]


async def test_only_what_exists_is_named_as_what_stays() -> None:
    """cozystack-api's cluster may lack the CustomResourceDefinition, and a plain one the roles."""
    cluster = installed()
    _, said = await run(cluster, dry_run=True)
    crd = "CustomResourceDefinition tenantgateways.gateway.cozystack.io"
    assert f"  {crd} and Namespace cozy-system, which Cozystack has, too" in said
    assert "  ClusterRoles cozy:tenant, to which people may be bound" in said
    await cluster.delete(CRDS, "", "tenantgateways.gateway.cozystack.io")
    await cluster.delete(CLUSTERROLES, "", "cozy:tenant")
    _, said = await run(cluster, dry_run=True)
    assert "  Namespace cozy-system, which Cozystack has, too" in said
    assert "tenantgateways.gateway" not in said
    assert "cozy:tenant" not in said


async def test_what_may_not_be_read_is_said() -> None:
    cluster = installed()

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res) == ("get", CRDS):
            raise StatusError(403, "Forbidden", "you may not get it")

    cluster.before = deny
    status, said = await run(cluster)
    assert status == 0
    crd = "CustomResourceDefinition tenantgateways.gateway.cozystack.io"
    assert f"  whether {crd} exists is unknown: you may not get it" in said

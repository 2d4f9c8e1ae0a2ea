"""The commands of docs/install.md on a cluster that others use: nothing of theirs changes or disappears."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from admission.tenant.claims.claim_lease import NAME as CLAIM_LEASE
from registry.application.kept_forms import NAME as KEPT_FORMS
from tenant_apiserver.certificates.cluster_secret import SECRET_NAME
from tenant_apiserver.lifecycle.kinds import INSTALLED_KINDS
from tenant_apiserver.lifecycle.removable import DELETED_KINDS
from tenant_apiserver.wiring.controllers import LEASE as LEADER_LEASE
from tests.e2e.support.clusters.cluster import KUBECTL
from tests.e2e.support.clusters.control_plane import Binaries, ControlPlane
from tests.e2e.support.clusters.processes import REPOSITORY, wait_until
from tests.e2e.support.http.https_client import Client
from tests.tenant_apiserver.test_generate_manifests import built

PAGE = (REPOSITORY / "docs" / "install.md").read_text()
_COMMAND = re.compile(r"^\$ kubectl ((?:apply|create|delete) .*)$", re.MULTILINE)
INSTALL, REMOVE = (_COMMAND.findall(part) for part in PAGE.split("## Remove it"))
LABEL = "app.kubernetes.io/part-of"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tenantgateways.gateway.cozystack.io"
HOME = "/api/v1/namespaces/cozy-system"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/cozystack-gateway-hostname-policy"


class Bystander:
    """A cluster with objects of others where ours would be."""

    def __init__(self, running: ControlPlane) -> None:
        self._running = running
        self.client = Client(running.url, running.admin.tls, running.admin.headers)
        service = {"namespace": "cozy-system", "name": "cozystack-api"}
        spec = {
            "group": "apps.cozystack.io",
            "version": "v1alpha1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
        }
        policy: dict[str, Any] = next(
            each for each in built("policies") if each["metadata"]["name"] == POLICY.rpartition("/")[2]
        )
        del policy["metadata"]["labels"]
        policy["spec"]["validations"] = [{"expression": "true"}]
        self.paths = [
            self._create("/api/v1/namespaces", "cozy-system"),
            self._create(f"{HOME}/configmaps", "theirs", data={"a": "b"}),
            self._create(f"{HOME}/secrets", "theirs", data={"a": "eA=="}),
            self._create(f"{HOME}/services", "cozystack-api", spec={"ports": [{"port": 443}]}),
            self._create(API_SERVICES, "v1alpha1.apps.cozystack.io", spec={**spec, "service": service}),
            self._create(POLICY.rpartition("/")[0], POLICY.rpartition("/")[2], spec=policy["spec"]),
            self._create(CLUSTER_ROLES, "cozy:tenant:admin", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
        ]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the page in a checkout, whether or not it succeeds."""
        arguments = [str(KUBECTL), f"--kubeconfig={self._running.admin.kubeconfig}", *command.split()]
        environment = {**os.environ, "KUBECACHEDIR": str(self._running.audit_log.parent / "cache")}
        done = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, env=environment)
        return done

    def content(self) -> dict[str, Any]:
        """The objects that others have written, by path."""
        return {path: _content(self.client.get(path).expect(200)) for path in self.paths}

    def define_kinds_of_operators(self) -> None:
        """The kinds of cert-manager and the Prometheus Operator, of which we install objects, with any fields."""
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        for each in DELETED_KINDS:
            if each not in INSTALLED_KINDS.values():
                version = {"name": each.version, "served": True, "storage": True, "schema": schema}
                names = {"plural": each.plural, "kind": each.kind}
                spec = {"group": each.group, "scope": "Namespaced", "names": names, "versions": [version]}
                self._create(CRD.rpartition("/")[0], f"{each.plural}.{each.group}", spec=spec)
                wait_until(f"{each} is served", partial(self.client.serves, each.path()), seconds=120)

    def gateway(self) -> str:
        """The path of a new TenantGateway, whose kind has been installed a moment ago."""
        path = "/apis/gateway.cozystack.io/v1alpha1/namespaces/cozy-system/tenantgateways"
        wait_until("TenantGateways are served", lambda: self.client.serves(path), seconds=120)
        kind = {"apiVersion": "gateway.cozystack.io/v1alpha1", "kind": "TenantGateway"}
        return self._create(path, "cozystack", **kind, spec={"apex": "example.org"})

    def labelled(self) -> list[str]:
        """Everything of an installation that is in the cluster."""
        parts = [
            built(directory)
            for directory in (".", "overlays/register", "overlays/network-policy", "components/monitoring")
        ]
        kinds = ",".join(sorted({each["kind"] for part in parts for each in part}))
        return self.run(f"get {kinds} -A -l {LABEL}=tenant-apiserver -o name").stdout.split()

    def _create(self, collection: str, name: str, **fields: Any) -> str:
        self.client.request("POST", collection, {"metadata": {"name": name}, **fields}).expect(201)
        return f"{collection}/{name}"


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key in ("uid", "labels", "ownerReferences")}
    # conditions and defaults of kube-apiserver are not theirs
    return {**{key: value for key, value in obj.items() if key in ("spec", "data", "rules")}, "metadata": metadata}


@pytest.fixture
def bystander(tmp_path: Path, control_plane_files: tuple[Binaries, Path]) -> Iterator[Bystander]:
    running = ControlPlane(tmp_path, control_plane_files[0])
    try:
        yield Bystander(running)
    finally:
        running.stop()


def test_the_page_has_the_commands() -> None:
    assert [line.split()[-1] for line in INSTALL] == [
        "manifests/overlays/prerequisites",
        "manifests",
        "manifests/overlays/register",
        "manifests/components/tenantsecrets",
    ]
    assert len(REMOVE) >= 6
    assert not any("prerequisites" in line or "-k" in line.split() or "-f" in line.split() for line in REMOVE)
    assert not any(re.search(r"\b(namespaces?|crds?|customresourcedefinitions?)\b", line) for line in REMOVE)


def test_the_page_removes_what_the_server_itself_stores_in_its_namespace() -> None:
    """These objects have no label."""
    named = {word for line in REMOVE for word in line.split() if word.startswith(("secret/", "lease/", "configmap/"))}
    leases = {f"lease/{name}" for name in (LEADER_LEASE, CLAIM_LEASE, KEPT_FORMS)}
    assert named == {f"secret/{SECRET_NAME}", *leases, f"configmap/{KEPT_FORMS}"}


def test_installing_and_removing_destroys_nothing_of_others(bystander: Bystander) -> None:
    """The APIService of cozystack-api, a policy and a role of tenants' people of the same names as ours, and what is in
    Namespace cozy-system."""
    bystander.define_kinds_of_operators()
    before = bystander.content()
    results = {line: bystander.run(line) for line in INSTALL}
    # the namespace of others has no label of ours, the policy of others is a conflict, and their APIService exists
    assert bystander.content() == before
    assert "AlreadyExists" in results[INSTALL[2]].stderr
    assert "conflict" in results[INSTALL[1]].stderr
    assert bystander.client.get("/apis/apps/v1/namespaces/cozy-system/deployments/tenant-apiserver").status == 200
    assert bystander.client.get(f"{API_SERVICES}/v1alpha1.core.cozystack.io").status == 200
    monitoring = bystander.run("apply --server-side -k manifests/components/monitoring")
    assert monitoring.returncode == 0, monitoring.stderr
    labelled = bystander.labelled()
    assert "prometheusrule.monitoring.coreos.com/tenant-apiserver" in labelled
    assert len(labelled) > 50
    assert "clusterrolebinding.rbac.authorization.k8s.io/tenant-apiserver:tenantsecrets" in labelled
    gateway = bystander.gateway()

    for line in REMOVE:
        done = bystander.run(line)
        assert done.returncode == 0, done.stderr
    assert bystander.content() == before
    assert bystander.client.get(CRD).status == 200
    # with the CustomResourceDefinition, every Gateway of a tenant would be gone
    assert bystander.client.get(gateway).expect(200)["metadata"].get("deletionTimestamp") is None
    assert bystander.client.get(f"{CLUSTER_ROLES}/cozy:tenant").status == 200
    assert bystander.labelled() == []
    assert bystander.client.get("/apis/apps/v1/namespaces/cozy-system/deployments/tenant-apiserver").status == 404
    assert bystander.client.get(f"{API_SERVICES}/v1alpha1.core.cozystack.io").status == 404

"""The platform's Package is the source of the settings: changes take effect within two seconds, wrong ones not at all.

`publishing`, `gateway` and `resources` of `cozystack.cozystack-platform` go before the settings file (R-092, R-294).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import Binaries
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.platform_package import (
    PACKAGE,
    package_events,
    patch,
    readyz_line,
    root_condition,
    serve_packages,
)
from tests.e2e.support.tenants import Tenants, manifest

CHECK = "platform-package"
ATTACHED = ["cozy-cert-manager", "cozy-dashboard", "default"]
TWO_SECONDS = 2.0
SEED = f"""
apiVersion: cozystack.io/v1alpha1
kind: Package
metadata:
  name: {PACKAGE}
spec:
  variant: isp-full
  components:
    platform:
      values:
        publishing:
          host: package.example
        gateway:
          enabled: true
          attachedNamespaces: {json.dumps(ATTACHED)}
"""
"""As seed 000 has it, with fewer namespaces."""


@pytest.fixture
def packages(own_cluster: E2eCluster, control_plane_files: tuple[Binaries, Path]) -> E2eCluster:
    """A cluster that begins to serve Packages while our server runs."""
    serve_packages(own_cluster, control_plane_files[1])
    return own_cluster


def certificates(**fields: Any) -> dict[str, Any]:
    return {"publishing": {"certificates": fields}}


def gateway_specs(cluster: E2eCluster) -> list[dict[str, Any]]:
    found = cluster.client().get("/apis/gateway.cozystack.io/v1alpha1/tenantgateways").expect(200)
    return [each["spec"] for each in found["items"]]


def modes(cluster: E2eCluster) -> set[str]:
    return {each["certMode"] for each in gateway_specs(cluster)}


def settings_events(cluster: E2eCluster) -> list[tuple[str, str]]:
    return package_events(cluster, "InvalidSettings", "SettingsInForce")


def host_label(cluster: E2eCluster, namespace: str) -> str:
    labels: dict[str, str] = cluster.client().get(f"/api/v1/namespaces/{namespace}").expect(200)["metadata"]["labels"]
    return labels.get("namespace.cozystack.io/host", "")


@pytest.mark.timeout(900)
def test_the_package_of_the_platform_changes_settings_without_a_restart(packages: E2eCluster) -> None:
    """Seed 000's Package, then a solver, then a wrong one, then a key of others (R-092, R-294)."""
    cluster, tenants = packages, Tenants(packages)
    process = cluster.server.pid
    tenants.create_with_namespace(spec={"gateway": True})
    tenants.create_with_namespace(spec={"gateway": True})
    cluster.wait_until("both have TenantGateways", lambda: len(gateway_specs(cluster)) == 2)
    assert modes(cluster) == {"http01"}

    cluster.kubectl("apply", "--filename=-", input=SEED)
    cluster.wait_until("the Package is in force", lambda: host_label(cluster, ROOT) == "package.example")
    cluster.wait_until(
        "its namespaces are attached",
        lambda: all(each["attachedNamespaces"] == ATTACHED for each in gateway_specs(cluster)),
    )
    assert readyz_line(cluster, CHECK) == f"[+]platform-package ok: the settings are those of Package {PACKAGE}"

    patch(cluster, certificates(solver="dns01"))
    wait_until("every TenantGateway uses DNS-01", lambda: modes(cluster) == {"dns01"}, seconds=TWO_SECONDS)
    assert cluster.server.pid == process, "the server was restarted"

    _refuse_a_wrong_value(cluster)
    _refuse_a_publisher_that_is_no_tenant(cluster, tenants)
    _ignore_keys_of_others(cluster)


def _refuse_a_wrong_value(cluster: E2eCluster) -> None:
    """Nothing of the change takes effect; readyz, an Event and a condition name the field."""
    field = "publishing.certificates.solver"
    before = gateway_specs(cluster)
    patch(cluster, {"gateway": {"attachedNamespaces": []}, **certificates(solver=7)})
    cluster.wait_until("readyz names the field", lambda: field in readyz_line(cluster, CHECK))
    assert "the previous settings stay in force" in readyz_line(cluster, CHECK)
    assert "ok\n" in f"{readyz_line(cluster, CHECK, cluster.direct_client('nobody'))}\n", "it is shown to everybody"
    cluster.wait_until(
        "an Event names the field",
        lambda: any(type_ == "Warning" and field in note for type_, note in settings_events(cluster)),
    )
    cluster.wait_until("a condition names the field", lambda: root_condition(cluster, "PlatformSettingsInvalid"))
    found = root_condition(cluster, "PlatformSettingsInvalid")
    assert found is not None
    assert found["status"] == "True"
    assert field in found["message"]
    assert gateway_specs(cluster) == before

    patch(cluster, {"gateway": {"attachedNamespaces": ATTACHED}, **certificates(solver="http01")})
    wait_until("the corrected value is in force", lambda: modes(cluster) == {"http01"}, seconds=TWO_SECONDS)
    cluster.wait_until("the condition is gone", lambda: root_condition(cluster, "PlatformSettingsInvalid") is None)
    assert len([type_ for type_, _ in settings_events(cluster) if type_ == "Warning"]) == 1


def _refuse_a_publisher_that_is_no_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    """Nothing of the change takes effect until the tenant is created."""
    name = tenants.new_name()
    patch(cluster, {"publishing": {"ingressName": f"tenant-{name}", **certificates(solver="dns01")["publishing"]}})
    problem = f"publishing.ingressName: tenant-{name} is the namespace of no tenant"
    cluster.wait_until("readyz names the field", lambda: problem in readyz_line(cluster, CHECK))
    cluster.wait_until(
        "an Event and a condition name the field",
        lambda: (
            any(type_ == "Warning" and problem in note for type_, note in settings_events(cluster))
            and problem in str(root_condition(cluster, "PlatformSettingsInvalid"))
        ),
    )
    assert modes(cluster) == {"http01"}
    cluster.client().request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    cluster.wait_until("the whole change is in force", lambda: modes(cluster) == {"dns01"})
    cluster.wait_until("the condition is gone", lambda: root_condition(cluster, "PlatformSettingsInvalid") is None)


def _ignore_keys_of_others(cluster: E2eCluster) -> None:
    """A key that is not ours changes nothing, and nothing is said about it."""
    events = settings_events(cluster)
    patch(cluster, {"nosuch": {"x": 1}, **certificates(nosuch=True, solver="dns01")})
    wait_until("the known key is in force", lambda: modes(cluster) == {"dns01"}, seconds=TWO_SECONDS)
    assert readyz_line(cluster, CHECK) == f"[+]platform-package ok: the settings are those of Package {PACKAGE}"
    assert settings_events(cluster) == events
    assert root_condition(cluster, "PlatformSettingsInvalid") is None


@pytest.mark.timeout(900)
def test_the_configmap_goes_before_the_package_and_the_file_counts_after_it(packages: E2eCluster) -> None:
    """`root-host` of ConfigMap cozystack goes before publishing.host; a deleted Package, even a wrong one, leaves
    nothing behind, and an Event tells what has changed."""
    cluster = packages
    of_file = host_label(cluster, ROOT)
    cluster.kubectl("apply", "--filename=-", input=SEED)
    cluster.wait_until("the Package is in force", lambda: host_label(cluster, ROOT) == "package.example")
    if cluster.client().get("/api/v1/namespaces/cozy-system").status == 404:
        cluster.kubectl("create", "namespace", "cozy-system")
    cluster.kubectl("create", "configmap", "cozystack", "-n", "cozy-system", "--from-literal=root-host=map.example")
    wait_until(
        "the ConfigMap's host is in force", lambda: host_label(cluster, ROOT) == "map.example", seconds=TWO_SECONDS
    )
    cluster.kubectl("delete", "configmap", "cozystack", "-n", "cozy-system")
    wait_until(
        "the Package's host is back", lambda: host_label(cluster, ROOT) == "package.example", seconds=TWO_SECONDS
    )

    patch(cluster, certificates(solver=7))
    cluster.wait_until("it is refused", lambda: root_condition(cluster, "PlatformSettingsInvalid") is not None)
    cluster.kubectl("delete", "pkg", PACKAGE)
    cluster.wait_until("the file's host is in force", lambda: host_label(cluster, ROOT) == of_file)
    cluster.wait_until("the complaint is gone", lambda: root_condition(cluster, "PlatformSettingsInvalid") is None)
    assert readyz_line(cluster, CHECK).endswith(f"there is no Package {PACKAGE}, the settings are those of the file")
    cluster.wait_until(
        "an Event tells what has changed",
        lambda: any(
            type_ == "Warning" and "publishing.host" in note and "gateway.enabled: false instead of true" in note
            for type_, note in package_events(cluster, "SettingsOfFile")
        ),
    )


@pytest.mark.timeout(900)
def test_a_restart_with_a_wrong_package_moves_nothing(packages: E2eCluster) -> None:
    """The settings before it are not known then, and those of the file would move every domain."""
    cluster = packages
    cluster.kubectl("apply", "--filename=-", input=SEED)
    cluster.wait_until("the Package is in force", lambda: host_label(cluster, ROOT) == "package.example")
    patch(cluster, certificates(solver=7))
    cluster.restart()
    cluster.wait_until("readyz says why", lambda: "nothing is written until it is valid" in readyz_line(cluster, CHECK))
    namespace = f"/api/v1/namespaces/{ROOT}"
    version = cluster.client().get(namespace).expect(200)["metadata"]["resourceVersion"]
    patch(cluster, certificates(solver="http01"))
    cluster.wait_until("the controllers run again", lambda: Tenants(cluster).create_with_namespace())
    found = cluster.client().get(namespace).expect(200)["metadata"]
    assert found["labels"]["namespace.cozystack.io/host"] == "package.example"
    assert found["resourceVersion"] == version, "the namespace of the root was written"

"""The Helm chart: its templates are generated, its values are those of the schema, and what a real Helm renders equals
what kustomize builds, object by object."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.tenant.cluster_roles import TENANT_ROLES
from tenant_apiserver import generate_chart
from tenant_apiserver.options.flag_values import CONTROLLERS, controllers
from tests.e2e.support.helm import run_helm_alone
from tests.tenant_apiserver.test_generate_manifests import ROOT, built

CHART = ROOT / "chart"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.load((CHART / "values.yaml").read_text(), Loader=yaml.CSafeLoader)
KEEP = "helm.sh/resource-policy"
DIGEST = f"sha256:{'0' * 64}"
SAME_OBJECTS = {
    "defaults": ([], [".", "overlays/prerequisites"], {"Namespace"}),
    "a namespace": (["prerequisites.namespace=true"], [".", "overlays/prerequisites"], set()),
    "registered": (
        ['registration="register"'],
        [".", "overlays/prerequisites", "overlays/register"],
        {"Namespace"},
    ),
    "cert-manager": (
        ['registration="cert-manager"'],
        ["overlays/cert-manager", "overlays/prerequisites", "overlays/register-cert-manager"],
        {"Namespace"},
    ),
    "optional parts": (
        [
            *("policies.ingresses=true", "policies.deletionGuard=true", "tenantLists=true", "tenantRoutes=true"),
            *("monitoring.enabled=true", "tenantsecrets=true", "networkPolicy=true", "prerequisites.crd=false"),
        ],
        [
            *(".", "components/ingress-hostnames", "components/deletion-guard", "components/tenantsecrets"),
            *(
                "overlays/cozy-tenant-lists",
                "overlays/cozy-tenant-routes",
                "overlays/network-policy",
                "components/monitoring",
            ),
        ],
        set(),
    ),
    "values-shadow.yaml": (["values-shadow.yaml"], ["overlays/shadow"], set()),
    "the proxy beside the server": (
        ["proxy.enabled=true", "proxy.clusterKinds=true", "prerequisites.namespace=true"],
        [".", "overlays/prerequisites", "overlays/proxy", "overlays/proxy-cluster-kinds"],
        set(),
    ),
    "values-live.yaml": (["values-live.yaml"], ["overlays/live"], set()),
    "values-plain.yaml": (["values-plain.yaml", "prerequisites.crd=false"], ["overlays/plain"], set()),
}
"""Values of the chart, the kustomizations that have the same objects, and the kinds that only these have."""
EFFECTS: Mapping[str, tuple[Any, Any, str]] = {
    "server": (False, 1, "!name: tenant-apiserver\n"),
    "shadow": (True, 1, "name: tenant-apiserver-shadow"),
    "proxy.enabled": (True, 1, "name: tenant-apiserver:proxy"),
    "proxy.replicas": (3, -1, "replicas: 3"),
    "proxy.config": ({"namespacedKinds": ["widgets.example.org"]}, [], "- widgets.example.org"),
    "proxy.clusterKinds": (True, 1, "name: tenant-apiserver:proxy-cluster-kinds"),
    "image.repository": ("registry.example.org/server", "", "image: registry.example.org/server:"),
    "image.tag": ("1.2.3", 1, "image: tenant-apiserver:1.2.3"),
    "image.digest": (DIGEST, "sha256:short", f"image: tenant-apiserver@{DIGEST}"),
    "image.pullPolicy": ("Always", "Sometimes", "imagePullPolicy: Always"),
    "imagePullSecrets": ([{"name": "pull"}], [{"nam": "pull"}], "imagePullSecrets:\n- name: pull"),
    "replicas": (3, -1, "replicas: 3"),
    "resources": ({"limits": {"memory": "1Gi"}}, {"limit": {}}, "memory: 1Gi"),
    "nodeSelector": ({"disk": "ssd"}, {"disk": 1}, "disk: ssd"),
    "tolerations": ([{"operator": "Exists"}], ["all"], "operator: Exists"),
    "rootHost": ("example.com", "", "value: example.com"),
    "controllers": ("tenant,root-tenant", "tenants", "--controllers=tenant,root-tenant"),
    "extraArgs": (["--max-requests-inflight=10"], ["serve"], "--max-requests-inflight=10"),
    "settings": ({"publishing": {"host": "example.com"}}, [], "name: tenant-apiserver-platform"),
    "registration": ("register", "yes", "kind: APIService"),
    "prerequisites.namespace": (True, "true", "kind: Namespace\n"),
    "prerequisites.crd": (False, 1, "!kind: CustomResourceDefinition"),
    "policies.hostnames": (False, 1, "!cozystack-tenant-host-policy"),
    "policies.ingresses": (True, 1, "cozystack-ingress-hostname-policy"),
    "policies.deletionGuard": (True, 1, "cozystack-helmrelease-deletion-policy"),
    "tenantRoles": (False, 1, "!name: cozy:tenant:admin"),
    "tenantsVisible": (False, 1, "!cozy:tenants:visible"),
    "tenantLists": (True, 1, "tenantmodules"),
    "tenantRoutes": (True, 1, "cozy:tenant:routes"),
    "tenantsecrets": (True, 1, "name: tenant-apiserver:tenantsecrets"),
    "monitoring.enabled": (True, 1, "kind: ServiceMonitor"),
    "monitoring.namespace": ("prometheus", "", "name: system:serviceaccounts:prometheus"),
    "networkPolicy": (True, 1, "kind: NetworkPolicy"),
}
"""For each value of the schema: one that has an effect, one that the schema rejects, and a part of what is rendered
with the first, or of what is not rendered any more, after an exclamation mark."""

NEEDED = {
    "monitoring.namespace": ["monitoring.enabled=true"],
    "proxy.replicas": ["proxy.enabled=true"],
    "proxy.config": ["proxy.enabled=true"],
}
"""Other values, without which a value has no effect."""


def template(folder: Path, *values: str) -> subprocess.CompletedProcess[str]:
    """Runs `helm template` with files of the chart, and values as `path=JSON`."""
    flags = [f"--values={CHART / each}" for each in values if "=" not in each]
    for number, (path, text) in enumerate(each.split("=", 1) for each in values if "=" in each):
        nested: Any = json.loads(text)
        for key in reversed(path.split(".")):
            nested = {key: nested}
        file = folder / f"{number}.json"
        file.write_text(json.dumps(nested))
        flags.append(f"--values={file}")
    # a Helm that `go install` has built knows no version of Kubernetes
    flags.append("--kube-version=1.36")
    return run_helm_alone(folder, "template", "tenant-apiserver", CHART, "--namespace=cozy-system", *flags)


def rendered(folder: Path, *values: str) -> list[dict[str, Any]]:
    done = template(folder, *values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if each]


def by_identity(objects: Sequence[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The objects as they are compared: without the mark for Helm, settings parsed, and lists with names sorted."""
    found = {}
    for each in objects:
        metadata = each["metadata"]
        annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != KEEP}
        metadata = {key: value for key, value in metadata.items() if key != "annotations"}
        each = {**each, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
        if each["kind"] == "ConfigMap":
            each["data"] = {key: yaml.load(value, Loader=yaml.CSafeLoader) for key, value in each["data"].items()}
        if each["kind"] == "Deployment":
            pod = each["spec"]["template"]["spec"]
            for owner, key in ((pod, "volumes"), (pod["containers"][0], "volumeMounts"), (pod["containers"][0], "env")):
                if key in owner:
                    owner[key].sort(key=lambda item: item["name"])
        found[each["kind"], metadata.get("namespace", ""), metadata["name"]] = each
    assert len(found) == len(objects), "an object is there twice"
    return found


def leaves(schema: Mapping[str, Any] = SCHEMA, prefix: str = "") -> set[str]:
    """The paths of the values that the schema has."""
    found: set[str] = set()
    for key, each in schema["properties"].items():
        nested = "properties" in each and key != "resources"
        found |= leaves(each, f"{prefix}{key}.") if nested else {prefix + key}
    return found - {"global"}


def default_of(path: str) -> Any:
    value = DEFAULTS
    for key in path.split("."):
        value = value[key]
    return value


@pytest.fixture(scope="module")
def texts() -> Mapping[str, str]:
    return generate_chart.generate_chart(ROOT)


def test_the_generated_files_are_up_to_date(texts: Mapping[str, str]) -> None:
    assert {path: (CHART / path).read_text() for path in texts} == texts, "run make manifests"
    hand_written = {"templates/NOTES.txt"}
    files = {str(path.relative_to(CHART)) for path in (CHART / "templates").iterdir()}
    assert files == {path for path in texts if path.startswith("templates/")} | hand_written


def test_generating_writes_every_file_and_removes_old_ones(texts: Mapping[str, str], tmp_path: Path) -> None:
    for name in ("base", "policies", "overlays", "components"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "chart" / "templates").mkdir(parents=True)
    (tmp_path / "chart" / "templates" / "former.yaml").touch()
    assert generate_chart.main([str(tmp_path)]) == 0
    assert {path: (tmp_path / "chart" / path).read_text() for path in texts} == texts
    assert not (tmp_path / "chart" / "templates" / "former.yaml").exists()


def test_a_folder_without_a_chart_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate_chart.main([str(tmp_path)]) == 2
    assert "usage:" in capsys.readouterr().err


def test_every_value_has_a_default_and_a_test_of_its_effect() -> None:
    assert {path for path in leaves() if default_of(path) is not None} == leaves() == set(EFFECTS)


def test_the_schema_accepts_the_controllers_that_the_flag_accepts() -> None:
    assert "(" + "|".join(CONTROLLERS) + ")" in SCHEMA["properties"]["controllers"]["pattern"]
    assert controllers(EFFECTS["controllers"][0])


def test_helm_lint_has_no_complaint(tmp_path: Path) -> None:
    done = run_helm_alone(tmp_path, "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout


@pytest.mark.parametrize("name", SAME_OBJECTS)
def test_the_chart_has_the_objects_of_kustomize(name: str, tmp_path: Path) -> None:
    values, directories, left_out = SAME_OBJECTS[name]
    expected = by_identity([each for directory in directories for each in built(directory)])
    expected = {key: each for key, each in expected.items() if key[0] not in left_out}
    found = by_identity(rendered(tmp_path, *values))
    assert set(found) == set(expected)
    for key, each in expected.items():
        assert found[key] == each


@pytest.mark.parametrize("path", EFFECTS)
def test_each_value_has_its_effect_and_the_schema_rejects_others(path: str, tmp_path: Path) -> None:
    good, bad, part = EFFECTS[path]
    objects = rendered(tmp_path, *NEEDED.get(path, ()), f"{path}={json.dumps(good)}")
    text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper, width=1000)
    expected = "\n".join(line.strip() for line in part.removeprefix("!").split("\n"))
    plain = "\n".join(line.strip() for line in text.split("\n"))
    assert (expected in plain) == (not part.startswith("!"))
    rejected = template(tmp_path, f"{path}={json.dumps(bad)}")
    assert rejected.returncode != 0
    assert path.rpartition(".")[2] in rejected.stderr
    assert "schema" in rejected.stderr


@pytest.mark.parametrize("key", ["replica", "image.repo", "policies.all"])
def test_an_unknown_value_is_rejected(key: str, tmp_path: Path) -> None:
    rejected = template(tmp_path, f"{key}=1")
    assert rejected.returncode != 0
    assert "additional properties" in rejected.stderr


_ON = ["server", "registration", "controllers", "rootHost", "tenantRoles", "tenantsVisible"]
_GROUPS = ["image", "prerequisites", "prerequisites.crd", "policies", "policies.hostnames", "monitoring", "proxy"]


@pytest.mark.parametrize("path", [*_ON, *_GROUPS, "monitoring.enabled", "monitoring.namespace", "proxy.replicas"])
def test_a_null_neither_turns_off_what_is_on_nor_ends_in_an_error_of_a_template(path: str, tmp_path: Path) -> None:
    """Helm takes null for a value that is to be removed, whatever its default."""
    rejected = template(tmp_path, f"{path}=null")
    assert rejected.returncode != 0
    assert f"missing property '{path.rpartition('.')[2]}'" in rejected.stderr


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("image.tag", "1.0\n"),
        ("image.tag", "a" * 129),
        ("monitoring.namespace", "a" * 64),
        ("monitoring.namespace", "Monitoring"),
        ("rootHost", "example.org/path"),
        ("rootHost", "$(HOME)"),
        ("rootHost", "a" * 255),
    ],
)
def test_a_name_that_kubernetes_would_refuse_is_refused_before_anything_is_written(
    path: str, value: str, tmp_path: Path
) -> None:
    rejected = template(tmp_path, f"{path}={json.dumps(value)}")
    assert rejected.returncode != 0
    assert "schema" in rejected.stderr


def test_settings_of_the_proxy_have_a_name_of_their_own_so_that_a_change_restarts_it(tmp_path: Path) -> None:
    names = set()
    for kind in ("pods", "secrets"):
        objects = rendered(tmp_path, "proxy.enabled=true", f'proxy.config={{"namespacedKinds": ["{kind}"]}}')
        [settings] = [each for each in objects if each["kind"] == "ConfigMap"]
        [deployment] = [
            each
            for each in objects
            if each["metadata"]["name"] == "tenant-apiserver-proxy" and each["kind"] == "Deployment"
        ]
        assert yaml.load(settings["data"]["config.yaml"], Loader=yaml.CSafeLoader) == {"namespacedKinds": [kind]}
        used = [
            each["configMap"]["name"]
            for each in deployment["spec"]["template"]["spec"]["volumes"]
            if "configMap" in each
        ]
        assert used == [settings["metadata"]["name"]]
        names.update(used)
    assert len(names) == 2


def test_every_deployment_has_the_image_and_the_nodes_of_the_values(tmp_path: Path) -> None:
    values = ['image.repository="example.org/a"', 'image.tag="1"', 'nodeSelector={"disk": "ssd"}', "shadow=true"]
    objects = rendered(tmp_path, *values, "proxy.enabled=true")
    pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"]
    assert [each["containers"][0]["image"] for each in pods] == ["example.org/a:1"] * 3
    assert [each["nodeSelector"] for each in pods] == [{"disk": "ssd"}] * 3


def test_prometheus_gets_the_right_and_the_ca_that_fit_the_values(tmp_path: Path) -> None:
    for mode, secret in (("register", "tenant-apiserver-serving-cert"), ("cert-manager", "tenant-apiserver-tls")):
        values = ("monitoring.enabled=true", 'monitoring.namespace="metrics"', f'registration="{mode}"')
        objects = by_identity(rendered(tmp_path, *values))
        [endpoint] = objects["ServiceMonitor", "cozy-system", "tenant-apiserver"]["spec"]["endpoints"]
        assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": secret, "key": "ca.crt"}
        [subject] = objects["ClusterRoleBinding", "", "tenant-apiserver:metrics"]["subjects"]
        assert subject["name"] == "system:serviceaccounts:metrics"


def test_what_others_may_use_is_kept_when_the_release_goes(tmp_path: Path) -> None:
    objects = rendered(tmp_path, "prerequisites.namespace=true", 'registration="register"', "tenantsecrets=true")
    kept = {
        (each["kind"], each["metadata"]["name"])
        for each in objects
        if each["metadata"].get("annotations", {}).get(KEEP) == "keep"
    }
    assert kept == {
        ("Namespace", "cozy-system"),
        ("CustomResourceDefinition", "tenantgateways.gateway.cozystack.io"),
        *(("ClusterRole", name) for name in TENANT_ROLES),
    }

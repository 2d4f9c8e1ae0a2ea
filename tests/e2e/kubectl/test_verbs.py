"""Every verb of kubectl that works on Tenants, with the real kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from registry.tenant.types import tenant_resource
from tests.e2e.support.clusters.cluster import KUBECTL_PATIENCE, ROOT, E2eCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.tenants import Tenants, manifest

IN_ROOT = f"--namespace={ROOT}"


def as_yaml(name: str, **changes: object) -> str:
    return yaml.safe_dump({**manifest(name), **changes})


def test_create_and_get(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    created = cluster.kubectl("create", "-f", "-", input=as_yaml(name)).stdout
    assert created == f"tenant.apps.cozystack.io/{name} created\n"
    shown = json.loads(cluster.kubectl("get", "tenant", name, IN_ROOT, "-o", "json").stdout)
    assert shown["status"]["namespace"] == f"tenant-{name}"
    assert shown["spec"]["etcd"] is False


def test_the_default_table(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    header, row = cluster.kubectl("get", "tenants", name, IN_ROOT).stdout.splitlines()
    assert header.split() == ["NAME", "READY", "NAMESPACE", "HOST", "GATEWAY", "AGE"]
    assert row.split()[0] == name
    assert f"tenant-{name}" in row.split()


def test_the_wide_table_has_services_version_and_quota(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    header = cluster.kubectl("get", "tenants", name, IN_ROOT, "-o", "wide").stdout.splitlines()[0].split()
    assert header[:5] == ["NAME", "READY", "NAMESPACE", "HOST", "GATEWAY"]
    assert header[5:9] == ["AGE", "SERVICES", "VERSION", "QUOTA"]
    assert header[6:] == [column.name.upper() for column in tenant_resource().columns if column.priority]


def test_all_namespaces(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    rows = [line.split()[:2] for line in cluster.kubectl("get", "tenants", "-A", "--no-headers").stdout.splitlines()]
    assert [ROOT, name] in rows
    assert [ROOT, "root"] in rows


def test_get_watch_shows_changes(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    follower = cluster.start_kubectl("get", "tenants", IN_ROOT, "-l", f"e2e={unique}", "-o", "name", "-w")
    try:
        name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
        wait_until("kubectl shows the new tenant", lambda: name in follower.log(), processes=[follower])
        tenants.patch(name, {"spec": {"etcd": True}})
        wait_until("kubectl shows the change", lambda: follower.log().count(name) >= 2, processes=[follower])
    finally:
        follower.stop()


def test_apply_twice_changes_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    text = as_yaml(tenants.new_name())
    assert "created" in cluster.kubectl("apply", "-f", "-", input=text).stdout
    assert "unchanged" in cluster.kubectl("apply", "-f", "-", input=text).stdout


def test_apply_removes_fields_that_left_the_configuration(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    cluster.kubectl("apply", "-f", "-", input=as_yaml(name, spec={"monitoring": True, "etcd": True}))
    cluster.kubectl("apply", "-f", "-", input=as_yaml(name, spec={"etcd": True}))
    spec = tenants.get(name)["spec"]
    assert (spec["etcd"], spec["monitoring"]) == (True, False)


def test_server_side_apply_creates_and_updates(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    for flag in (False, True):
        text = as_yaml(name, spec={"etcd": flag})
        done = cluster.kubectl("apply", "--server-side", "-f", "-", input=text)
        assert done.stdout == f"tenant.apps.cozystack.io/{name} serverside-applied\n"
    assert tenants.get(name)["spec"]["etcd"] is True


def test_server_side_apply_reports_conflicts_and_force_resolves_them(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    cluster.kubectl(
        "apply", "--server-side", "--field-manager=first", "-f", "-", input=as_yaml(name, spec={"etcd": True})
    )
    other = as_yaml(name, spec={"etcd": False})
    second = ["apply", "--server-side", "--field-manager=second", "-f", "-"]
    rejected = cluster.kubectl(*second, input=other, status=1)
    assert 'conflict with "first"' in rejected.stderr
    assert ".spec.etcd" in rejected.stderr
    cluster.kubectl(*second, "--force-conflicts", input=other)
    assert tenants.get(name)["spec"]["etcd"] is False


@pytest.mark.parametrize("server_side", ["--server-side=false", "--server-side=true"])
def test_diff_shows_what_apply_would_change(cluster: E2eCluster, tenants: Tenants, server_side: str) -> None:
    name = tenants.new_name()
    cluster.kubectl("apply", server_side, "-f", "-", input=as_yaml(name, spec={"etcd": False}))
    # a status that is written between the two reads of kubectl would show up as a difference
    tenants.wait_until_settled(name)
    same = cluster.kubectl("diff", server_side, "-f", "-", input=as_yaml(name, spec={"etcd": False}))
    assert same.stdout == ""
    changed = cluster.kubectl("diff", server_side, "-f", "-", input=as_yaml(name, spec={"etcd": True}), status=1)
    assert "-  etcd: false" in changed.stdout
    assert "+  etcd: true" in changed.stdout
    assert tenants.get(name)["spec"]["etcd"] is False


def test_edit_saves_what_the_editor_wrote(cluster: E2eCluster, tenants: Tenants, tmp_path: Path) -> None:
    name = tenants.create()["metadata"]["name"]
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/etcd: false/etcd: true/" "$1"\n')
    editor.chmod(0o755)
    cluster.kubectl("edit", "tenant", name, IN_ROOT, environment={"EDITOR": str(editor), "KUBE_EDITOR": str(editor)})
    assert tenants.get(name)["spec"]["etcd"] is True


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", '{"spec": {"etcd": true}}', id="merge patch"),
        pytest.param("json", '[{"op": "replace", "path": "/spec/etcd", "value": true}]', id="JSON patch"),
    ],
)
def test_patch(cluster: E2eCluster, tenants: Tenants, kind: str, patch: str) -> None:
    name = tenants.create()["metadata"]["name"]
    cluster.kubectl("patch", "tenant", name, IN_ROOT, f"--type={kind}", f"--patch={patch}")
    assert tenants.get(name)["spec"]["etcd"] is True


def test_strategic_merge_patch_is_not_supported(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    patch = '--patch={"spec":{}}'
    rejected = cluster.kubectl("patch", "tenant", name, IN_ROOT, "--type=strategic", patch, status=1)
    assert "application/strategic-merge-patch+json is not supported" in rejected.stderr


def test_label_and_annotate(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    cluster.kubectl("label", "tenant", name, IN_ROOT, "team=blue", "example.org/tier=gold")
    cluster.kubectl("label", "tenant", name, IN_ROOT, "--overwrite", "team=red")
    cluster.kubectl("annotate", "tenant", name, IN_ROOT, "example.org/note=two words")
    metadata = tenants.get(name)["metadata"]
    assert (metadata["labels"]["team"], metadata["labels"]["example.org/tier"]) == ("red", "gold")
    assert metadata["annotations"]["example.org/note"] == "two words"
    found = cluster.kubectl("get", "tenants", "-A", "-l", "team=red,example.org/tier=gold", "-o", "name").stdout
    assert f"tenant.apps.cozystack.io/{name}" in found.split()
    cluster.kubectl("label", "tenant", name, IN_ROOT, "team-")
    assert "team" not in tenants.get(name)["metadata"]["labels"]


def test_replace_keeps_the_uid(cluster: E2eCluster, tenants: Tenants) -> None:
    created = tenants.create()
    name = created["metadata"]["name"]
    # kubectl reads the resourceVersion and sends it: a status write in between would be a conflict
    tenants.wait_until_settled(name)
    cluster.kubectl("replace", "-f", "-", input=as_yaml(name, spec={"monitoring": True}))
    replaced = tenants.get(name)
    assert replaced["spec"]["monitoring"] is True
    assert replaced["metadata"]["uid"] == created["metadata"]["uid"]


def test_delete_waits_until_it_is_gone(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    cluster.kubectl("delete", "tenant", name, IN_ROOT, KUBECTL_PATIENCE)
    assert not tenants.exists(name)
    missing = cluster.kubectl("get", "tenant", name, IN_ROOT, status=1)
    assert missing.stderr == f'Error from server (NotFound): tenants.apps.cozystack.io "{name}" not found\n'


def test_delete_by_selector(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    names = [tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(3)]
    kept = tenants.create(labels={"e2e": f"{unique}x"})["metadata"]["name"]
    cluster.kubectl("delete", "tenants", IN_ROOT, "-l", f"e2e={unique}", KUBECTL_PATIENCE)
    assert [tenants.exists(name) for name in (*names, kept)] == [False, False, False, True]


def test_wait_for_a_field_and_for_deletion(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    namespace = f"--for=jsonpath={{.status.namespace}}=tenant-{name}"
    cluster.kubectl("wait", f"tenant/{name}", IN_ROOT, namespace, KUBECTL_PATIENCE)
    cluster.kubectl("delete", "tenant", name, IN_ROOT, "--wait=false")
    cluster.kubectl("wait", f"tenant/{name}", IN_ROOT, "--for=delete", KUBECTL_PATIENCE)


def test_a_dry_run_persists_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", "-o", "json", input=as_yaml(name))
    assert json.loads(done.stdout)["status"]["namespace"] == f"tenant-{name}"
    assert not tenants.exists(name)


def test_a_dry_run_deletes_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    cluster.kubectl("delete", "tenant", name, IN_ROOT, "--dry-run=server")
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def test_validate_strict_rejects_an_unknown_field(cluster: E2eCluster, tenants: Tenants) -> None:
    text = as_yaml(tenants.new_name(), colour="red")
    rejected = cluster.kubectl("create", "--validate=strict", "-f", "-", input=text, status=1)
    assert 'strict decoding error: unknown field "colour"' in rejected.stderr


@pytest.mark.parametrize("mode", ["strict", "warn"])
def test_an_undocumented_value_is_kept_with_a_warning(cluster: E2eCluster, tenants: Tenants, mode: str) -> None:
    name = tenants.new_name()
    done = cluster.kubectl("create", f"--validate={mode}", "-f", "-", input=as_yaml(name, spec={"colour": "red"}))
    assert 'Warning: unknown field "spec.colour": it is kept, and the chart decides' in done.stderr
    assert tenants.get(name)["spec"]["colour"] == "red"


def test_validate_ignore_drops_an_unknown_field_silently(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    done = cluster.kubectl("create", "--validate=ignore", "-f", "-", input=as_yaml(name, colour="red"))
    assert done.stderr == ""
    assert "colour" not in tenants.get(name)


def test_auth_can_i_distinguishes_users(cluster: E2eCluster, unique: str) -> None:
    cluster.grant(unique, "cozy:tenant:admin", ROOT)
    command = ["auth", "can-i", "create", "tenants.apps.cozystack.io", IN_ROOT]
    assert cluster.kubectl(*command, as_user=unique).stdout == "yes\n"
    assert cluster.kubectl(*command, as_user=f"{unique}-other", status=1).stdout == "no\n"


def test_a_self_subject_access_review_distinguishes_users(cluster: E2eCluster, unique: str) -> None:
    cluster.grant(unique, "cozy:tenant:admin", ROOT)
    attributes = {"namespace": ROOT, "verb": "create", "group": "apps.cozystack.io", "resource": "tenants"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    reviews = [cluster.client(user).request("POST", path, review).expect(201) for user in (unique, f"{unique}-other")]
    assert [each["status"]["allowed"] for each in reviews] == [True, False]


def test_get_raw_shows_a_tenant(cluster: E2eCluster) -> None:
    path = "/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/tenants/root"
    assert json.loads(cluster.kubectl("get", "--raw", path).stdout)["kind"] == "Tenant"


def test_an_object_survives_a_round_trip_through_yaml(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create(spec={"resourceQuotas": {"cpu": 4, "memory": "8Gi"}})["metadata"]["name"]
    # a status that is written later would make the YAML that is read here out of date
    tenants.wait_until_settled(name)
    text = cluster.kubectl("get", "tenant", name, IN_ROOT, "-o", "yaml").stdout
    cluster.kubectl("replace", "-f", "-", input=text)
    assert tenants.get(name)["spec"]["resourceQuotas"] == {"cpu": 4, "memory": "8Gi"}


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_the_examples_are_accepted(cluster: E2eCluster, path: Path) -> None:
    cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(path))


def test_an_item_of_a_list_may_have_undocumented_fields(cluster: E2eCluster, tenants: Tenants) -> None:
    """kubectl validates the items of a List itself, by OpenAPI v2, before it sends them."""
    body = manifest(tenants.new_name(), spec={"etcd": True, "undocumented": {"deep": 1}})
    document = {"apiVersion": "v1", "kind": "List", "items": [body]}
    cluster.kubectl("create", "-f", "-", input=json.dumps(document))
    assert tenants.get(body["metadata"]["name"])["spec"]["undocumented"] == {"deep": 1}
    assert "etcd" in cluster.kubectl("explain", "tenants.spec").stdout

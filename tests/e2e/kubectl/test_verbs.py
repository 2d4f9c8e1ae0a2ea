"""Every verb of kubectl that touches a Tenant, with the real kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters import ROOT, E2eHost
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import Tenants, manifest

IN_ROOT = f"--namespace={ROOT}"


def as_yaml(name: str, **changes: object) -> str:
    return yaml.safe_dump({**manifest(name), **changes})


def test_create_and_get(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    created = host.kubectl("create", "-f", "-", input=as_yaml(name)).stdout
    assert created == f"tenant.apps.cozystack.io/{name} created\n"
    shown = json.loads(host.kubectl("get", "tenant", name, IN_ROOT, "-o", "json").stdout)
    assert shown["status"]["namespace"] == f"tenant-{name}"
    assert shown["spec"]["etcd"] is False


def test_the_default_table(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    header, row = host.kubectl("get", "tenants", name, IN_ROOT).stdout.splitlines()
    assert header.split() == ["NAME", "READY", "NAMESPACE", "HOST", "GATEWAY", "AGE"]
    assert row.split()[0] == name
    assert f"tenant-{name}" in row.split()


def test_the_wide_table_has_the_flags(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    header = host.kubectl("get", "tenants", name, IN_ROOT, "-o", "wide").stdout.splitlines()[0].split()
    assert header[:5] == ["NAME", "READY", "NAMESPACE", "HOST", "GATEWAY"]
    assert {"VERSION", "ETCD", "MONITORING", "INGRESS", "SEAWEEDFS", "AGE"} <= set(header)


def test_all_namespaces(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    rows = [line.split()[:2] for line in host.kubectl("get", "tenants", "-A", "--no-headers").stdout.splitlines()]
    assert [ROOT, name] in rows
    assert [ROOT, "root"] in rows


def test_get_follows_changes(host: E2eHost, tenants: Tenants, unique: str) -> None:
    follower = host.follow("get", "tenants", IN_ROOT, "-l", f"e2e={unique}", "-o", "name", "-w")
    try:
        name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
        wait_until("kubectl shows the new tenant", lambda: name in follower.log(), processes=[follower])
        tenants.patch(name, {"spec": {"etcd": True}})
        wait_until("kubectl shows the change", lambda: follower.log().count(name) >= 2, processes=[follower])
    finally:
        follower.stop()


def test_apply_twice_changes_nothing(host: E2eHost, tenants: Tenants) -> None:
    text = as_yaml(tenants.name())
    assert "created" in host.kubectl("apply", "-f", "-", input=text).stdout
    assert "unchanged" in host.kubectl("apply", "-f", "-", input=text).stdout


def test_apply_removes_what_it_no_longer_names(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    host.kubectl("apply", "-f", "-", input=as_yaml(name, spec={"monitoring": True, "etcd": True}))
    host.kubectl("apply", "-f", "-", input=as_yaml(name, spec={"etcd": True}))
    spec = tenants.get(name)["spec"]
    assert (spec["etcd"], spec["monitoring"]) == (True, False)


def test_server_side_apply_creates_and_updates(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    for flag in (False, True):
        text = as_yaml(name, spec={"etcd": flag})
        done = host.kubectl("apply", "--server-side", "-f", "-", input=text)
        assert done.stdout == f"tenant.apps.cozystack.io/{name} serverside-applied\n"
    assert tenants.get(name)["spec"]["etcd"] is True


def test_server_side_apply_tells_conflicts_and_force_ends_them(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    host.kubectl("apply", "--server-side", "--field-manager=first", "-f", "-", input=as_yaml(name, spec={"etcd": True}))
    other = as_yaml(name, spec={"etcd": False})
    second = ["apply", "--server-side", "--field-manager=second", "-f", "-"]
    refused = host.kubectl(*second, input=other, status=1)
    assert 'conflict with "first"' in refused.stderr
    assert ".spec.etcd" in refused.stderr
    host.kubectl(*second, "--force-conflicts", input=other)
    assert tenants.get(name)["spec"]["etcd"] is False


@pytest.mark.parametrize("server_side", ["--server-side=false", "--server-side=true"])
def test_diff_shows_what_apply_would_change(host: E2eHost, tenants: Tenants, server_side: str) -> None:
    name = tenants.name()
    host.kubectl("apply", server_side, "-f", "-", input=as_yaml(name, spec={"etcd": False}))
    # a status that is written between kubectl's two reads would be a difference
    tenants.settled(name)
    same = host.kubectl("diff", server_side, "-f", "-", input=as_yaml(name, spec={"etcd": False}))
    assert same.stdout == ""
    changed = host.kubectl("diff", server_side, "-f", "-", input=as_yaml(name, spec={"etcd": True}), status=1)
    assert "-  etcd: false" in changed.stdout
    assert "+  etcd: true" in changed.stdout
    assert tenants.get(name)["spec"]["etcd"] is False


def test_edit_saves_what_the_editor_wrote(host: E2eHost, tenants: Tenants, tmp_path: Path) -> None:
    name = tenants.create()["metadata"]["name"]
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/etcd: false/etcd: true/" "$1"\n')
    editor.chmod(0o755)
    host.kubectl("edit", "tenant", name, IN_ROOT, environment={"EDITOR": str(editor), "KUBE_EDITOR": str(editor)})
    assert tenants.get(name)["spec"]["etcd"] is True


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", '{"spec": {"etcd": true}}', id="merge patch"),
        pytest.param("json", '[{"op": "replace", "path": "/spec/etcd", "value": true}]', id="JSON patch"),
    ],
)
def test_patch(host: E2eHost, tenants: Tenants, kind: str, patch: str) -> None:
    name = tenants.create()["metadata"]["name"]
    host.kubectl("patch", "tenant", name, IN_ROOT, f"--type={kind}", f"--patch={patch}")
    assert tenants.get(name)["spec"]["etcd"] is True


def test_strategic_merge_patch_is_not_offered(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    patch = '--patch={"spec":{}}'
    refused = host.kubectl("patch", "tenant", name, IN_ROOT, "--type=strategic", patch, status=1)
    assert "application/strategic-merge-patch+json is not supported" in refused.stderr


def test_label_and_annotate(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    host.kubectl("label", "tenant", name, IN_ROOT, "team=blue", "example.org/tier=gold")
    host.kubectl("label", "tenant", name, IN_ROOT, "--overwrite", "team=red")
    host.kubectl("annotate", "tenant", name, IN_ROOT, "example.org/note=two words")
    metadata = tenants.get(name)["metadata"]
    assert (metadata["labels"]["team"], metadata["labels"]["example.org/tier"]) == ("red", "gold")
    assert metadata["annotations"]["example.org/note"] == "two words"
    found = host.kubectl("get", "tenants", "-A", "-l", "team=red,example.org/tier=gold", "-o", "name").stdout
    assert f"tenant.apps.cozystack.io/{name}" in found.split()
    host.kubectl("label", "tenant", name, IN_ROOT, "team-")
    assert "team" not in tenants.get(name)["metadata"]["labels"]


def test_replace_keeps_the_identity(host: E2eHost, tenants: Tenants) -> None:
    created = tenants.create()
    name = created["metadata"]["name"]
    host.kubectl("replace", "-f", "-", input=as_yaml(name, spec={"monitoring": True}))
    replaced = tenants.get(name)
    assert replaced["spec"]["monitoring"] is True
    assert replaced["metadata"]["uid"] == created["metadata"]["uid"]


def test_delete_waits_until_it_is_gone(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    host.kubectl("delete", "tenant", name, IN_ROOT, "--timeout=60s")
    assert not tenants.exists(name)
    missing = host.kubectl("get", "tenant", name, IN_ROOT, status=1)
    assert missing.stderr == f'Error from server (NotFound): tenants.apps.cozystack.io "{name}" not found\n'


def test_delete_by_selector(host: E2eHost, tenants: Tenants, unique: str) -> None:
    names = [tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(3)]
    kept = tenants.create(labels={"e2e": f"{unique}x"})["metadata"]["name"]
    host.kubectl("delete", "tenants", IN_ROOT, "-l", f"e2e={unique}", "--timeout=60s")
    assert [tenants.exists(name) for name in (*names, kept)] == [False, False, False, True]


def test_wait_for_a_field_and_for_deletion(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    namespace = f"--for=jsonpath={{.status.namespace}}=tenant-{name}"
    host.kubectl("wait", f"tenant/{name}", IN_ROOT, namespace, "--timeout=30s")
    host.kubectl("delete", "tenant", name, IN_ROOT, "--wait=false")
    host.kubectl("wait", f"tenant/{name}", IN_ROOT, "--for=delete", "--timeout=60s")


def test_a_dry_run_persists_nothing(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    done = host.kubectl("create", "--dry-run=server", "-f", "-", "-o", "json", input=as_yaml(name))
    assert json.loads(done.stdout)["status"]["namespace"] == f"tenant-{name}"
    assert not tenants.exists(name)


def test_a_dry_run_deletes_nothing(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    host.kubectl("delete", "tenant", name, IN_ROOT, "--dry-run=server")
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def test_validate_strict_refuses_an_unknown_field(host: E2eHost, tenants: Tenants) -> None:
    text = as_yaml(tenants.name(), spec={"colour": "red"})
    refused = host.kubectl("create", "--validate=strict", "-f", "-", input=text, status=1)
    assert 'strict decoding error: unknown field "spec.colour"' in refused.stderr


def test_validate_warn_tells_of_an_unknown_field_and_drops_it(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    done = host.kubectl("create", "--validate=warn", "-f", "-", input=as_yaml(name, spec={"colour": "red"}))
    assert 'Warning: unknown field "spec.colour"' in done.stderr
    assert "colour" not in tenants.get(name)["spec"]


def test_validate_ignore_says_nothing(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.name()
    done = host.kubectl("create", "--validate=ignore", "-f", "-", input=as_yaml(name, spec={"colour": "red"}))
    assert done.stderr == ""
    assert "colour" not in tenants.get(name)["spec"]


def test_auth_can_i_tells_users_apart(host: E2eHost, unique: str) -> None:
    host.grant(unique, "cozy:tenant:admin", ROOT)
    question = ["auth", "can-i", "create", "tenants.apps.cozystack.io", IN_ROOT]
    assert host.kubectl(*question, as_user=unique).stdout == "yes\n"
    assert host.kubectl(*question, as_user=f"{unique}-other", status=1).stdout == "no\n"


def test_a_review_of_one_s_own_access(host: E2eHost, unique: str) -> None:
    host.grant(unique, "cozy:tenant:admin", ROOT)
    attributes = {"namespace": ROOT, "verb": "create", "group": "apps.cozystack.io", "resource": "tenants"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    verdicts = [host.session(user).request("POST", path, review).expect(201) for user in (unique, f"{unique}-other")]
    assert [verdict["status"]["allowed"] for verdict in verdicts] == [True, False]


def test_raw_answers(host: E2eHost) -> None:
    path = "/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/tenants/root"
    assert json.loads(host.kubectl("get", "--raw", path).stdout)["kind"] == "Tenant"


def test_an_object_survives_yaml_and_back(host: E2eHost, tenants: Tenants) -> None:
    name = tenants.create(spec={"resourceQuotas": {"cpu": 4, "memory": "8Gi"}})["metadata"]["name"]
    # the status is written a moment later, and what was read before that is out of date then
    host.kubectl("wait", f"tenant/{name}", IN_ROOT, "--for=condition=Ready", "--timeout=60s")
    text = host.kubectl("get", "tenant", name, IN_ROOT, "-o", "yaml").stdout
    host.kubectl("replace", "-f", "-", input=text)
    assert tenants.get(name)["spec"]["resourceQuotas"] == {"cpu": 4, "memory": "8Gi"}


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_the_examples_are_accepted(host: E2eHost, path: Path) -> None:
    host.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(path))

"""The real kubectl calls the plugin `kubectl tenant`, as an administrator and as a person of one tenant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import KUBECTL, ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants

Run = Callable[..., subprocess.CompletedProcess[str]]
_SCRIPT = """\
#!{python}
from tenant_apiserver.kubectl_tenant.main import {entry}
{entry}()
"""


@pytest.fixture
def kubectl_tenant(cluster: E2eCluster, tmp_path: Path) -> Run:
    """Runs `kubectl tenant` with the kubeconfig of a user, by default of the administrator."""
    for name, entry in (("kubectl-tenant", "main"), ("kubectl_complete-tenant", "complete")):
        script = tmp_path / name
        script.write_text(_SCRIPT.format(python=sys.executable, entry=entry))
        script.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{KUBECTL.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "KUBECTL": str(KUBECTL),
    }

    def run(*arguments: str, user: str = "", groups: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        identity = cluster.identity(user, groups) if user else cluster.admin
        return subprocess.run(
            [str(KUBECTL), *arguments],
            env={**environment, "KUBECONFIG": str(identity.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_each_command_answers_about_a_tenant(
    cluster: E2eCluster, tenants: Tenants, unique: str, kubectl_tenant: Run
) -> None:
    tenant = tenants.create(spec={"resourceQuotas": {"requests.cpu": "4"}})["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    domain = tenants.get(tenant)["status"]["host"]["value"]

    def output(*arguments: str) -> str:
        done = kubectl_tenant("tenant", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"{tenant}   " in output("tree")
    assert domain in output("tree", tenant, "-n", ROOT, "-o", "wide")
    assert json.loads(output("tree", tenant, "-o", "json"))["items"][0]["tenant"]["metadata"]["name"] == tenant
    assert f"Tenant {ROOT}/{tenant} status.namespace: tenant-{tenant}" in output("explain", "tenant", tenant)
    assert "→ " in output("explain", "host", f"shop.{domain}")
    assert f"cozy:tenant-self:{tenant}" in output("who-can-see", tenant, "-n", ROOT)
    assert f"{ROOT}/{tenant}   requests.cpu   4" in output("quota", tenant)
    user = ("explain", "user", unique, "--tenant", tenant)
    assert output(*user).startswith(f"? by name alone, {unique} may not get tenant {ROOT}/{tenant}")
    member = output(*user, "--group", "others", "--group", f"tenant-{tenant}-view")
    assert member.startswith(f"✓ {unique} may see tenant {ROOT}/{tenant}")
    assert "about: tenant" in output("explain", "tenant", tenant, "-o", "yaml")
    hosts = kubectl_tenant("tenant", "hosts")
    # other tests of the cluster may have routes
    assert hosts.returncode == 0
    assert ("HOSTNAME" in hosts.stdout) != hosts.stderr.startswith("No route with a hostname that you may see. ")
    # a person of the tenant sees it as the top of a tree
    path, groups = tenants_path(ROOT, tenant, "explain"), (f"tenant-{tenant}-view",)
    eve = cluster.client(unique, groups)
    cluster.wait_until("eve may ask about her tenant", lambda: eve.get(path).status == 200)
    lines = kubectl_tenant("tenant", "tree", user=unique, groups=groups).stdout.splitlines()
    assert [each.split()[0] for each in lines] == ["TENANT", tenant]
    denied = kubectl_tenant("tenant", "who-can-see", tenant, user=unique, groups=groups)
    assert denied.returncode == 1
    assert "cannot list resource" in denied.stderr
    assert f"{tenant}   " in output("-n", ROOT, "tree")
    assert f"Tenant {ROOT}/{tenant}" in output("explain", "tenant", f"{ROOT}/{tenant}")
    conflict = kubectl_tenant("tenant", "tree", f"{ROOT}/{tenant}", "-n", f"tenant-{tenant}")
    assert (conflict.returncode, conflict.stdout) == (2, "")
    for command in (("explain", "tenant"), ("tree",), ("quota",)):
        missing = kubectl_tenant("tenant", *command, f"no{unique}")
        assert (missing.returncode, missing.stdout) == (1, "")
        assert "kubectl tenant tree -A" in missing.stderr
    for command in (("hosts",), ("tree",), ("quota",)):
        missing = kubectl_tenant("tenant", *command, "-n", f"no{unique}")
        assert (missing.returncode, missing.stdout) == (1, "")
        assert f"namespace no{unique} is of no tenant that you may see; kubectl tenant tree -A" in missing.stderr
    for subject in (("explain", "tenant"), ("who-can-see",)):
        missing = kubectl_tenant("tenant", *subject, tenant, "-n", f"tenant-{tenant}")
        assert (missing.returncode, missing.stdout) == (1, "")
        assert f"no tenant {tenant} that you may see in namespace tenant-{tenant};" in missing.stderr
    unknown_use = kubectl_tenant("tenant", "quota", user=unique, groups=groups)
    assert (unknown_use.returncode, unknown_use.stderr) == (0, "")
    assert kubectl_tenant("tenant", "tree", "--context", "missing").returncode == 1
    completed = kubectl_tenant("__complete", "tenant", "tree", tenant[:3]).stdout
    assert tenant in completed


def test_a_user_who_sees_no_tenant_is_told_which_right_to_ask_for(unique: str, kubectl_tenant: Run) -> None:
    for command in (("tree",), ("quota",), ("hosts",), ("-n", ROOT, "tree", "-A")):
        done = kubectl_tenant("tenant", *command, user=unique)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("No tenant that you may see. Ask an administrator for a Role such as")
        assert "create" not in done.stderr
    for failing in (("explain", "host", "x.example.org"), ("who-can-see", "root"), ("tree", f"{ROOT}/root")):
        done = kubectl_tenant("tenant", *failing, user=unique)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: no tenant that you may see; ask an administrator for a Role such as")


def test_advice_is_for_those_who_may_follow_it(
    cluster: E2eCluster, tenants: Tenants, unique: str, kubectl_tenant: Run
) -> None:
    tenant = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    assert f"kubectl patch tenant {tenant} -n {ROOT}" in kubectl_tenant("tenant", "quota", f"{ROOT}/{tenant}").stderr
    assert f'"namespace": "tenant-{tenant}"' in kubectl_tenant("tenant", "tree", "-n", f"tenant-{tenant}").stderr
    groups = (f"tenant-{tenant}-view",)
    eve = cluster.client(unique, groups)
    cluster.wait_until("eve sees her tenant", lambda: eve.get(tenants_path(ROOT, tenant)).status == 200)
    quota = kubectl_tenant("tenant", "quota", user=unique, groups=groups)
    assert quota.stderr == (
        f"{ROOT}/{tenant} declares no quota. An administrator of namespace {ROOT} can set spec.resourceQuotas.\n"
    )
    below = kubectl_tenant("tenant", "tree", "-n", f"tenant-{tenant}", user=unique, groups=groups)
    assert below.stderr == f"No tenant that you may see is in namespace tenant-{tenant}.\n"
    # the check that the advice names: for all names in the namespace the answer is no
    assert kubectl_tenant(
        "auth", "can-i", "get", f"tenants/{tenant}", "-n", ROOT, user=unique, groups=groups
    ).stdout == ("yes\n")


def test_kubectl_completes_flags_and_their_values(
    cluster: E2eCluster, tenants: Tenants, unique: str, kubectl_tenant: Run
) -> None:
    tenant = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(tenant)

    def completed(*words: str, user: str = "") -> list[str]:
        """Without the directive, which is the last line."""
        return kubectl_tenant("__completeNoDesc", "tenant", *words, user=user).stdout.splitlines()[:-1]

    assert completed("tree", "--con") == ["--context"]
    assert completed("tree", "-o", "") == ["wide", "json", "yaml"]
    assert {ROOT, f"tenant-{tenant}"} <= set(completed("tree", "-n", ""))
    contexts = kubectl_tenant("config", "get-contexts", "-o", "name").stdout.splitlines()
    assert contexts
    assert completed("tree", "--context", "") == contexts
    assert completed("quota", f"{ROOT}/{tenant}") == [f"{ROOT}/{tenant}"]
    assert completed("tree", tenant, user=unique) == []


def test_the_rest_of_a_quota_is_what_a_child_may_declare(
    cluster: E2eCluster, tenants: Tenants, unique: str, kubectl_tenant: Run
) -> None:
    """Of every spelling of a resource, with the platform's allocation ratios."""
    place = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "40", "requests.cpu": "3", "services": "9"}})
    parent = place.removeprefix("tenant-")
    declared: tuple[dict[str, str], ...] = ({"cpu": "16"}, {}, {"count/services": "2", "limits.cpu": "5"})
    names = [tenants.create(place, spec={"resourceQuotas": quotas})["metadata"]["name"] for quotas in declared]
    below = tenants.wait_until_settled(names[1], place)["status"]["namespace"]
    tenants.create(below, spec={"resourceQuotas": {"requests.cpu": "200m"}})

    def left(*arguments: str, **user: Any) -> dict[str, str]:
        done = kubectl_tenant("tenant", "quota", parent, "-o", "json", *arguments, **user)
        assert (done.returncode, done.stderr) == (0, "")
        return {each["resource"]: each["left"] for each in json.loads(done.stdout)["items"]}

    def accepts(key: str, amount: str) -> bool:
        wanted = {"metadata": {"name": "other"}, "spec": {"resourceQuotas": {key: amount}}}
        answer = cluster.client().request("POST", f"{tenants_path(place)}?dryRun=All", wanted)
        assert answer.status in (201, 422), answer.content
        return answer.status == 201

    # 1600m and 200m of 3 are declared; 21 of 40, of which 12 are a tenth of what is left
    assert left() == {"cpu": "12", "requests.cpu": "1200m", "services": "7"}
    for key, amount, more in (("cpu", "12", "12010m"), ("requests.cpu", "1200m", "1201m"), ("services", "7", "8")):
        assert (accepts(key, amount), accepts(key, more)) == (True, False), key
    tree = kubectl_tenant("tenant", "tree", parent).stdout
    assert " cpu 12 left" in tree
    # a person of the tenant sees the same, and is told why by the server
    groups = (f"{place}-view",)
    path = tenants_path(ROOT, parent, "explain")
    eve = cluster.client(unique, groups)
    cluster.wait_until("eve may ask about her tenant", lambda: eve.get(path).status == 200)
    cluster.wait_until("eve sees all below", lambda: left(user=unique, groups=groups) == left())
    cluster.wait_until(
        "eve is told of all below",
        lambda: "the children that you may see declare 1800m" in str(eve.get(path).json()),
    )
    assert eve.get(path).expect(200)["allocationRatios"] == {"cpu": "10", "memory": "1", "ephemeralStorage": "40"}


def _manifest(path: Path, name: str, spec: Mapping[str, object]) -> str:
    document = {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name, "namespace": ROOT},
        "spec": spec,
    }
    path.write_text(json.dumps(document))
    return str(path)


def test_diff_shows_what_the_controllers_would_change(
    cluster: E2eCluster, tenants: Tenants, unique: str, tmp_path: Path, kubectl_tenant: Run
) -> None:
    tenant = tenants.create(spec={"resourceQuotas": {"requests.cpu": "4"}})["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    namespace = f"tenant-{tenant}"

    def diff(*arguments: str, user: str = "", groups: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return kubectl_tenant("tenant", "diff", tenant, *arguments, user=user, groups=groups)

    def settled() -> bool:
        done = diff("-n", ROOT)
        said = f"Nothing differs: the controllers would change nothing for tenant {ROOT}/{tenant}.\n"
        return (done.returncode, done.stdout, done.stderr) == (0, "", said)

    cluster.wait_until("nothing is left to change", settled)
    quota = _manifest(tmp_path / "quota.json", tenant, {"resourceQuotas": {"requests.cpu": "8"}})
    changed = diff("-f", quota)
    assert (changed.returncode, changed.stderr) == (1, "")
    assert f"+++ PLANNED/v1.ResourceQuota.{namespace}.tenant-quota" in changed.stdout
    assert "-    requests.cpu: '4'\n+    requests.cpu: '8'" in changed.stdout
    host = _manifest(tmp_path / "host.json", tenant, {"host": f"{unique}.example.com"})
    changed = diff("-f", host)
    assert f"+    namespace.cozystack.io/host: {unique}.example.com" in changed.stdout
    assert "values.yaml: '*** (after)'" in changed.stdout
    document = json.loads(diff("-f", host, "-o", "json").stdout)
    assert document["kind"] == "TenantDiff"
    kinds = {each["object"]["kind"] for each in document["status"]["changes"]}
    assert kinds >= {"Tenant", "HelmRelease", "Namespace", "Secret"}
    # nothing was written
    assert "host" not in str(tenants.get(tenant)["spec"].get("host") or "")
    cluster.wait_until("nothing is left to change", settled)
    refused = diff("-f", _manifest(tmp_path / "wrong.json", tenant, {"resourceQuotas": {"cpu": "many"}}))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "spec.resourceQuotas[cpu]" in refused.stderr
    other = diff("-f", _manifest(tmp_path / "other.json", f"{tenant}x", {}))
    assert other.returncode == 2
    assert f"the tenants in it: {tenant}x" in other.stderr
    misspelt = diff("-f", _manifest(tmp_path / "misspelt.json", tenant, {"resourceQuota": {"cpu": "1"}}))
    assert misspelt.stderr.count("did you mean") == 1
    missing = kubectl_tenant("tenant", "diff", f"no{unique}")
    assert (missing.returncode, missing.stdout) == (2, "")
    # a person of the tenant may ask about it as it is, and may not change it
    path, groups = tenants_path(ROOT, tenant, "diff"), (f"{namespace}-view",)
    eve = cluster.client(unique, groups)
    cluster.wait_until("eve may ask about her tenant", lambda: eve.get(path).status == 200)
    assert diff(user=unique, groups=groups).returncode == 0
    assert eve.request("POST", path, {"spec": {"tenant": tenants.get(tenant)}}).status == 403
    denied = diff("-f", quota, user=unique, groups=groups)
    assert (denied.returncode, denied.stdout) == (2, "")
    assert denied.stderr.startswith(f'Error from server (Forbidden): tenants.apps.cozystack.io "{tenant}" is forbidden')
    assert denied.stderr.endswith("; diff -f writes nothing, and needs the right to\n")
    assert denied.stderr.count("\n") == 1


def test_diff_plans_the_values_of_a_new_tenant_as_they_are_then_stored(
    cluster: E2eCluster, tenants: Tenants, tmp_path: Path, kubectl_tenant: Run
) -> None:
    for spec in ({"resourceQuotas": {"requests.cpu": "4"}, "etcd": False}, {}):
        name = tenants.new_name()
        file = _manifest(tmp_path / "new.json", name, spec)
        answer = json.loads(kubectl_tenant("tenant", "diff", name, "-f", file, "-o", "json").stdout)
        after = {each["object"]["kind"]: each["after"] for each in answer["status"]["changes"]}
        assert after["Tenant"]["spec"]["host"] == "", "a Tenant is shown with its defaults"
        assert kubectl_tenant("apply", "-f", file).returncode == 0
        path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
        stored = cluster.client().get(path).expect(200)
        assert after["HelmRelease"]["spec"] == stored["spec"]
        assert stored["spec"]["values"] == spec


def test_diff_counts_the_objects_that_the_user_may_not_see(
    cluster: E2eCluster, tenants: Tenants, unique: str, tmp_path: Path, kubectl_tenant: Run
) -> None:
    """An administrator of the parent may change the tenant, and get its quotas; no Secret, no HelmRelease."""
    parent = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(parent)
    place = f"tenant-{parent}"
    tenant = tenants.create(namespace=place)["metadata"]["name"]
    tenants.wait_until_settled(tenant, place)
    groups = (f"{place}-admin",)
    path = tenants_path(place, tenant, "diff")
    admin = cluster.client(unique, groups)
    cluster.wait_until("the administrator may ask", lambda: admin.get(path).status == 200)
    spec = {"etcd": True, "resourceQuotas": {"requests.cpu": "1"}}
    sent = {**tenants.get(tenant, place), "spec": spec}
    everything = cluster.client().request("POST", path, {"spec": {"tenant": sent}}).expect(201)["status"]
    some = admin.request("POST", path, {"spec": {"tenant": sent}}).expect(201)["status"]
    assert everything["hidden"] == 0
    assert some["hidden"] == len(everything["changes"]) - len(some["changes"])
    kinds = {each["object"]["kind"] for each in some["changes"]}
    assert kinds >= {"Tenant", "ResourceQuota", "LimitRange"}
    assert not kinds & {"Secret", "HelmRelease"}
    for wrong in (
        {"metadata": {"name": tenant}},
        {**sent, "metadata": {"name": "x"}},
        {**sent, "kind": "Pod"},
        3,
        None,
    ):
        assert admin.request("POST", path, {"spec": {"tenant": wrong}}).status == 400
    assert admin.request("POST", path, {"spec": {"tenant": {**sent, "spec": 3}}}).status == 422


def test_a_plan_is_refused_as_its_write_would_be(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Otherwise the number of hidden changes would tell which hostnames the tenants have that nobody may see."""
    parent = tenants.create(spec={"resourceQuotas": {"requests.cpu": "2"}})["metadata"]["name"]
    tenants.wait_until_settled(parent)
    place = f"tenant-{parent}"
    tenant = tenants.create(namespace=place)["metadata"]["name"]
    tenants.wait_until_settled(tenant, place)
    stored = tenants.get(tenant, place)
    # the controllers may change the tenant meanwhile
    del stored["metadata"]["resourceVersion"]
    admin = cluster.client(unique, (f"{place}-admin",))
    path = tenants_path(place, tenant, "diff")
    cluster.wait_until("the administrator may ask", lambda: admin.get(path).status == 200)
    for spec in (
        {"host": f"{unique}.example.com"},
        {"resourceQuotas": {"requests.cpu": "3"}},
        {"resourceQuotas": {"cpu": "many"}},
    ):
        for name, before in ((tenant, stored), ("new", {**stored, "metadata": {"name": "new"}})):
            wanted = {**before, "spec": spec}
            collection = tenants_path(place) if name == "new" else tenants_path(place, name)
            write = admin.request("POST" if name == "new" else "PUT", f"{collection}?dryRun=All", wanted)
            plan = admin.request("POST", tenants_path(place, name, "diff"), {"spec": {"tenant": wanted}})
            assert plan.status == write.status >= 400
            assert plan.json()["message"] == write.json()["message"]


def test_a_plan_takes_no_metadata_that_is_the_servers(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    stored = tenants.get(tenant)
    odd = {"resourceVersion": "x", "uid": "y", "deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 7}
    for name, metadata in ((tenant, {**stored["metadata"], **odd}), ("new", odd)):
        sent = {**stored, "metadata": {**metadata, "name": name}, "status": {"namespace": "kube-system"}}
        path = tenants_path(ROOT, name, "diff")
        answer = cluster.client().request("POST", path, {"spec": {"tenant": sent}}).expect(201)
        changed = [each for each in answer["status"]["changes"] if each["object"]["kind"] == "Tenant"]
        assert [each["action"] for each in changed] == (["create"] if name == "new" else [])

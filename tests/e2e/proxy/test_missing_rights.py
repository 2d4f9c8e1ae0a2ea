"""A proxy whose account lacks a right of the overlay: callers get a 503 that blames no caller, the log names the right
and what gives it, and the proxy is not ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters.cluster import RBAC
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.visibility import RbacObjects, user_subject

_ROLE = REPOSITORY / "manifests/overlays/proxy/clusterrole.yaml"
_READER = {"apiGroup": RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"}
NAMESPACES = "/api/v1/namespaces"
Start = Callable[..., TenantProxy]


@pytest.fixture
def start(kube: KubeCluster, tmp_path: Path, access: RbacObjects, unique: str) -> Iterator[Start]:
    """Starts a proxy whose account `account-of-<test>` has the rights of the overlay without these."""
    account = f"account-of-{unique}"

    def start_one(
        *, without: Sequence[str] = (), reads_ca: bool = True, flags: Sequence[str] = (), is_ready: bool = False
    ) -> TenantProxy:
        rules = yaml.load(_ROLE.read_text(), Loader=yaml.CSafeLoader)["rules"]
        kept = [_without(rule, without) for rule in rules]
        access.create("clusterroles", {"metadata": {"name": f"{unique}:proxy"}, "rules": kept})
        access.bind(f"{unique}:proxy", "", user_subject(account), f"{unique}:proxy")
        if reads_ca:
            bind_reader(access, unique)
        proxy = TenantProxy(kube, tmp_path / "proxy", *flags, account=kube.identity(account), is_ready=is_ready)
        started.callback(proxy.stop)
        return proxy

    with ExitStack() as started:
        yield start_one


def bind_reader(access: RbacObjects, unique: str) -> None:
    body = {"metadata": {"name": unique}, "roleRef": _READER, "subjects": [user_subject(f"account-of-{unique}")]}
    access.create("rolebindings", body, "kube-system")


def _without(rule: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    kept = [each for each in rule["resources"] if each not in names and f"{each}:{rule['verbs'][0]}" not in names]
    return {**rule, "resources": kept or ["none"]}


def warnings(proxy: TenantProxy, words: str) -> list[str]:
    return [line for line in proxy.process.log().splitlines() if words in line and "check" not in line]


def logged(kube: KubeCluster, proxy: TenantProxy, words: str) -> list[str]:
    return kube.wait_until(f"the log has: {words}", lambda: warnings(proxy, words))


def is_unready(proxy: TenantProxy) -> bool:
    """True once the proxy knows that its account lacks a right; before, its rights are not known at all."""
    failed = "[-]own-rights failed" in proxy.client().get("/proxy/readyz?verbose").body.decode()
    return failed and bool(warnings(proxy, "of the proxy may not"))


def default_token(kube: KubeCluster) -> str:
    """A token of the account that kube-controller-manager creates in each namespace."""
    account = f"{NAMESPACES}/default/serviceaccounts/default"
    kube.wait_until("the account exists", lambda: kube.client().get(account).status == 200)
    return kube.kubectl("create", "token", "default", "-n", "default").stdout.strip()


def test_tokens_that_cannot_be_reviewed_are_not_invalid(
    kube: KubeCluster, start: Start, access: RbacObjects, unique: str
) -> None:
    proxy = start(without=["tokenreviews"])
    kube.wait_until("the right is missing", lambda: is_unready(proxy))
    token = default_token(kube)
    for _ in range(3):
        answer = proxy.token_client(token).get(NAMESPACES)
        assert answer.expect(503)["message"] == "the cluster does not let the proxy review tokens"
        assert "Retry-After" not in answer.headers
    [line] = logged(kube, proxy, "create tokenreviews.authentication.k8s.io")
    assert f'"account-of-{unique}"' in line
    assert "manifests/overlays/proxy gives it (ClusterRole tenant-apiserver:proxy)" in line
    # certificates need no review
    assert proxy.client(unique).get("/version").status == 200
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    access.create("clusterroles", {"metadata": {"name": f"{unique}:tokens"}, "rules": [rule]})
    access.bind(f"{unique}:tokens", "", user_subject(f"account-of-{unique}"), f"{unique}:tokens")
    kube.wait_until("the proxy is ready", lambda: proxy.client().serves("/proxy/readyz"))
    assert proxy.token_client(token).get(NAMESPACES).status == 403
    assert proxy.token_client("invalid").get(NAMESPACES).status == 401


@pytest.mark.parametrize("without", ["users", "groups"])
def test_a_proxy_that_may_not_impersonate_does_not_blame_the_caller(
    kube: KubeCluster, start: Start, unique: str, without: str
) -> None:
    proxy = start(without=[without])
    kube.wait_until("the right is missing", lambda: is_unready(proxy))
    client = proxy.client(unique)
    for path in (NAMESPACES, f"{NAMESPACES}/default/pods/x", "/version", f"{NAMESPACES}/default/pods?watch=true"):
        message = client.get(path).expect(503)["message"]
        assert message.startswith("the cluster does not let the proxy impersonate its callers")
        assert "account-of" not in message
    protobuf = {"Accept": "application/vnd.kubernetes.protobuf"}
    assert client.get(NAMESPACES, headers=protobuf).status == 503
    shown = proxy.kubectl("get", "--raw", NAMESPACES, user=unique, status=1).stderr
    assert "the account of the proxy lacks a right, not yours" in shown
    [line] = logged(kube, proxy, f"impersonate {without}:")
    assert "all callers get 503; manifests/overlays/proxy gives it" in line
    # the proxy's own paths need no right
    assert proxy.client(unique).get("/proxy/livez").status == 200


def test_a_right_that_only_some_callers_need_is_no_matter_of_readiness(
    kube: KubeCluster, start: Start, access: RbacObjects, unique: str
) -> None:
    proxy = start(without=["serviceaccounts"], is_ready=True)
    token = default_token(kube)
    assert proxy.client(unique).get("/version").status == 200
    assert "impersonate its callers" in proxy.token_client(token).get("/version").expect(503)["message"]
    logged(kube, proxy, "impersonate serviceaccounts: service accounts get 503")
    access.create(
        "clusterroles",
        {"metadata": {"name": f"{unique}:m"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]},
    )
    access.bind(f"{unique}:m", "", user_subject(unique), f"{unique}:m")
    client = proxy.client(unique)
    kube.wait_until(
        "it is noted",
        lambda: "own-rights ok: the account" in client.get("/proxy/readyz?verbose").body.decode(),
    )


def test_impersonation_that_cannot_be_reviewed_is_no_refusal_of_the_caller(
    kube: KubeCluster, start: Start, unique: str
) -> None:
    proxy = start(without=["subjectaccessreviews"])
    kube.wait_until("the right is missing", lambda: is_unready(proxy))
    answer = proxy.client(unique).get(NAMESPACES, headers={"Impersonate-User": "bob"})
    assert answer.expect(503)["message"] == "the cluster does not let the proxy review access"
    assert proxy.client(unique).get(NAMESPACES).status == 403
    [line] = logged(kube, proxy, "create subjectaccessreviews.authorization.k8s.io")
    assert "manifests/overlays/proxy gives it" in line


def test_constrained_impersonation_suffices(kube: KubeCluster, start: Start, access: RbacObjects, unique: str) -> None:
    """Kubernetes 1.36 has verbs that allow less than `impersonate`: what is not allowed is the proxy's matter, too."""
    of_identities = {"apiGroups": ["authentication.k8s.io"], "resources": ["*"], "verbs": ["impersonate:user-info"]}
    of_requests = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["impersonate-on:user-info:list"]}
    access.create("clusterroles", {"metadata": {"name": f"{unique}:c"}, "rules": [of_identities, of_requests]})
    access.bind(f"{unique}:c", "", user_subject(f"account-of-{unique}"), f"{unique}:c")
    proxy = start(without=["users", "groups", "serviceaccounts", "*"], is_ready=True)
    client = proxy.client(unique)
    assert f'User "{unique}" cannot list resource "namespaces"' in client.get(NAMESPACES).expect(403)["message"]
    for path in (f"{NAMESPACES}/default", "/version"):
        assert "impersonate its callers" in client.get(path).expect(503)["message"]
    [line] = logged(kube, proxy, "the cluster has refused a right to the proxy")
    assert "impersonate-on:user-info:get" in line


def test_a_proxy_that_cannot_read_the_ca_of_clients_is_not_ready(
    kube: KubeCluster, start: Start, access: RbacObjects, unique: str
) -> None:
    proxy = start(reads_ca=False)
    [line] = logged(kube, proxy, "no client certificate is accepted")
    assert "manifests/overlays/proxy gives it (RoleBinding tenant-apiserver-proxy-auth-reader)" in line
    assert "--client-ca-file" in line
    assert "[-]client-ca failed" in proxy.client().get("/proxy/readyz?verbose").body.decode()
    kube.wait_until("readyz has the reason", lambda: "client-ca: " in proxy.process.log())
    bind_reader(access, unique)
    kube.wait_until("the proxy is ready", lambda: proxy.client().serves("/proxy/readyz"))
    assert proxy.client(unique).get("/version").status == 200


def test_a_file_with_the_ca_of_clients_needs_no_right(
    kube: KubeCluster, start: Start, tmp_path: Path, unique: str
) -> None:
    found = kube.client().get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    (tmp_path / "ca.crt").write_text(found.expect(200)["data"]["client-ca-file"])
    proxy = start(reads_ca=False, flags=[f"--client-ca-file={tmp_path / 'ca.crt'}"], is_ready=True)
    assert proxy.client(unique).get("/version").status == 200
    assert not warnings(proxy, "--client-ca-file")

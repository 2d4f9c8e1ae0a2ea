"""kubectl logs, exec, attach and port-forward through the proxy and a real kube-apiserver, to a kubelet.

FAKE_KUBELET names the kubelet, which `go build .` makes in the folder kubelet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.support.clusters.fake_kubelet import FakeKubelet
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, user_subject

READ = {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]}
# older kube-apiservers ask for `get` where kubectl uses websockets
CONNECT = {
    "apiGroups": [""],
    "resources": ["pods/exec", "pods/attach", "pods/portforward"],
    "verbs": ["get", "create"],
}
FALLBACK = "fallback"
"""kubectl says so with -v=4 where a websocket is refused, and tries SPDY."""
MANY_LINES = "".join(f"line {number}\n" for number in range(100_000))


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A Pod of a tenant, and kubectl through the proxy as a user who may reach it."""

    kube: KubeCluster
    proxy: TenantProxy
    kubelet: FakeKubelet
    namespace: str
    name: str
    protocol: str

    @property
    def environment(self) -> dict[str, str]:
        """Chooses the protocol of kubectl."""
        names = "KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS"
        return dict.fromkeys(names, "true" if self.protocol == "websocket" else "false")

    @property
    def calls(self) -> list[str]:
        return self.kubelet.calls(self.namespace, self.name)

    def kubectl(self, command: str, *arguments: str, input: str = "", status: int = 0) -> tuple[str, str]:
        """Returns what it prints to stdout and stderr."""
        done = self.proxy.kubectl(
            command,
            f"--namespace={self.namespace}",
            *arguments,
            user=self.name,
            input=input,
            status=status,
            environment=self.environment,
        )
        return done.stdout, done.stderr

    def start_kubectl(self, command: str, *arguments: str) -> Process:
        return self.proxy.start_kubectl(
            command, f"--namespace={self.namespace}", *arguments, user=self.name, environment=self.environment
        )

    def print_lines(self, *lines: str) -> None:
        """The container prints what is attached to its input."""
        printed = "".join(f"{line}\n" for line in lines)
        assert self.kubectl("attach", "--stdin", self.name, input=printed)[0] == printed


@pytest.fixture(scope="module")
def kubelet(
    running_cluster: KubeCluster, module_unique: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FakeKubelet]:
    program = os.environ.get("FAKE_KUBELET")
    if not program:
        pytest.skip("FAKE_KUBELET does not name the program of tests/e2e/proxy/kubelet")
    running = FakeKubelet(running_cluster, program, module_unique, tmp_path_factory.mktemp("kubelet"))
    yield running
    running.stop()


@pytest.fixture(params=["websocket", "SPDY"])
def pod(
    request: pytest.FixtureRequest,
    kubelet: FakeKubelet,
    kube: KubeCluster,
    proxy: TenantProxy,
    tenants: Tenants,
    access: RbacObjects,
    unique: str,
) -> RunningPod:
    """Its name is that of the user."""
    namespace = tenants.create_with_namespace()
    kubelet.run_pod(namespace, unique)
    access.create_role(unique, namespace, READ, CONNECT)
    access.bind(unique, namespace, user_subject(unique), unique)
    kube.wait_until_allowed(unique, namespace, verb="create", resource="pods", subresource="exec")
    return RunningPod(kube, proxy, kubelet, namespace, unique, request.param)


def test_logs_are_read_and_followed_while_the_container_prints(pod: RunningPod) -> None:
    """A line arrives while the response goes on, and the kubelet learns that its reader has gone."""
    pod.print_lines("one", "two", "three")
    assert pod.kubectl("logs", pod.name) == ("one\ntwo\nthree\n", "")
    assert pod.kubectl("logs", "--tail=2", pod.name) == ("two\nthree\n", "")
    ended = pod.calls.count("end of logs")
    follower = pod.start_kubectl("logs", "--follow", "--tail=1", pod.name)
    try:
        pod.kube.wait_until("the last line arrives", lambda: follower.log() == "three\n")
        pod.print_lines("four")
        pod.kube.wait_until("the new line arrives", lambda: follower.log() == "three\nfour\n")
        assert not follower.ended
        assert pod.calls.count("end of logs") == ended
    finally:
        follower.kill()
    pod.kube.wait_until("the kubelet stops sending", lambda: pod.calls.count("end of logs") == ended + 1)


def test_a_command_reads_its_input_and_kubectl_ends_with_its_status(pod: RunningPod) -> None:
    """exec without a terminal: stdout and stderr are apart, and many bytes pass at once."""
    assert pod.kubectl("exec", "--stdin", pod.name, "--", "cat", input=MANY_LINES) == (MANY_LINES, "")
    script = "read -r line; echo got $line; echo oops >&2; exit 3"
    stdout, stderr = pod.kubectl("exec", "-i", pod.name, "--", "sh", "-c", script, input="it\n", status=3)
    assert stdout == "got it\n"
    assert stderr.splitlines() == ["oops", "command terminated with exit code 3"]
    assert pod.kubectl("exec", pod.name, "--", "true") == ("", "")
    assert FALLBACK not in pod.kubectl("exec", "-v=4", pod.name, "--", "true")[1]


def test_an_attached_reader_gets_the_lines_that_another_user_of_attach_writes(pod: RunningPod) -> None:
    reader = pod.start_kubectl("attach", pod.name)
    try:
        pod.kube.wait_until("the reader is attached", lambda: "attach" in pod.calls)
        pod.print_lines("hello", "there")
        pod.kube.wait_until("the lines arrive", lambda: reader.log().endswith("hello\nthere\n"))
        assert not reader.ended
    finally:
        reader.kill()


def test_a_forwarded_port_carries_bytes_in_both_directions(pod: RunningPod) -> None:
    """It leads to the kube-apiserver itself: TLS fails if a byte is lost or changes."""
    port = pod.kube.url.rpartition(":")[2]
    forward = pod.start_kubectl("port-forward", "-v=4", f"pod/{pod.name}", f":{port}")
    try:
        listening = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
        found = pod.kube.wait_until("kubectl listens", lambda: listening.search(forward.log()))
        client = Client(f"https://127.0.0.1:{found[1]}", pod.kube.admin.tls, pod.kube.admin.headers)
        direct = pod.kube.client()
        assert client.get("/openapi/v2").body == direct.get("/openapi/v2").body
        sent = {"metadata": {"name": pod.name}, "data": {"lines": MANY_LINES[:500_000]}}
        path = f"/api/v1/namespaces/{pod.namespace}/configmaps"
        assert client.request("POST", path, sent).expect(201)["data"] == sent["data"]
    finally:
        forward.kill()
    assert "port-forward" in pod.calls
    assert FALLBACK not in forward.log()


def test_a_user_without_the_right_to_exec_is_refused_in_the_words_of_the_cluster(
    pod: RunningPod, access: RbacObjects, unique: str
) -> None:
    """The kubelet is not called."""
    user = f"{unique}-reader"
    access.create_role(user, pod.namespace, READ)
    access.bind(user, pod.namespace, user_subject(user), user)
    pod.kube.wait_until_allowed(user, pod.namespace, verb="get", resource="pods")
    command = ("exec", f"--namespace={pod.namespace}", pod.name, "--", "true")
    refused = pod.proxy.kubectl(*command, user=user, status=1, environment=pod.environment)
    assert f'pods "{pod.name}" is forbidden: User "{user}" cannot create resource "pods/exec"' in refused.stderr
    direct = pod.kube.kubectl(*command, as_user=user, status=1, environment=pod.environment)
    assert refused.stderr == direct.stderr
    told = pod.proxy.kubectl(*command[:2], "-v=4", *command[2:], user=user, status=1, environment=pod.environment)
    assert (FALLBACK in told.stderr) == (pod.protocol == "websocket")
    assert pod.calls == []

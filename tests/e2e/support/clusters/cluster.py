"""The interface of the clusters that the end-to-end tests run on, and the names and paths on them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from itertools import count
from pathlib import Path

from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import Process, T, WaitTimeout, wait_until
from tests.e2e.support.http.https_client import Client, Response

KUBECTL = Path(sys.executable).parent / "kubectl"
GROUP_VERSION = "/apis/apps.cozystack.io/v1alpha1"
API_SERVICE = "v1alpha1.apps.cozystack.io"
CORE_GROUP_VERSION = "/apis/core.cozystack.io/v1alpha1"
CORE_API_SERVICE = "v1alpha1.core.cozystack.io"
SDN_GROUP_VERSION = "/apis/sdn.cozystack.io/v1alpha1"
SDN_API_SERVICE = "v1alpha1.sdn.cozystack.io"
AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
RBAC = "rbac.authorization.k8s.io"
ROOT = "tenant-root"
ROOT_HOST = "example.org"
# how long a chain of the control plane's controllers may take on a small machine with other work to do
PATIENCE = 120.0
KUBECTL_PATIENCE = f"--timeout={PATIENCE:.0f}s"
"""For kubectl commands that wait."""
_COMMAND_SECONDS = 180
_QUEUE = re.compile(r"workqueue_(depth|adds_total|retries_total|unfinished_work_seconds|longest_running_\w+)\{")


def tenants_path(namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of the Tenants of all namespaces or of one namespace, or of one Tenant or its subresource."""
    parts = [GROUP_VERSION, *(["namespaces", namespace] if namespace else []), "tenants", name, subresource]
    return "/".join(part for part in parts if part)


class E2eCluster(ABC):
    """A running cluster with our server, for the whole session.

    A failed wait shows the output of `processes`.
    """

    kind: str
    url: str
    """The server address that kubectl uses."""
    direct_url: str
    """The address of our own server; the same as `url` without an aggregator."""
    admin: Identity
    processes: Sequence[Process]
    server: Process
    has_controllers = True
    is_disposable = False
    """True if Tenants that tests have created need not be deleted after them."""
    flags: Sequence[str] = ()
    """Additional flags of our server, used from its next start on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._identities: dict[tuple[str, tuple[str, ...]], Identity] = {}
        self._numbers = count()

    @abstractmethod
    def create_user(self, user: str, groups: tuple[str, ...]) -> Identity: ...

    @abstractmethod
    def restart(self) -> None:
        """Restarts our server on the same cluster."""

    @abstractmethod
    def stop(self) -> int:
        """Stops everything and returns the exit status of our server."""

    def identity(self, name: str, groups: Sequence[str] = ()) -> Identity:
        """The credentials of a user, created once."""
        key = name, tuple(groups)
        if key not in self._identities:
            self._identities[key] = self.create_user(*key)
        return self._identities[key]

    def client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """A raw HTTPS client for `url` as this user, or as the administrator by default."""
        identity = self.identity(user, groups) if user else self.admin
        return Client(self.url, identity.tls, identity.headers)

    @property
    def admin_with_certificate(self) -> Identity:
        """The administrator with a client certificate, whose files are beside its kubeconfig."""
        return self.admin

    def direct_client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """A client for our own server, which bypasses the aggregator if there is one."""
        return self.client(user, groups)

    def kubectl(
        self,
        *arguments: str,
        as_user: str = "",
        groups: Sequence[str] = (),
        input: str = "",
        status: int | None = 0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs the real kubectl with the credentials of a user; fails unless it exits with `status` (None: any)."""
        identity = self.identity(as_user, groups) if as_user else self.admin
        done = subprocess.run(
            self._kubectl(identity, arguments),
            input=input,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            env=self._environment(environment),
        )
        report = f"kubectl {' '.join(arguments)} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert status is None or done.returncode == status, f"{report}\n{self.tail()}"
        return done

    def tail(self) -> str:
        """The last lines of our server's log, empty if it is not a process of the test."""
        return "\n".join(each.tail() for each in self.processes[:1])

    def start_kubectl(
        self,
        *arguments: str,
        as_user: str = "",
        groups: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Starts a kubectl that keeps running, such as `get -w`; the caller stops it."""
        log = self.directory / f"kubectl-{next(self._numbers)}.log"
        command = self._kubectl(self.identity(as_user, groups) if as_user else self.admin, arguments)
        return Process(f"kubectl {arguments[0]}", command, log=log, environment=self._environment(environment))

    def wait_until(self, what: str, check: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
        """Returns the first true result of `check`. Raises WaitTimeout with the output of the processes, and with the
        work queues of our controllers: a retry after a conflict is not logged, nor is a call that never ends."""
        try:
            return wait_until(what, check, seconds=seconds, processes=self.processes)
        except WaitTimeout as failure:
            if not hasattr(self, "admin") or any(each.ended for each in self.processes):
                # a server that has not started, or has ended, has no metrics
                raise
            raise WaitTimeout(f"{failure}\n{self._work_queues()}") from None

    def _work_queues(self) -> str:
        """The metrics of our server's work queues, or the error if it does not answer."""
        try:
            lines = self.direct_client().get("/metrics").content.decode().splitlines()
        except (OSError, HTTPException) as error:
            return f"no metrics: {error}"
        return "\n".join(line for line in lines if _QUEUE.match(line))

    def wait_until_served(self, path: str) -> None:
        """Waits for a kind: a kube-apiserver serves it a moment after its CRD is established."""
        client = self.client()
        self.wait_until(f"{path} is served", lambda: client.serves(path))

    def wait_until_allowed(self, user: str, namespace: str, **attributes: str) -> None:
        """Waits until RBAC allows a user a verb: a kube-apiserver sees new roles and bindings a moment later.

        `attributes` are the verb, group and resource of a SubjectAccessReview.
        """
        client, path = self.client(), "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": {"namespace": namespace, **attributes}},
        }

        def is_allowed() -> bool:
            return bool(client.request("POST", path, review).expect(201)["status"]["allowed"])

        self.wait_until(f"{user} may {attributes} in {namespace}", is_allowed)

    def grant(self, user: str, role: str, namespace: str) -> None:
        """Binds a user to a ClusterRole in one namespace and waits until the binding is in effect."""
        client = self.client()
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"{user}-{role}".replace(":", "-"), "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }
        path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
        client.request("POST", path, binding).expect(201)
        cluster_role = f"/apis/{RBAC}/v1/clusterroles/{role}"
        # an aggregated role has no rules until kube-controller-manager has collected them
        rules = self.wait_until(f"{role} has rules", lambda: client.get(cluster_role).expect(200)["rules"])
        rule = {each: rules[0][each][0] for each in ("verbs", "apiGroups", "resources")}
        self.wait_until_allowed(
            user, namespace, verb=rule["verbs"], group=rule["apiGroups"], resource=rule["resources"]
        )

    def _kubectl(self, identity: Identity, arguments: Sequence[str]) -> list[str]:
        return [str(KUBECTL), f"--kubeconfig={identity.kubeconfig}", *arguments]

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        home = {"HOME": str(self.directory), "KUBECACHEDIR": str(self.directory / "kubectl-cache")}
        return {**os.environ, **home, **(more or {})}

    def _wait_until_ready(self, ours: Client) -> None:
        """Waits for `readyz` of our own server, after which a Service sends it requests: so Tenants can be created."""

        def is_ready() -> bool:
            try:
                return ours.get("/readyz").status == 200
            except OSError:
                return False

        wait_until("our server is ready", is_ready, seconds=2 * PATIENCE, processes=self.processes)
        body = {
            "apiVersion": GROUP_VERSION.removeprefix("/apis/"),
            "kind": "Tenant",
            "metadata": {"name": "first", "namespace": ROOT},
        }

        def answer() -> Response | None:
            found = self.client().request("POST", tenants_path(ROOT), body, query={"dryRun": "All"})
            # the aggregator notices a restart only after a while, and answers itself until then
            return None if found.content == b"service unavailable\n" else found

        wait_until("the aggregator finds our server", answer, processes=self.processes).expect(201)

"""The two clusters that the end-to-end tests run on, behind one interface."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import yaml

from apiserver.tls.certificates import KeyPair
from tenant_apiserver.certificates import local_pki
from tenant_apiserver.options.command_line import KubeconfigOptions, parse_command_line
from tests.e2e.support import credentials
from tests.e2e.support.control_plane import FRONT_PROXY, ControlPlane, crd_flags
from tests.e2e.support.credentials import Identity
from tests.e2e.support.https_client import Client, Response
from tests.e2e.support.processes import REPOSITORY, Process, T, free_port, run_command, wait_until

KUBECTL = Path(sys.executable).parent / "kubectl"
GROUP_VERSION = "/apis/apps.cozystack.io/v1alpha1"
API_SERVICE = "v1alpha1.apps.cozystack.io"
CORE_GROUP_VERSION = "/apis/core.cozystack.io/v1alpha1"
CORE_API_SERVICE = "v1alpha1.core.cozystack.io"
AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
RBAC = "rbac.authorization.k8s.io"
ROOT = "tenant-root"
ROOT_HOST = "example.org"
# how long a chain of the control plane's controllers may take on a small machine with other work to do
PATIENCE = 120.0
KUBECTL_PATIENCE = f"--timeout={PATIENCE:.0f}s"
"""For kubectl commands that wait."""
_COMMAND_SECONDS = 180


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

    def start_kubectl(self, *arguments: str, as_user: str = "", groups: Sequence[str] = ()) -> Process:
        """Starts a kubectl that keeps running, such as `get -w`; the caller stops it."""
        log = self.directory / f"kubectl-{next(self._numbers)}.log"
        command = self._kubectl(self.identity(as_user, groups) if as_user else self.admin, arguments)
        return Process(f"kubectl {arguments[0]}", command, log=log, environment=self._environment(None))

    def wait_until(self, what: str, check: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
        """Returns the first true result of `check`. Raises WaitTimeout with the output of the processes."""
        return wait_until(what, check, seconds=seconds, processes=self.processes)

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


class EmbeddedCluster(E2eCluster):
    """`tenant-apiserver standalone`."""

    kind = "embedded"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.data = directory / "data"
        self.port = free_port()
        self.url = self.direct_url = f"https://127.0.0.1:{self.port}"
        self.start()

    def run(self, *arguments: str, log: Path) -> Process:
        return run_command(*arguments, log=log)

    def start(self) -> None:
        """Starts the server, each time with the same data and port."""
        self.server = self.run(
            "standalone",
            f"--data-dir={self.data}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--root-host={ROOT_HOST}",
            *self.flags,
            log=self.directory / "standalone.log",
        )
        self.processes = (self.server,)
        kubeconfig = self.data / "kubeconfig"
        try:
            self.wait_until("the kubeconfig is written", kubeconfig.is_file)
            self.admin = credentials.from_kubeconfig(kubeconfig)
            self._wait_until_ready(self.client())
        except BaseException:
            self.server.stop()
            raise

    def create_user(self, user: str, groups: tuple[str, ...]) -> Identity:
        output = self.directory / f"user-{next(self._numbers)}"
        flags = [f"--data-dir={self.data}", f"--user={user}", f"--output={output}"]
        if groups:
            flags.append(f"--groups={','.join(groups)}")
        # in this process: starting another Python for each user would take longer than most tests
        # and in a thread, as the command reads files, while the test may have an event loop
        with ThreadPoolExecutor(max_workers=1) as executor:
            assert executor.submit(_run_kubeconfig_command, flags).result() == 0
        return credentials.from_kubeconfig(output)

    def restart(self) -> None:
        self.server.stop()
        self.start()

    def stop(self) -> int:
        return self.server.stop()


class KubeCluster(E2eCluster):
    """`tenant-apiserver serve` behind a real kube-apiserver, installed from our manifests under its own account."""

    kind = "kube"

    def __init__(self, directory: Path, control_plane: ControlPlane, crds: Path) -> None:
        super().__init__(directory)
        self._control_plane = control_plane
        self.crds = crds
        self.has_controllers = control_plane.has_controllers
        self.kube_apiserver = control_plane.processes[-1]
        self.audit_log = control_plane.audit_log
        self.url, self.admin = control_plane.url, control_plane.admin
        self.processes, self.server = control_plane.processes, control_plane.processes[-1]
        self.port = free_port()
        self.direct_url = f"https://127.0.0.1:{self.port}"
        self._install()
        token = self.kubectl("create", "token", "tenant-apiserver", "-n", "cozy-system", "--duration=24h").stdout
        self.account = control_plane.token_identity("tenant-apiserver", token.strip())
        self.server = self.start()
        self.processes = [self.server, *control_plane.processes]
        try:
            self.wait_until_available()
            # started last, so that they discover every kind at once instead of at their next resync
            control_plane.start_controllers()
            self.processes = [self.server, *control_plane.processes]
            self._wait_until_ready(self.anonymous_client())
        except BaseException:
            self.server.stop()
            raise

    def create_user(self, user: str, groups: tuple[str, ...]) -> Identity:
        return self._control_plane.identity(user, groups)

    def restart(self) -> None:
        self.server.stop()
        self.server = self.start()
        self.processes = [self.server, *self._control_plane.processes]
        self.wait_until_available()
        self._wait_until_ready(self.anonymous_client())

    def stop(self) -> int:
        status = self.server.stop()
        self._control_plane.stop()
        return status

    def compact(self) -> None:
        """Compacts etcd to the current revision, as kube-apiserver does periodically."""
        self._control_plane.compact()
        self.kube_apiserver.restart()

    def start(self) -> Process:
        """Starts our server with the permissions of the ServiceAccount of the manifests and no others."""
        return run_command(
            "serve",
            f"--kubeconfig={self.account.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--root-host={ROOT_HOST}",
            *self.flags,
            log=self.directory / "serve.log",
        )

    def direct_client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """A client that bypasses the aggregator, with a client certificate of the cluster."""
        identity = self.identity(user, groups) if user else self.admin
        tls = self._direct_tls()
        tls.load_cert_chain(identity.kubeconfig.with_suffix(".crt"), identity.kubeconfig.with_suffix(".key"))
        return Client(self.direct_url, tls, {})

    def anonymous_client(self) -> Client:
        """A client for our server without credentials."""
        return Client(self.direct_url, self._direct_tls(), {})

    def front_proxy_client(self, name: str = FRONT_PROXY) -> Client:
        """A client with the aggregator's certificate, or with one of the same CA and another name."""
        tls, control_plane = self._direct_tls(), self._control_plane
        pair = control_plane.front_proxy if name == FRONT_PROXY else control_plane.proxy_certificate(name)
        _load(tls_directory=self.directory, tls=tls, pair=pair, name=f"test-{name}")
        return Client(self.direct_url, tls, {})

    def _direct_tls(self) -> ssl.SSLContext:
        secret = self.client().get("/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert").expect(200)
        return credentials.tls_context(base64.b64decode(secret["data"]["ca.crt"]).decode())

    def _install(self) -> None:
        self.kubectl("apply", "--server-side", *crd_flags(self.crds))
        overlay = self.directory / "overlay"
        overlay.mkdir()
        (overlay / "kustomization.yaml").write_text(yaml.safe_dump(self._kustomization(overlay)))
        self.kubectl("apply", "--server-side", "-k", str(overlay))
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", KUBECTL_PATIENCE)

    def _kustomization(self, overlay: Path) -> dict[str, object]:
        """The unchanged manifests, except that the Service leads to the process of the test instead of Pods."""
        manifests = REPOSITORY / "manifests"
        overlays = ("prerequisites", "register", "cozy-tenant-roles")
        bases = [manifests / "base", *(manifests / "overlays" / name for name in overlays)]
        spec = {"type": "ExternalName", "externalName": "localhost"}
        return {
            "resources": [os.path.relpath(base, overlay.resolve()) for base in bases],
            "patches": [
                _patch("Service", "/spec", spec),
                _patch("APIService", "/spec/service/port", self.port),
            ],
        }

    def wait_until_available(self) -> None:
        """Waits until the aggregator serves both of our groups, and their discovery and OpenAPI documents.

        It fetches each of these on its own, up to a minute later than the others. kubectl needs all of them.
        """
        client, versions = (
            self.client(),
            {GROUP_VERSION.removeprefix("/apis/"), CORE_GROUP_VERSION.removeprefix("/apis/")},
        )

        def is_available(name: str) -> bool:
            found = client.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}").json()
            conditions = found.get("status", {}).get("conditions", [])
            return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)

        def is_discovered() -> bool:
            groups = client.get("/apis", headers={"Accept": AGGREGATED_DISCOVERY}).expect(200)["items"]
            return versions <= {
                f"{group['metadata']['name']}/{each['version']}"
                for group in groups
                for each in group["versions"]
                if each["freshness"] == "Current" and each["resources"]
            }

        def has_openapi_documents() -> bool:
            paths = client.get("/openapi/v3").expect(200)["paths"]
            return all(f"apis/{each}" in paths for each in versions)

        for name in (API_SERVICE, CORE_API_SERVICE):
            self.wait_until(f"{name} is Available", partial(is_available, name))
        self.wait_until("the aggregator has our discovery documents", is_discovered, seconds=2 * PATIENCE)
        self.wait_until("the aggregator has our OpenAPI documents", has_openapi_documents, seconds=2 * PATIENCE)


def _run_kubeconfig_command(flags: Sequence[str]) -> int:
    options = parse_command_line(["kubeconfig", *flags], {})
    assert isinstance(options, KubeconfigOptions)
    return local_pki.kubeconfig(options)


def _patch(kind: str, path: str, value: object) -> dict[str, object]:
    operations = [{"op": "replace", "path": path, "value": value}]
    return {"target": {"kind": kind}, "patch": yaml.safe_dump(operations)}


def _load(*, tls_directory: Path, tls: ssl.SSLContext, pair: KeyPair, name: str) -> None:
    # under other file names, because kube-apiserver reloads its own certificate files
    certificate, key = tls_directory / f"{name}.crt", tls_directory / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls.load_cert_chain(certificate, key)

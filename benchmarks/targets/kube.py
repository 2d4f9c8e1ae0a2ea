"""The target `serve` beside a real kube-apiserver, called directly at its own port. Only etcd and kube-apiserver run.

The binaries are found as Kubernetes' envtest finds them: KUBEBUILDER_ASSETS, else /usr/local/kubebuilder/bin.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from apiserver.tls import certificates
from benchmarks.client import Endpoint
from benchmarks.targets.etcd import EtcdData
from benchmarks.targets.processes import ChildProcess, ObservedProcess, free_port, wait_until
from benchmarks.targets.target import USER, Target, settings_flag, unverified_tls, user_tls

_REPOSITORY = Path(__file__).resolve().parents[2]
_START_SECONDS = 300.0
_ETCD_BYTES = 8 * 1024**3
_FRONT_PROXY = "bench-front-proxy"
_SERVICE = "tenant-apiserver"
_SERVICES = "/api/v1/namespaces/cozy-system/services"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_OURS = ("v1alpha1.apps.cozystack.io", "v1alpha1.core.cozystack.io", "v1alpha1.sdn.cozystack.io")


class KubeTarget(Target):
    """`ca` signs the certificates of users, `admin_kubeconfig` is that of a cluster administrator, who is `operator` at
    our server; `data` is what the cluster has stored."""

    data: EtcdData
    operator: Endpoint

    def __init__(self, directory: Path, controllers: str, settings: str, watch_cache: bool = True) -> None:
        self._directory = directory
        self._settings = settings
        self._controllers = controllers
        self._assets = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/usr/local/kubebuilder/bin")
        self._port = free_port()
        self._flags: dict[str, object] = {}
        self._watch_cache = watch_cache
        self.cluster_processes: dict[str, ChildProcess] = {}
        self.ca = certificates.make_ca("bench-ca")
        self._url = f"https://127.0.0.1:{free_port()}"
        ca = self.ca.certificate
        self.admin = Endpoint(self._url, user_tls(directory, self.ca, ca, "bench-admin", ("system:masters",)))
        self.cluster_user = Endpoint(self._url, user_tls(directory, self.ca, ca, USER))

    @classmethod
    @asynccontextmanager
    async def running(
        cls, directory: Path, *, controllers: str = "*", settings: str = "", watch_cache: bool = True
    ) -> AsyncIterator[KubeTarget]:
        """Without `watch_cache`, kube-apiserver answers lists and watches from etcd."""
        target = cls(directory, controllers, settings, watch_cache)
        try:
            await target._start_cluster()
            await target._install()
            await target.start()
            try:
                await target._set_up()
                yield target
            finally:
                await target.server.stop()
        finally:
            for child in reversed(target.cluster_processes.values()):
                await child.stop()

    def processes(self) -> Mapping[str, ObservedProcess]:
        return {**super().processes(), **self.cluster_processes}

    def endpoint_of(self, user: str) -> Endpoint:
        """The kube-apiserver, as a user without groups."""
        return Endpoint(self._url, user_tls(self._directory, self.ca, self.ca.certificate, user))

    @property
    def client_ca(self) -> Path:
        """The file with the CA of users' certificates."""
        return self._directory / "ca.crt"

    def kubeconfig_of(self, user: str) -> Path:
        """A kubeconfig of the kube-apiserver, for a user without groups."""
        self.endpoint_of(user)
        return self._kubeconfig(user, {"client-certificate": self._directory / f"{user}.pem"})

    @cached_property
    def admin_kubeconfig(self) -> Path:
        return self._kubeconfig("admin", {"client-certificate": self._directory / "bench-admin.pem"})

    async def start(self) -> None:
        flags = {
            "--kubeconfig": self._directory / "server.kubeconfig",
            "--bind-address": "127.0.0.1",
            "--secure-port": self._port,
            "--cert-dir": self._directory / "serving",
            # all watches belong to one user, who may have four for each of these requests
            "--max-requests-inflight": 2000,
            "--controllers": self._controllers,
        }
        command = [sys.executable, "-m", *self.program(), "serve", *_flags(flags)]
        command += settings_flag(self._directory, self._settings)
        self.server = await ChildProcess.start(command, self._directory / "serve.log")

    async def _set_up(self) -> None:
        url = f"https://127.0.0.1:{self._port}"
        served_ca = self._directory / "serving" / "ca.crt"

        async def ca_exists() -> bool:
            return served_ca.is_file()

        await wait_until("the serving CA", ca_exists, seconds=_START_SECONDS, child=self.server)
        ca = served_ca.read_bytes()
        self.user = Endpoint(url, user_tls(self._directory, self.ca, ca, USER))
        self.operator = Endpoint(url, user_tls(self._directory, self.ca, ca, "bench-operator", ("system:masters",)))
        self.anonymous = Endpoint(url, unverified_tls())
        await self.ready()

    async def aggregate(self) -> None:
        """Registers our server with the kube-apiserver's aggregator, as manifests/overlays/register does; the Service
        points to our process."""
        ca = (self._directory / "serving" / "ca.crt").read_bytes()
        service = {"metadata": {"name": _SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        await self.admin.call("DELETE", f"{_SERVICES}/{_SERVICE}")
        await self.admin.call("POST", _SERVICES, service)
        register = _REPOSITORY / "manifests" / "overlays" / "register"
        await _kubectl(self.admin_kubeconfig, "apply", "--server-side", "--kustomize", str(register))
        spec = {"caBundle": base64.b64encode(ca).decode(), "service": {"port": self._port}}
        for name in _OURS:
            path = f"{_API_SERVICES}/{name}"
            await self.admin.call("PATCH", path, {"spec": spec}, content_type="application/merge-patch+json")
        await self.aggregated()

    async def aggregated(self) -> None:
        """Waits until the kube-apiserver forwards requests to our server."""
        await wait_until("the APIServices", self._is_available, seconds=_START_SECONDS, child=self.server)

    async def stop_apiserver(self) -> None:
        """Kills the kube-apiserver: on SIGTERM it would first wait up to a minute for its clients."""
        await self.cluster_processes["kube-apiserver"].kill()

    async def start_apiserver(self) -> None:
        """Starts the kube-apiserver on the same etcd and waits until it is ready."""
        await self._run("kube-apiserver", self._flags)
        await wait_until(
            "kube-apiserver", self._answers, seconds=_START_SECONDS, child=self.cluster_processes["kube-apiserver"]
        )

    async def _is_available(self) -> bool:
        found = [await self.admin.call("GET", f"{_API_SERVICES}/{name}") for name in _OURS]
        conditions = [each.get("status", {}).get("conditions", ()) for each in found]
        return all(any(c["type"] == "Available" and c["status"] == "True" for c in each) for each in conditions)

    async def _start_cluster(self) -> None:
        etcd = f"http://127.0.0.1:{free_port()}"
        self.data = EtcdData(Endpoint(etcd, unverified_tls()))
        peer = f"http://127.0.0.1:{free_port()}"
        flags: dict[str, object] = {
            "--data-dir": self._directory / "etcd",
            "--listen-client-urls": etcd,
            "--advertise-client-urls": etcd,
            "--listen-peer-urls": peer,
            "--initial-advertise-peer-urls": peer,
            "--initial-cluster": f"default={peer}",
            "--log-level": "warn",
            # 50,000 Tenants with all that is written for them do not fit into the 2 GB that it has otherwise
            "--quota-backend-bytes": _ETCD_BYTES,
        }
        await self._run("etcd", flags)
        self._flags = self._apiserver_flags(etcd)
        await self.start_apiserver()
        self.title = f"serve beside kube-apiserver {(await self.admin.call('GET', '/version'))['gitVersion']}"

    async def _answers(self) -> bool:
        try:
            return await self.admin.text("/readyz") == "ok"
        except EOFError:
            # it accepts connections before it responds on them
            return False

    async def _run(self, program: str, flags: Mapping[str, object]) -> None:
        # Debian's etcd-server has etcd in the PATH
        file = self._assets / program if (self._assets / program).is_file() else program
        command: list[str | Path] = [file, *_flags(flags)]
        self.cluster_processes[program] = await ChildProcess.start(command, self._directory / f"{program}.log")

    def _apiserver_flags(self, etcd: str) -> dict[str, object]:
        serving = certificates.make_serving(self.ca, ["127.0.0.1"])
        ca = self._write("ca.crt", self.ca.certificate)
        accounts = self._write("accounts.key", _rsa_key())
        proxy_ca = certificates.make_ca("bench-front-proxy-ca")
        proxy = certificates.make_client(proxy_ca, _FRONT_PROXY)
        return {
            "--etcd-servers": etcd,
            "--watch-cache": str(self._watch_cache).lower(),
            "--bind-address": "127.0.0.1",
            "--secure-port": self._url.rpartition(":")[2],
            "--endpoint-reconciler-type": "none",
            "--service-cluster-ip-range": "10.0.0.0/24",
            "--tls-cert-file": self._write("apiserver.crt", serving.certificate),
            "--tls-private-key-file": self._write("apiserver.key", serving.key),
            "--client-ca-file": ca,
            "--authorization-mode": "RBAC",
            "--service-account-issuer": "https://kubernetes.default.svc",
            "--service-account-key-file": accounts,
            "--service-account-signing-key-file": accounts,
            "--requestheader-client-ca-file": self._write("front-proxy-ca.crt", proxy_ca.certificate),
            "--requestheader-allowed-names": _FRONT_PROXY,
            "--requestheader-username-headers": "X-Remote-User",
            "--requestheader-group-headers": "X-Remote-Group",
            "--requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "--proxy-client-cert-file": self._write("front-proxy.crt", proxy.certificate),
            "--proxy-client-key-file": self._write("front-proxy.key", proxy.key),
        }

    async def _install(self) -> None:
        """Applies our manifests, and writes a kubeconfig with a token of the ServiceAccount that they create."""
        admin = self.admin_kubeconfig
        crds = Path(os.environ.get("TEST_CRD_DIR") or _REPOSITORY.parent / "shared" / "crds")
        await _kubectl(admin, "apply", "--server-side", "--filename", str(crds), "--recursive")
        for directory in ("overlays/prerequisites", "overlays/cozy-tenant-roles", "base"):
            await _kubectl(admin, "apply", "--server-side", "--kustomize", str(_REPOSITORY / "manifests" / directory))
        await _kubectl(admin, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        account = ("tenant-apiserver", "--namespace=cozy-system", "--duration=24h")
        self._kubeconfig("server", {"token": await _kubectl(admin, "create", "token", *account)})

    def _kubeconfig(self, name: str, credential: Mapping[str, object]) -> Path:
        fields = {key: str(value) for key, value in credential.items()}
        if "client-certificate" in fields:
            fields["client-key"] = fields["client-certificate"]
        cluster = {"server": self._url, "certificate-authority": str(self._directory / "ca.crt")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": cluster}],
            "users": [{"name": name, "user": fields}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": name}}],
            "current-context": "bench",
        }
        return self._write(f"{name}.kubeconfig", yaml.safe_dump(document).encode())

    def _write(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        path.write_bytes(content)
        return path


def _flags(values: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


async def _kubectl(kubeconfig: Path, *arguments: str) -> str:
    """Returns the output without the final line break. Raises RuntimeError."""
    command = [str(Path(sys.executable).parent / "kubectl"), f"--kubeconfig={kubeconfig}", *arguments]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout.strip()


def _rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )

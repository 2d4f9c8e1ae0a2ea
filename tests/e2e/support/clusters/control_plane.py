"""A real control plane on loopback: etcd, kube-apiserver and, if installed, kube-controller-manager."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from apiserver.tls import certificates
from apiserver.tls.certificates import KeyPair
from tests.e2e.support.clusters import audit_log, credentials
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import Process, free_port, wait_until
from tests.e2e.support.http.https_client import Client

_ASSETS = Path("/usr/local/kubebuilder/bin")
_CONTROLLERS = (
    "namespace",
    "garbagecollector",
    "clusterrole-aggregation",
    "resourcequota",
    "serviceaccount",
    "validatingadmissionpolicy-status-controller",
)
FRONT_PROXY = "front-proxy-client"
TOKEN = "e2e-static-token"
TOKEN_USER = "token-user"
_ADMIN_TOKEN = "e2e-admin-token"
# One thread, as several control planes share the cores; less garbage collection, for more memory.
_GO_SETTINGS = {"GOMAXPROCS": "1", "GOGC": "400", "GOMEMLIMIT": "1GiB"}
_ADMIN = "admin"
_MASTERS = "system:masters"
_ETCD, _SERVICE_ACCOUNTS = "etcd", "service-accounts.key"
COZYSTACK_CRDS = "cozystack"
"""The folder with Cozystack's CRDs: a test that needs one installs it after our server has started."""


@dataclass(frozen=True, slots=True)
class Binaries:
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path | None


def find_binaries() -> Binaries | str:
    """Returns the binaries, or a line that says which variable to set if one is missing."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS") or _ASSETS)
    apiserver, manager = folder / "kube-apiserver", folder / "kube-controller-manager"
    etcd = folder / "etcd" if (folder / "etcd").is_file() else Path(shutil.which("etcd") or "")
    if not apiserver.is_file():
        return f"no kube-apiserver in {folder}: set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd"
    if not etcd.is_file():
        return f"no etcd in {folder} or in PATH: put it there, or install Debian's etcd-server"
    return Binaries(etcd, apiserver, manager if manager.is_file() else None)


def crd_flags(crds: Path) -> list[str]:
    """The flags with which kubectl reads all CRDs below a folder except those of Cozystack."""
    files = sorted(path for path in crds.rglob("*") if path.suffix in (".json", ".yaml", ".yml"))
    return [f"--filename={path}" for path in files if COZYSTACK_CRDS not in path.relative_to(crds).parts]


class ControlPlane:
    """Runs from construction to `stop`. `front_proxy` is the certificate that the aggregator presents to our server."""

    def __init__(
        self,
        directory: Path,
        binaries: Binaries,
        *,
        admission_plugins: Sequence[str] = (),
        prepared: Path | None = None,
        more_flags: Mapping[str, object] | None = None,
    ) -> None:
        """`admission_plugins` are enabled in addition to kube-apiserver's defaults, and `more_flags` are of
        kube-apiserver, too. `prepared` is the directory of a stopped control plane, whose data and keys this one begins
        with."""
        self._directory = directory
        self._prepared = prepared
        self._admission_plugins = admission_plugins
        self._more_flags = dict(more_flags or {})
        self._binaries = binaries
        self._ca = self._make_ca("ca")
        self._proxy_ca = self._make_ca("front-proxy-ca")
        self.front_proxy = self.proxy_certificate(FRONT_PROXY)
        self.processes: list[Process] = []
        self._write_pki(self._proxy_ca)
        self.url = f"https://127.0.0.1:{free_port()}"
        # a token: kube-apiserver verifies a certificate for each request, nearly half of what a small one costs it
        self.admin = self.token_identity(_ADMIN, _ADMIN_TOKEN)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def is_prepared(self) -> bool:
        """True if it began with the data of another one."""
        return self._prepared is not None

    @property
    def audit_log(self) -> Path:
        """The requests of our ServiceAccount, as tests/e2e/support/clusters/audit_log.py reads them."""
        return self._file("audit.log")

    @property
    def has_controllers(self) -> bool:
        return self._binaries.kube_controller_manager is not None

    def identity(self, user: str, groups: tuple[str, ...] = ()) -> Identity:
        """A user with a client certificate."""
        directory = self._directory / "users" / "-".join([user, *groups]).replace(":", "_")
        pair = certificates.make_client(self._ca, user, groups)
        return credentials.with_certificate(directory, user, server=self.url, ca=self._file("ca.crt"), pair=pair)

    def admin_with_certificate(self) -> Identity:
        """The administrator with a client certificate."""
        return self.identity(_ADMIN, (_MASTERS,))

    def proxy_certificate(self, name: str) -> KeyPair:
        """A certificate of the front-proxy CA; kube-apiserver allows only the name FRONT_PROXY."""
        return certificates.make_client(self._proxy_ca, name)

    def kubelet_files(self, directory: Path) -> tuple[Path, Path, Path]:
        """Writes a serving certificate for a kubelet at 127.0.0.1 and its key. Returns their files, and that of the CA
        of its clients."""
        pair = certificates.make_serving(self._ca, ["127.0.0.1"])
        certificate, key = directory / "kubelet.crt", directory / "kubelet.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return certificate, key, self._file("ca.crt")

    def token_identity(self, user: str, token: str) -> Identity:
        directory = self._directory / "tokens" / user.replace(":", "_")
        return credentials.with_token(directory, user, server=self.url, ca=self._file("ca.crt"), token=token)

    def stop(self) -> None:
        """Kills all but etcd, whose data another control plane may begin with: a kube-apiserver that is told to stop
        waits a minute for its watches."""
        for process in reversed(self.processes[1:]):
            process.kill()
        for process in self.processes[:1]:
            process.stop()

    def compact(self) -> None:
        """Compacts etcd to its current revision."""
        revision = _call_etcd(f"{self._etcd_url}/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        _call_etcd(f"{self._etcd_url}/v3/kv/compaction", {"revision": revision, "physical": True})

    def _start(self) -> None:
        self._etcd_url = self._start_etcd()
        self._run("kube-apiserver", self._binaries.kube_apiserver, *self._apiserver_flags(self._etcd_url))
        admin = Client(self.url, self.admin.tls, self.admin.headers)
        wait_until("kube-apiserver is ready", lambda: admin.serves("/readyz"), seconds=120, processes=self.processes)

    def start_another_apiserver(self) -> str:
        """Starts a second kube-apiserver on the same etcd, as in a cluster with several. Returns its URL."""
        url = f"https://127.0.0.1:{free_port()}"
        flags = {"--secure-port": url.rpartition(":")[2], "--audit-log-path": self._file("audit-2.log")}
        name = "kube-apiserver-2"
        self._run(name, self._binaries.kube_apiserver, *self._apiserver_flags(self._etcd_url), *_flags({**flags}))
        admin = Client(url, self.admin.tls, self.admin.headers)
        wait_until(f"{name} is ready", lambda: admin.serves("/readyz"), seconds=120, processes=self.processes)
        return url

    def start_controllers(self) -> None:
        """Does nothing if kube-controller-manager is not installed."""
        if self._binaries.kube_controller_manager is not None:
            self._run("kube-controller-manager", self._binaries.kube_controller_manager, *self._manager_flags())

    def _start_etcd(self) -> str:
        if self._prepared is not None:
            shutil.copytree(self._prepared / _ETCD, self._file(_ETCD))
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        flags = {
            "--data-dir": self._file(_ETCD),
            "--listen-client-urls": client,
            "--advertise-client-urls": client,
            "--listen-peer-urls": peer,
            "--initial-advertise-peer-urls": peer,
            "--initial-cluster": f"default={peer}",
            "--unsafe-no-fsync": "true",
            "--log-level": "warn",
        }
        self._run("etcd", self._binaries.etcd, *_flags(flags))
        wait_until("etcd is healthy", lambda: _is_healthy(f"{client}/health"), seconds=120, processes=self.processes)
        return client

    def _apiserver_flags(self, etcd: str) -> list[str]:
        file = self._file
        return _flags(
            {
                "--etcd-servers": etcd,
                "--bind-address": "127.0.0.1",
                "--secure-port": self.url.rpartition(":")[2],
                "--endpoint-reconciler-type": "none",
                "--service-cluster-ip-range": "10.0.0.0/24",
                "--tls-cert-file": file("apiserver.crt"),
                "--tls-private-key-file": file("apiserver.key"),
                "--client-ca-file": file("ca.crt"),
                "--token-auth-file": file("tokens.csv"),
                "--authorization-mode": "RBAC",
                "--service-account-issuer": "https://kubernetes.default.svc",
                "--service-account-key-file": file(_SERVICE_ACCOUNTS),
                "--service-account-signing-key-file": file(_SERVICE_ACCOUNTS),
                "--requestheader-client-ca-file": file("front-proxy-ca.crt"),
                "--requestheader-allowed-names": FRONT_PROXY,
                "--requestheader-username-headers": "X-Remote-User",
                "--requestheader-group-headers": "X-Remote-Group",
                "--requestheader-extra-headers-prefix": "X-Remote-Extra-",
                "--proxy-client-cert-file": file("front-proxy.crt"),
                "--proxy-client-key-file": file("front-proxy.key"),
                "--kubelet-client-certificate": file("kubelet-client.crt"),
                "--kubelet-client-key": file("kubelet-client.key"),
                "--kubelet-certificate-authority": file("ca.crt"),
                "--audit-policy-file": file("audit-policy.yaml"),
                "--audit-log-path": self.audit_log,
                **({"--enable-admission-plugins": ",".join(plugins)} if (plugins := self._admission_plugins) else {}),
                **self._more_flags,
            }
        )

    def _manager_flags(self) -> list[str]:
        kubeconfig = self.admin.kubeconfig
        return _flags(
            {
                "--kubeconfig": kubeconfig,
                "--authentication-kubeconfig": kubeconfig,
                "--authorization-kubeconfig": kubeconfig,
                "--bind-address": "127.0.0.1",
                "--secure-port": free_port(),
                "--cert-dir": self._directory / "manager",
                "--leader-elect": "false",
                "--controllers": ",".join(_CONTROLLERS),
                # quota and the garbage collector discover a new kind at their next resync
                "--resource-quota-sync-period": "10s",
            }
        )

    def _write_pki(self, proxy_ca: KeyPair) -> None:
        serving = certificates.make_serving(self._ca, ["127.0.0.1", "localhost", "kubernetes.default.svc"])
        kubelet_client = certificates.make_client(self._ca, "kube-apiserver-kubelet-client")
        pairs = {
            "ca": self._ca,
            "front-proxy-ca": proxy_ca,
            "front-proxy": self.front_proxy,
            "apiserver": serving,
            "kubelet-client": kubelet_client,
        }
        for name, pair in pairs.items():
            self._file(f"{name}.crt").write_bytes(pair.certificate)
            self._file(f"{name}.key").write_bytes(pair.key)
        self._file(_SERVICE_ACCOUNTS).write_bytes(self._service_account_key())
        self._file("audit-policy.yaml").write_text(audit_log.POLICY)
        tokens = f'{TOKEN},{TOKEN_USER},e2e-uid\n{_ADMIN_TOKEN},{_ADMIN},admin-uid,"{_MASTERS}"\n'
        self._file("tokens.csv").write_text(tokens)

    def _make_ca(self, name: str) -> KeyPair:
        if self._prepared is None:
            return certificates.make_ca(f"e2e-{name}")
        files = (self._prepared / f"{name}.{suffix}" for suffix in ("crt", "key"))
        return KeyPair(*(file.read_bytes() for file in files))

    def _service_account_key(self) -> bytes:
        return _rsa_key() if self._prepared is None else (self._prepared / _SERVICE_ACCOUNTS).read_bytes()

    def _file(self, name: str) -> Path:
        return self._directory / name

    def _run(self, name: str, program: Path, *arguments: str) -> None:
        log = self._file(f"{name}.log")
        self.processes.append(Process(name, [program, *arguments], log=log, environment=_GO_SETTINGS))


def _flags(values: dict[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _call_etcd(url: str, body: dict[str, object]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def _rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )

"""The options of `tenant-apiserver proxy`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tenant_apiserver.options.flag import Flag
from tenant_apiserver.options.flag_values import (
    address,
    boolean,
    directory,
    duration,
    names,
    one_of,
    port,
    positive,
    readable_file,
    verbosity,
    writable_file,
)
from tenant_apiserver.options.proxy_settings import ProxySettings, load_proxy_settings


def proxy_settings(text: str) -> ProxySettings:
    """Raises ValueError."""
    return load_proxy_settings(Path(text))


_PRIVILEGED = "serve members of system:masters and system:nodes, too; they get 403 without it"
PROXY = (
    Flag("--secure-port", port, 8443, "port to listen on, HTTPS"),
    Flag("--bind-address", address, "0.0.0.0", "address to listen on"),
    Flag("--kubeconfig", readable_file, None, "kubeconfig of the cluster (default: in-cluster, then ~/.kube/config)"),
    Flag("--tls-cert-file", readable_file, None, "PEM file with the serving certificate and its intermediates"),
    Flag("--tls-private-key-file", readable_file, None, "private key of --tls-cert-file"),
    Flag("--cert-dir", directory, None, "directory for a self-signed serving certificate and its CA, for evaluation"),
    Flag("--serving-names", names, (), "names and addresses for the certificate of --cert-dir (default: localhost)"),
    Flag("--client-ca-file", readable_file, None, "CA of client certificates (default: from the cluster)"),
    Flag("--anonymous-auth", boolean, True, "forward requests without credentials as system:anonymous", boolean=True),
    Flag("--allow-privileged-groups", boolean, False, _PRIVILEGED, boolean=True),
    Flag("--config", proxy_settings, ProxySettings(), "file that names the kinds whose lists the proxy answers"),
    Flag("--max-namespaces", positive, 500, "the namespaces of which a list or watch is merged; for more, 403"),
    Flag(
        "--cluster-outage-tolerance",
        duration,
        300.0,
        "how long cached decisions on tokens stay valid while the cluster is unreachable (default: 5m)",
    ),
    Flag("--max-requests-inflight", positive, 600, "maximum of concurrent requests, streams excluded; others get 429"),
    Flag("--audit-log-path", writable_file, None, "file for the audit log at level Metadata; '-' for standard output"),
    Flag(
        "--tls-transport",
        one_of("openssl", "asyncio"),
        "openssl",
        "TLS implementation: openssl, or asyncio as the fallback",
    ),
    Flag("--log-format", one_of("text", "json"), "text", "log format: text or json"),
    Flag("-v", verbosity, 1, "log verbosity: 0 warnings and errors, 1 also start and stop, 3 also every request"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions:
    """`cluster_outage_tolerance` in seconds."""

    secure_port: int
    bind_address: str
    kubeconfig: Path | None
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    cert_dir: Path | None
    serving_names: tuple[str, ...]
    client_ca_file: Path | None
    anonymous_auth: bool
    allow_privileged_groups: bool
    config: ProxySettings
    max_namespaces: int
    cluster_outage_tolerance: float
    max_requests_inflight: int
    audit_log_path: Path | None
    tls_transport: str
    log_format: str
    v: int

    @property
    def inconsistency(self) -> str:
        """The reason why the options do not fit together, empty if they do."""
        if (self.tls_cert_file is None) != (self.tls_private_key_file is None):
            return "--tls-cert-file and --tls-private-key-file must be set together"
        if self.tls_cert_file is None and self.cert_dir is None:
            return "--tls-cert-file or --cert-dir is required: the proxy serves HTTPS only"
        return ""

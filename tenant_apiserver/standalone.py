"""`standalone`: the Tenant API and the host that it needs, in one process over one data directory.

The tenant part talks to the embedded host over HTTPS, with a client certificate, like to any host.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import uvloop
from aiohttp import web

from admission.chain import Chain
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import StoredNamespaces
from apiserver.authentication.authenticator import AuthenticationError, UnionAuthenticator
from apiserver.authentication.request_header import RequestHeaderConfig, has_identity_headers
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.authorizer import standard_authorizer
from apiserver.request.context import RequestContext, User
from apiserver.server.listener import CannotListen, Listener, stop_on_signals
from apiserver.storage.event_history import HistoryLimits
from apiserver.tls.server_context import ServerTls
from controller.platform.settings import PlatformSettings, ReloadableSettings
from registry.cluster.client import HttpClusterClient
from registry.cluster.kubernetes_asyncio_shim import Configuration
from registry.embedded.api_groups import ApiGroupVersion
from registry.embedded.cluster import ClusterTrust, EmbeddedCluster
from registry.sqlite.statements import DatabaseUnusable
from tenant_apiserver import gc_tuning as memory
from tenant_apiserver import process as assembly
from tenant_apiserver.certificates.kubeconfig import write_private
from tenant_apiserver.certificates.local_pki import LocalPki, PkiUnusable, admin_kubeconfig
from tenant_apiserver.certificates.sources import SelfManagedCertificate
from tenant_apiserver.log_format import configure
from tenant_apiserver.options.command_line import StandaloneOptions
from tenant_apiserver.options.settings_file import SettingsFile, load
from tenant_apiserver.process import Group, Process
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.controllers import ControllerContext, Controllers
from tenant_apiserver.wiring.policies import equivalents_of
from tenant_apiserver.wiring.tenant_api import tenant_api
from tenant_apiserver.wiring.tenant_controller import NAME as TENANT

_ANY_ADDRESS = ("0.0.0.0", "::")
_HINT = """\
Serving on {url}
This host keeps everything in {data}: it is for trying out, development and CI, not for production.

  export KUBECONFIG={kubeconfig}
  {kubectl} get tenants -A
  {kubectl} create -f examples/tenant.yaml
  {kubectl} get tenants -A -w
"""

_logger = logging.getLogger("tenant_apiserver")


def standalone(options: StandaloneOptions) -> int:
    """The exit status: 0 after a signal, 1 if the data directory or the port cannot be used, 2 for settings that are
    wrong."""
    configure(form=options.log_format, verbosity=options.v)
    for deprecation in options.deprecations:
        _logger.warning("%s", deprecation)
    try:
        config = load(options.config)
    except ValueError as error:
        print(f"tenant-apiserver standalone: --config: {error}", file=sys.stderr)
        return 2
    try:
        uvloop.run(_Server(options, config).run())
    except CannotListen as error:
        print(f"tenant-apiserver standalone: {error}", file=sys.stderr)
        return 1
    except (DatabaseUnusable, PkiUnusable, OSError) as error:
        print(f"tenant-apiserver standalone: --data-dir={options.data_dir}: {error}", file=sys.stderr)
        return 1
    return 0


class _Server:
    def __init__(self, options: StandaloneOptions, config: PlatformSettings) -> None:
        self._options = options
        self._config = config
        self._process = Process()
        self._history = HistoryLimits(size=options.watch_history_size)
        self._data = options.data_dir.absolute()
        self._kubeconfig = self._data / "kubeconfig"
        self._pki = LocalPki(self._data / "pki", name="tenant-apiserver standalone CA")
        local = options.bind_address in _ANY_ADDRESS
        self._address = "127.0.0.1" if local else options.bind_address
        host = f"[{self._address}]" if ":" in self._address else self._address
        self._url = f"https://{host}:{options.secure_port}"

    async def run(self) -> None:
        with stop_on_signals(self._process.stop):
            await self._run()

    async def _run(self) -> None:
        self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
        ca = self._pki.ca()
        trust = ClusterTrust(
            authentication={"client-ca-file": ca.certificate.decode()},
            ca=ca.certificate.decode(),
            signing_key=self._pki.token_key(),
        )
        embedded = EmbeddedCluster(path=self._data / "host.db", trust=trust, history=self._history)
        await embedded.open()
        client = HttpClusterClient(self._cluster_configuration(), observe=self._process.metrics.client_request)
        admission = ClusterAdmission(client, self._process.metrics.registry)
        try:
            await self._serve(embedded, client, admission)
        finally:
            await admission.close()
            await client.close()
            await embedded.close()

    async def _serve(self, embedded: EmbeddedCluster, client: HttpClusterClient, admission: ClusterAdmission) -> None:
        options, process, metrics = self._options, self._process, self._process.metrics
        settings = ReloadableSettings(self._config)
        config = SettingsFile(options.config, settings)
        authorizer = standard_authorizer(embedded.authorizer)
        groups = embedded.group_versions(authorizer)
        observe = assembly.admission_observer(metrics)
        tenants = tenant_api(
            cluster=client,
            root_host=options.root_host,
            settings=settings,
            observe=observe,
            cluster_admission=lambda namespaces: admission.plugins(namespaces=namespaces, authorizer=authorizer),
            finalizer=TENANT in options.controllers,
            history=self._history,
        )
        for cache in (*tenants.caches, *embedded.caches):
            metrics.track_cache(cache)
        platform = ControllerContext(
            cluster=client,
            tenants=tenants,
            settings=settings,
            metrics=metrics,
        )
        controllers = Controllers(platform, chosen=options.controllers)
        namespaces = StoredNamespaces(embedded.namespaces)
        judges = admission.plugins(
            namespaces=namespaces,
            authorizer=authorizer,
            equivalents=equivalents_of(storage.resource for group in groups for storage in group.storages.values()),
        )
        chain = Chain((NamespaceLifecycle(namespaces=namespaces), *judges), observe=observe)
        own = [_group(each, chain) for each in groups]
        audit = assembly.audit_log(options.audit_log_path, metrics)
        source = SelfManagedCertificate(self._pki, [self._address])
        tls = assembly.TLS_TRANSPORTS[self._options.tls_transport](
            await source.obtain(), self._pki.ca().certificate, on_handshake_error=metrics.handshake_error
        )
        app = assembly.build(
            process,
            groups=[*own, *assembly.tenant_groups(tenants)],
            authenticator=self._authenticator(embedded),
            authorizer=authorizer,
            request_headers=RequestHeaderConfig,
            max_requests_inflight=options.max_requests_inflight,
            impersonation=True,
            audit=audit.write if audit else None,
        )
        informers = (*tenants.informers, *admission.informers)
        assembly.add_checks(process, informers)
        assembly.add_config_check(process, config)
        assembly.add_admission_checks(process, admission)
        work: dict[str, Callable[[], Awaitable[None]]] = {
            **assembly.informer_tasks(tenants, admission.informers),
            "serving-certificate": partial(source.follow, tls),
            "embedded-host": embedded.run,
            "controllers": controllers.run,
            "config": config.follow,
            "policy-params": admission.policies.params.run,
            "memory": partial(memory.freeze_gc, informers),
            "unused-memory": memory.trim_malloc,
            "welcome": partial(self._welcome, [each.synced for each in informers]),
        }
        try:
            await assembly.run(process, work, partial(self._listen, app, tls))
        finally:
            if audit:
                await asyncio.to_thread(audit.close)

    async def _listen(self, app: web.Application, tls: ServerTls) -> Listener:
        listener = await assembly.listen(app, tls, self._options, self._process)
        # not before the port and the database are ours: another process's kubeconfig must stay as it is
        write_private(self._kubeconfig, admin_kubeconfig(self._pki, self._url).encode())
        return listener

    def _authenticator(self, embedded: EmbeddedCluster) -> UnionAuthenticator:
        ca = self._pki.ca().certificate
        certificates = ClientCertificateAuthenticator(
            peers=PeerCertificates(), verifier=CertificateVerifier(lambda: ca)
        )
        return UnionAuthenticator((_NoFrontProxy(), certificates, embedded.authenticator))

    def _cluster_configuration(self) -> Configuration:
        """How the process reaches its own embedded host."""
        self._pki.component()
        configuration = Configuration()
        configuration.host = self._url
        configuration.ssl_ca_cert = str(self._pki.path("ca")[0])
        certificate, key = self._pki.path("component")
        configuration.cert_file, configuration.key_file = str(certificate), str(key)
        return configuration

    async def _welcome(self, ready: Sequence[asyncio.Event]) -> None:
        """Once there is something to see, say how to look at it."""
        for each in ready:
            await each.wait()
        kubectl = Path(sys.prefix) / "bin" / "kubectl"
        command = str(kubectl) if kubectl.is_file() else shutil.which("kubectl") or "kubectl"
        print(_HINT.format(url=self._url, data=self._data, kubeconfig=self._kubeconfig, kubectl=command), flush=True)


class _NoFrontProxy:
    """There is no proxy in front of the embedded host, so identity headers are never good (ATTACK-01)."""

    async def authenticate(self, context: RequestContext) -> User | None:
        if has_identity_headers(context.http.headers, RequestHeaderConfig()):
            raise AuthenticationError("identity headers, and no front proxy")
        return None


def _group(group: ApiGroupVersion, admission: Chain) -> Group:
    # the embedded host's own rules, of namespaces that end and of RBAC, are part of its storages
    return Group(group=group.group, version=group.version, storages=group.storages, admission=admission)

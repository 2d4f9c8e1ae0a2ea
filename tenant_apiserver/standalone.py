"""The `standalone` command: the Tenant API and an embedded cluster in one process, over one data directory.

The Tenant API calls the embedded cluster over HTTPS with a client certificate, as it would call any cluster.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from weakref import WeakSet

import uvloop
from aiohttp import web

from admission.cel.schema_rules import SchemaRuleCompiler
from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.matching.match_rules import EquivalentResources, single_version
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import StoredNamespaces
from apiserver import rest
from apiserver.authentication.authenticator import AuthenticationError, UnionAuthenticator
from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderConfig, has_identity_headers
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.authorizer import Authorizer, standard_authorizer
from apiserver.endpoints.installer import ApiGroupVersion as InstalledGroup
from apiserver.private_files import write_private
from apiserver.request.context import RequestContext, User
from apiserver.server.listener import CannotListen, Listener, stop_on_signals
from apiserver.storage.event_history import HistoryLimits
from apiserver.storage.watch_cache import WatchCache
from apiserver.tls.server_context import ServerTls
from controller.platform.settings import PlatformSettings, ReloadableSettings
from registry.cluster.client import HttpClusterClient
from registry.cluster.kubernetes_asyncio_shim import Configuration
from registry.embedded.api_groups import ApiGroupVersion
from registry.embedded.cluster import ClusterTrust, EmbeddedCluster
from registry.sqlite.statements import DatabaseUnusable
from tenant_apiserver.backup import BackupResponder
from tenant_apiserver.certificates.local_pki import LocalPki, PkiUnusable, admin_kubeconfig
from tenant_apiserver.certificates.serving_names import local_address, serving_names
from tenant_apiserver.certificates.sources import SelfManagedCertificate
from tenant_apiserver.log_format import configure
from tenant_apiserver.options.command_line import StandaloneOptions
from tenant_apiserver.options.settings_file import SettingsFile, load_settings
from tenant_apiserver.process import (
    TLS_TRANSPORTS,
    Process,
    ServedGroupVersion,
    Task,
    add_admission_checks,
    add_checks,
    add_config_check,
    add_root_check,
    admission_observer,
    background_tasks,
    build_application,
    install_groups,
    installed,
    listen,
    open_audit_log,
    run_server,
    tenant_groups,
)
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.controllers import ControllerContext, Controllers
from tenant_apiserver.wiring.policies import equivalents_of
from tenant_apiserver.wiring.tenant_api import TenantApi, tenant_api
from tenant_apiserver.wiring.tenant_controller import NAME as TENANT

_HINT = """\
Serving on {url}
This server stores everything in {data}: it is meant for evaluation, development and CI, not for production.

  export KUBECONFIG={kubeconfig}
  {kubectl} get tenants -A
  {kubectl} create -f examples/tenant.yaml
  {kubectl} get tenants -A -w
"""

_logger = logging.getLogger("tenant_apiserver")


def standalone(options: StandaloneOptions) -> int:
    """Returns the exit status: 0 after a signal, 1 if the data directory or the port is unusable, 2 for invalid
    settings."""
    configure(form=options.log_format, verbosity=options.v)
    for deprecation in options.deprecations:
        _logger.warning("%s", deprecation)
    try:
        settings = load_settings(options.config)
    except ValueError as error:
        print(f"tenant-apiserver standalone: --config: {error}", file=sys.stderr)
        return 2
    try:
        uvloop.run(_Server(options, settings).run())
    except CannotListen as error:
        print(f"tenant-apiserver standalone: {error}", file=sys.stderr)
        return 1
    except (DatabaseUnusable, PkiUnusable, OSError) as error:
        print(f"tenant-apiserver standalone: --data-dir={options.data_dir}: {error}", file=sys.stderr)
        return 1
    return 0


class _Server:
    def __init__(self, options: StandaloneOptions, settings: PlatformSettings) -> None:
        self._options = options
        self._settings = ReloadableSettings(settings)
        self._settings_file = SettingsFile(options.config, self._settings)
        self._process = Process()
        self._history = HistoryLimits(size=options.watch_history_size)
        self._data = options.data_dir.absolute()
        self._kubeconfig = self._data / "kubeconfig"
        self._pki = LocalPki(self._data / "pki", name="tenant-apiserver standalone CA")
        address = local_address(options.bind_address)
        host = f"[{address}]" if ":" in address else address
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
        embedded = EmbeddedCluster(
            path=self._data / "host.db", trust=trust, compiler=SchemaRuleCompiler(), history=self._history
        )
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
        authorizer = standard_authorizer(embedded.authorizer)
        tenants = self._build_tenant_api(client, admission, authorizer)
        for cache in tenants.caches:
            metrics.track_cache(cache)
        groups = _Groups(process, embedded, admission, authorizer, tenants)
        context = ControllerContext(cluster=client, tenants=tenants, settings=self._settings, metrics=metrics)
        controllers = Controllers(context, chosen=options.controllers)
        audit = open_audit_log(options.audit_log_path, metrics)
        names = await asyncio.to_thread(serving_names, options.bind_address)
        certificate = SelfManagedCertificate(self._pki, names)
        tls = TLS_TRANSPORTS[options.tls_transport](
            await certificate.obtain(), self._pki.ca().certificate, on_handshake_error=metrics.handshake_error
        )
        certificates = self._certificates()
        app = build_application(
            process,
            groups=groups.installed,
            responders=(BackupResponder(embedded, self._data).respond,),
            authenticator=UnionAuthenticator((_NoFrontProxy(), certificates, embedded.authenticator)),
            authorizer=authorizer,
            request_headers=RequestHeaderConfig,
            max_requests_inflight=options.max_requests_inflight,
            impersonation=True,
            audit=audit.write if audit else None,
        )
        informers = (*tenants.informers, *admission.informers)
        add_checks(process, informers)
        add_config_check(process, self._settings_file)
        add_admission_checks(process, admission)
        add_root_check(process, tenants, lambda: controllers.may_create_root)
        tasks: dict[str, Task] = {
            **background_tasks(tenants, admission, self._settings_file),
            "serving-certificate": partial(certificate.follow, tls),
            "embedded-cluster": embedded.run,
            "controllers": controllers.run,
            "welcome": partial(self._print_hint, [each.synced for each in informers]),
        }
        try:
            await run_server(process, tasks, partial(self._listen, app, tls, Peers(user=certificates.user_of)))
        finally:
            if audit:
                await asyncio.to_thread(audit.close)

    def _build_tenant_api(
        self, client: HttpClusterClient, admission: ClusterAdmission, authorizer: Authorizer
    ) -> TenantApi:
        return tenant_api(
            cluster=client,
            root_host=self._options.root_host,
            settings=self._settings,
            authorizer=authorizer,
            observe=admission_observer(self._process.metrics),
            cluster_admission=lambda namespaces: admission.plugins(namespaces=namespaces, authorizer=authorizer),
            admission_informers=admission.informers,
            finalizer=TENANT in self._options.controllers,
            history=self._history,
        )

    async def _listen(self, app: web.Application, tls: ServerTls, peers: Peers) -> Listener:
        listener = await listen(app, tls, self._options, self._process, peers)
        # only now are the port and the database known to be ours: a kubeconfig of another process must not be replaced
        write_private(self._kubeconfig, admin_kubeconfig(self._pki, self._url).encode())
        return listener

    def _certificates(self) -> ClientCertificateAuthenticator:
        ca = self._pki.ca().certificate
        return ClientCertificateAuthenticator(peers=PeerCertificates(), verifier=CertificateVerifier(lambda: ca))

    def _cluster_configuration(self) -> Configuration:
        """The client configuration for the embedded cluster in this process."""
        self._pki.component()
        configuration = Configuration()
        configuration.host = self._url
        configuration.ssl_ca_cert = str(self._pki.path("ca")[0])
        certificate, key = self._pki.path("component")
        configuration.cert_file, configuration.key_file = str(certificate), str(key)
        return configuration

    async def _print_hint(self, ready: Sequence[asyncio.Event]) -> None:
        """Prints example commands as soon as the caches are synced."""
        for each in ready:
            await each.wait()
        kubectl = Path(sys.prefix) / "bin" / "kubectl"
        command = str(kubectl) if kubectl.is_file() else shutil.which("kubectl") or "kubectl"
        print(_HINT.format(url=self._url, data=self._data, kubeconfig=self._kubeconfig, kubectl=command), flush=True)


class _Groups:
    """The kinds of the embedded cluster, which change with its CustomResourceDefinitions, and those of Tenants.

    Checks of terminating namespaces and of RBAC are part of the embedded cluster's storages.
    """

    def __init__(
        self,
        process: Process,
        embedded: EmbeddedCluster,
        admission: ClusterAdmission,
        authorizer: Authorizer,
        tenants: TenantApi,
    ) -> None:
        self._process = process
        self._embedded = embedded
        self._authorizer = authorizer
        namespaces = StoredNamespaces(embedded.namespaces)
        self._equivalents: EquivalentResources = single_version
        plugins = admission.plugins(
            namespaces=namespaces,
            authorizer=authorizer,
            equivalents=lambda resource: self._equivalents(resource),
        )
        caches = CompleteCaches([each.complete for each in admission.informers])
        observe = admission_observer(process.metrics)
        self._chain = Chain((caches, NamespaceLifecycle(namespaces=namespaces), *plugins), observe=observe)
        self._tenants = install_groups(process, tenant_groups(tenants), authorizer)
        self._known: dict[tuple[str, str], tuple[Mapping[str, rest.Storage], InstalledGroup]] = {}
        self._tracked: WeakSet[WatchCache] = WeakSet()
        self.installed = installed(self._current())
        embedded.on_kinds_changed(lambda: self.installed.replace(self._current()))

    def _current(self) -> Sequence[InstalledGroup]:
        groups = self._embedded.group_versions(self._authorizer)
        self._equivalents = equivalents_of(storage.resource for each in groups for storage in each.storages.values())
        self._known = {(each.group, each.version): (each.storages, self._install(each)) for each in groups}
        for cache in self._embedded.caches:
            if cache not in self._tracked:
                self._tracked.add(cache)
                self._process.metrics.track_cache(cache)
        current = {key: group for key, (_, group) in self._known.items()}
        for tenants in self._tenants:
            key = tenants.group, tenants.version
            current[key] = tenants.extended_with(current[key]) if key in current else tenants
        return list(current.values())

    def _install(self, group: ApiGroupVersion) -> InstalledGroup:
        storages, known = self._known.get((group.group, group.version), ({}, None))
        if known is not None and storages == group.storages:
            return known
        served = ServedGroupVersion(
            group=group.group, version=group.version, storages=group.storages, admission=self._chain
        )
        return install_groups(self._process, [served], self._authorizer)[0]


class _NoFrontProxy:
    """Rejects identity headers, because there is no front proxy before the embedded cluster (ATTACK-01)."""

    async def authenticate(self, context: RequestContext) -> User | None:
        if has_identity_headers(context.http.headers, RequestHeaderConfig()):
            raise AuthenticationError("identity headers are rejected, because there is no front proxy")
        return None

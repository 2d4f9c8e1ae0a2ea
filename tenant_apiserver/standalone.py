"""The `standalone` command: the Tenant API and an embedded cluster in one process, over one data directory.

The Tenant API calls the embedded cluster over HTTPS with a client certificate, as it would call any cluster.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from aiohttp import web

from admission.cel.schema_rules import SchemaRuleCompiler
from admission.policy.expression_errors import expression_errors
from apiserver.authentication.authenticator import AuthenticationError, UnionAuthenticator
from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderConfig, has_identity_headers
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.authorizer import Authorizer, standard_authorizer
from apiserver.private_files import write_private
from apiserver.request.context import RequestContext, User
from apiserver.server import event_loop
from apiserver.server.listener import CannotListen, Listener, stop_on_signals
from apiserver.storage.event_history import HistoryLimits
from apiserver.tls.server_context import ServerTls
from controller.platform.settings import PlatformSettings, ReloadableSettings
from controller.platform.sources import PlatformSources
from registry.cluster.client import HttpClusterClient
from registry.cluster.kubernetes_asyncio_shim import Configuration
from registry.embedded.cluster import ClusterTrust, EmbeddedCluster
from registry.sqlite.statements import DatabaseUnusable
from tenant_apiserver.application_groups import add_applications_check
from tenant_apiserver.backup import BackupResponder
from tenant_apiserver.certificates.local_pki import ADMIN, LocalPki, PkiUnusable, admin_kubeconfig
from tenant_apiserver.certificates.serving_names import local_address, serving_names
from tenant_apiserver.certificates.sources import SelfManagedCertificate
from tenant_apiserver.data_directory import DATABASE, KUBECONFIG, PKI, TargetRefused, check_foreign
from tenant_apiserver.log_format import configure
from tenant_apiserver.options.command_line import StandaloneOptions
from tenant_apiserver.options.settings_file import SettingsFile, load_settings
from tenant_apiserver.process import (
    TLS_TRANSPORTS,
    Process,
    Task,
    add_admission_checks,
    add_checks,
    add_config_check,
    add_package_check,
    add_projections_check,
    add_publishing_check,
    add_root_check,
    admission_observer,
    background_tasks,
    build_application,
    install_groups,
    open_audit_log,
    open_listener,
    projection_groups,
    run_server,
    tenant_groups,
)
from tenant_apiserver.standalone_groups import StandaloneGroups
from tenant_apiserver.ui.application import serve_page
from tenant_apiserver.ui.sessions import CODE_SECONDS
from tenant_apiserver.ui.standalone import standalone_page
from tenant_apiserver.wiring.applications.api import ApplicationApi, ApplicationApiConfig, release_defaults
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.controllers import ControllerContext, Controllers
from tenant_apiserver.wiring.isolation import own_networks
from tenant_apiserver.wiring.options import DISK_SIZE
from tenant_apiserver.wiring.platform_package import PackageWatch, follow_cluster
from tenant_apiserver.wiring.projections import ProjectionApi
from tenant_apiserver.wiring.tenant_api import TenantApi, TenantApiConfig, tenant_api
from tenant_apiserver.wiring.tenant_controller import NAME as TENANT

_HINT = """\
Serving on {url}
This server stores everything in {data}: it is meant for evaluation, development and CI, not for production.
{page}
  export KUBECONFIG={kubeconfig}
  {kubectl} get tenants -A
  {kubectl} create -f examples/tenant.yaml
  {kubectl} get tenants -A -w
"""

_PAGE = """\

The tenants in a browser (the URL logs in one, within {minutes} minutes):
  {url}
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
        if options.audit_log_path is not None:
            # a link is followed when the file is opened to append
            check_foreign(Path(os.path.realpath(options.audit_log_path)), options.data_dir)
    except TargetRefused as error:
        print(f"tenant-apiserver standalone: --audit-log-path={options.audit_log_path}: {error}", file=sys.stderr)
        return 1
    try:
        event_loop.run(_Server(options, settings).run())
    except CannotListen as error:
        print(f"tenant-apiserver standalone: {error.describe('--secure-port')}", file=sys.stderr)
        return 1
    except (DatabaseUnusable, PkiUnusable, OSError) as error:
        problem = _describe(error) if isinstance(error, OSError) else str(error)
        print(f"tenant-apiserver standalone: --data-dir={options.data_dir}: {problem}", file=sys.stderr)
        return 1
    return 0


def _describe(error: OSError) -> str:
    """The message of the system, with the file, and what to do."""
    why = error.strerror or str(error)
    return f"{f'{error.filename}: ' if error.filename else ''}{why}; choose a directory that can be written"


class _Server:
    def __init__(self, options: StandaloneOptions, settings: PlatformSettings) -> None:
        self._options = options
        of_file = ReloadableSettings(settings)
        self._settings_file = SettingsFile(options.config, of_file)
        self._sources = PlatformSources(of_file)
        self._process = Process()
        self._history = HistoryLimits(size=options.watch_history_size)
        self._data = options.data_dir.absolute()
        self._kubeconfig = self._data / KUBECONFIG
        self._pki = LocalPki(self._data / PKI, name="tenant-apiserver standalone CA")
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
            path=self._data / DATABASE,
            trust=trust,
            compiler=SchemaRuleCompiler(),
            policy_errors=expression_errors,
            history=self._history,
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
        follow_cluster(tenants, self._sources)
        for cache in tenants.caches:
            metrics.track_cache(cache)
        apis = self._api_config(client, admission, authorizer, tenants)
        applications = ApplicationApi(apis)
        projections = ProjectionApi(apis, disk_default=partial(applications.default_of, *DISK_SIZE))
        served = install_groups(process, (*tenant_groups(tenants), *projection_groups(projections)), authorizer)
        groups = StandaloneGroups(process, embedded, admission, authorizer, served, applications)
        controllers = self._build_controllers(client, tenants, applications)
        audit = open_audit_log(options.audit_log_path, metrics)
        (certificate, tls), certificates = await self._tls(), self._certificates()
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
            cors_allowed_origins=options.cors_allowed_origins,
        )
        informers = (*tenants.informers, *admission.informers)
        add_checks(process, informers)
        self._add_more_checks(tenants, controllers, admission, applications, projections)
        tasks: dict[str, Task] = {
            **background_tasks(tenants, admission, self._settings_file),
            "serving-certificate": partial(certificate.follow, tls),
            "embedded-cluster": embedded.run,
            "platform-package": PackageWatch(client, self._sources).run,
            "controllers": controllers.run,
            "applications": applications.run,
            "projections": projections.run,
            "welcome": partial(self._welcome, [each.synced for each in informers]),
        }
        try:
            await run_server(process, tasks, partial(self._listen, app, tls, Peers(user=certificates.user_of)))
        finally:
            if audit:
                await asyncio.to_thread(audit.close)

    def _add_more_checks(
        self,
        tenants: TenantApi,
        controllers: Controllers,
        admission: ClusterAdmission,
        applications: ApplicationApi,
        projections: ProjectionApi,
    ) -> None:
        process = self._process
        add_config_check(process, self._settings_file)
        add_package_check(process, self._sources)
        add_publishing_check(process, controllers.publishing)
        add_admission_checks(process, admission)
        add_applications_check(process, applications)
        add_projections_check(process, projections)
        add_root_check(process, tenants, lambda: controllers.may_create_root)

    async def _tls(self) -> tuple[SelfManagedCertificate, ServerTls]:
        """The serving certificate, and the transport that presents it."""
        names = await asyncio.to_thread(serving_names, self._options.bind_address)
        certificate = SelfManagedCertificate(self._pki, names)
        transport = TLS_TRANSPORTS[self._options.tls_transport](
            await certificate.obtain(),
            self._pki.ca().certificate,
            on_handshake_error=self._process.metrics.handshake_error,
        )
        return certificate, transport

    def _build_tenant_api(
        self, client: HttpClusterClient, admission: ClusterAdmission, authorizer: Authorizer
    ) -> TenantApi:
        return tenant_api(
            TenantApiConfig(
                cluster=client,
                root_host=self._options.root_host,
                settings=self._sources,
                authorizer=authorizer,
                observe=admission_observer(self._process.metrics),
                cluster_admission=lambda namespaces: admission.plugins(namespaces=namespaces, authorizer=authorizer),
                admission_informers=admission.informers,
                finalizer=TENANT in self._options.controllers,
                history=self._history,
            )
        )

    def _api_config(
        self, client: HttpClusterClient, admission: ClusterAdmission, authorizer: Authorizer, tenants: TenantApi
    ) -> ApplicationApiConfig:
        return ApplicationApiConfig(
            cluster=client,
            tenants=tenants,
            authorizer=authorizer,
            metrics=self._process.metrics,
            observe=admission_observer(self._process.metrics),
            cluster_admission=lambda namespaces: admission.plugins(namespaces=namespaces, authorizer=authorizer),
            admission_informers=admission.informers,
            defaults=lambda: release_defaults(self._options, self._sources.current.release_settings()),
            history=self._history,
        )

    def _build_controllers(
        self, client: HttpClusterClient, tenants: TenantApi, applications: ApplicationApi
    ) -> Controllers:
        options = self._options
        context = ControllerContext(
            cluster=client,
            tenants=tenants,
            settings=self._sources,
            metrics=self._process.metrics,
            own_networks=own_networks(local_address(options.bind_address), options.secure_port),
            enforces_quotas=False,
            sources=self._sources,
            applications=applications,
        )
        return Controllers(context, chosen=options.controllers)

    async def _listen(self, app: web.Application, tls: ServerTls, peers: Peers) -> Listener:
        listener = await open_listener(app, tls, self._options, self._process, peers)
        # only now are the port and the database known to be ours: a kubeconfig of another process must not be replaced
        write_private(self._kubeconfig, admin_kubeconfig(self._pki, self._url).encode())
        return listener

    def _certificates(self) -> ClientCertificateAuthenticator:
        ca = self._pki.ca().certificate
        return ClientCertificateAuthenticator(peers=PeerCertificates(), verifier=CertificateVerifier(lambda: ca))

    def _cluster_configuration(self, name: str = "component") -> Configuration:
        """The client configuration for the embedded cluster in this process, with a stored certificate."""
        self._pki.component()
        configuration = Configuration()
        configuration.host = self._url
        configuration.ssl_ca_cert = str(self._pki.path("ca")[0])
        certificate, key = self._pki.path(name)
        configuration.cert_file, configuration.key_file = str(certificate), str(key)
        return configuration

    async def _welcome(self, ready: Sequence[asyncio.Event]) -> None:
        """As soon as the caches are synced, prints example commands, and serves the page until it is cancelled."""
        for each in ready:
            await each.wait()
        if not self._options.ui:
            self._print_hint()
            return
        server = standalone_page(self._cluster_configuration(ADMIN), user=ADMIN, kubeconfig=self._kubeconfig)
        try:
            await serve_page(server, "127.0.0.1", self._options.ui_port, self._print_hint)
        except CannotListen as error:
            _logger.warning("the tenant page is not served: %s", error.describe("--ui-port"))
            self._print_hint()

    def _print_hint(self, page_url: str = "") -> None:
        kubectl = Path(sys.prefix) / "bin" / "kubectl"
        command = str(kubectl) if kubectl.is_file() else shutil.which("kubectl") or "kubectl"
        page = page_url and _PAGE.format(url=page_url, minutes=CODE_SECONDS // 60)
        hint = _HINT.format(url=self._url, data=self._data, kubeconfig=self._kubeconfig, kubectl=command, page=page)
        print(hint, flush=True)


class _NoFrontProxy:
    """Rejects identity headers, because there is no front proxy before the embedded cluster (ATTACK-01)."""

    async def authenticate(self, context: RequestContext) -> User | None:
        if has_identity_headers(context.http.headers, RequestHeaderConfig()):
            raise AuthenticationError("identity headers are rejected, because there is no front proxy")
        return None

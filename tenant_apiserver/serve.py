"""The `serve` command: the Tenant API behind the aggregator of a cluster, which also stores all state."""

from __future__ import annotations

import asyncio
import logging
import sys
from functools import partial

from apiserver.authentication.authenticator import UnionAuthenticator
from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderAuthenticator, RequestHeaderConfig
from apiserver.authentication.token_review import BearerTokenAuthenticator, TokenReviewer
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.authorizer import standard_authorizer
from apiserver.authorization.subject_access_review import SubjectAccessReviewAuthorizer, UncachedReviews
from apiserver.delegation.review_client import ReviewCall, count_responses
from apiserver.meta.errors import StatusError
from apiserver.server import event_loop
from apiserver.server.installed_groups import InstalledGroups
from apiserver.server.listener import CannotListen, stop_on_signals
from apiserver.storage.event_history import HistoryLimits
from apiserver.tls.file_reload import follow_file
from apiserver.tls.server_context import ServerTls
from controller.platform.settings import PlatformSettings, ReloadableSettings, SettingsSource
from controller.platform.sources import PlatformSources
from registry.cluster.client import HttpClusterClient
from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS, SUBJECT_ACCESS_REVIEWS_PATH, TOKEN_REVIEWS_PATH
from registry.cluster.read_only import ReadOnlyClusterClient
from tenant_apiserver import log_format
from tenant_apiserver.application_groups import InstalledApplications, add_applications_check
from tenant_apiserver.certificates.cluster_secret import ServiceReference, ServingCertificate
from tenant_apiserver.certificates.delegated_authentication import (
    NAME,
    NAMESPACE,
    ClusterAuthenticationInfo,
    DelegatedAuthentication,
)
from tenant_apiserver.certificates.local_pki import LocalPki, PkiUnusable
from tenant_apiserver.certificates.pem_files import UnusableFile, read_ca_bundle
from tenant_apiserver.certificates.sources import (
    CertificateSource,
    FileCertificate,
    SecretCertificate,
    SelfManagedCertificate,
)
from tenant_apiserver.options.command_line import ServeOptions
from tenant_apiserver.options.flag import with_value
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
    installed,
    open_audit_log,
    open_listener,
    projection_groups,
    run_server,
    run_unless_stopped,
    shutdown_stages,
    tenant_groups,
)
from tenant_apiserver.start_log import StartLog
from tenant_apiserver.state_metrics import export_state, export_tenants
from tenant_apiserver.wiring.applications.api import ApplicationApi, ApplicationApiConfig, release_defaults
from tenant_apiserver.wiring.claims import Replica
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.controllers import ControllerContext, Controllers
from tenant_apiserver.wiring.options import DISK_SIZE
from tenant_apiserver.wiring.platform_package import PackageWatch, follow_cluster
from tenant_apiserver.wiring.projections import ProjectionApi
from tenant_apiserver.wiring.replica_identity import new_identity
from tenant_apiserver.wiring.tenant_api import TenantApi, TenantApiConfig, tenant_api
from tenant_apiserver.wiring.tenant_controller import NAME as TENANT

API_SERVICES = ("v1alpha1.apps.cozystack.io", "v1alpha1.core.cozystack.io", "v1alpha1.sdn.cozystack.io")
_GROUPS = frozenset(name.partition(".")[2] for name in API_SERVICES)

_logger = logging.getLogger("tenant_apiserver")


def serve(options: ServeOptions) -> int:
    """Returns the exit status: 0 after a signal, 1 if the server cannot start, 2 for invalid settings."""
    log_format.configure(form=options.log_format, verbosity=options.v)
    for deprecation in options.deprecations:
        _logger.warning("%s", deprecation)
    try:
        settings = load_settings(options.config)
    except ValueError as error:
        print(f"tenant-apiserver serve: --config: {error}", file=sys.stderr)
        return 2
    return event_loop.run(_serve(options, settings))


async def _serve(options: ServeOptions, settings: PlatformSettings) -> int:
    # the endpoints of a Service follow readyz with a delay
    process = Process(stages=shutdown_stages(delay=1.0))
    try:
        client = ReadOnlyClusterClient if options.shadow else HttpClusterClient
        cluster = await client.connect(options.kubeconfig, observe=process.metrics.client_request)
    except ValueError as error:
        print(f"tenant-apiserver serve: {with_value('--kubeconfig', options.kubeconfig)}: {error}", file=sys.stderr)
        return 1
    admission = ClusterAdmission(cluster, process.metrics.registry, groups=_GROUPS)
    try:
        await _Server(options, settings, cluster, admission, process).run()
    except (CannotListen, PkiUnusable, UnusableFile, _CannotStart) as error:
        problem = error.describe("--secure-port") if isinstance(error, CannotListen) else error
        print(f"tenant-apiserver serve: {problem}", file=sys.stderr)
        return 1
    finally:
        await admission.close()
        await cluster.close()
    return 0


class _CannotStart(Exception):
    """A file named by a flag is unusable, or the cluster denies a read that the server depends on."""


class _Server:
    def __init__(
        self,
        options: ServeOptions,
        initial_settings: PlatformSettings,
        cluster: HttpClusterClient,
        admission: ClusterAdmission,
        process: Process,
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._process = process
        self._admission = admission
        self._tls: ServerTls | None = None
        settings = ReloadableSettings(initial_settings)
        self._settings_file = SettingsFile(options.config, settings)
        self._sources = PlatformSources(settings)
        self._package = PackageWatch(cluster, self._sources)
        self._tenants = self._build_tenant_api(self._sources)
        apis = self._api_config(self._sources)
        self._applications = ApplicationApi(apis)
        self._projections = ProjectionApi(apis, disk_default=partial(self._applications.default_of, *DISK_SIZE))
        follow_cluster(self._tenants, self._sources)
        for cache in self._tenants.caches:
            process.metrics.track_cache(cache)
        self._delegation = DelegatedAuthentication(
            from_flags=_authentication_flags(options), on_change=self._replace_client_cas
        )
        self._configmap = Informer(cluster, CONFIGMAPS, namespace=NAMESPACE, field_selector=f"metadata.name={NAME}")
        self._configmap.add_handler(self._delegation)
        self._controllers = Controllers(
            ControllerContext(
                cluster=cluster,
                tenants=self._tenants,
                settings=self._sources,
                metrics=process.metrics,
                sources=self._sources,
                applications=None if options.shadow else self._applications,
            ),
            chosen=options.controllers,
            lease_namespace=options.service_namespace if options.leader_elect else "",
        )
        self._certificate = _certificate_source(options, cluster)

    def _build_tenant_api(self, settings: SettingsSource) -> TenantApi:
        options, access_review = self._options, self._access_review()
        self._authorizer = standard_authorizer(access_review)
        return tenant_api(
            TenantApiConfig(
                cluster=self._cluster,
                root_host=options.root_host,
                settings=settings,
                authorizer=self._authorizer,
                observe=admission_observer(self._process.metrics),
                cluster_admission=lambda namespaces: self._admission.plugins(
                    namespaces=namespaces, authorizer=self._authorizer
                ),
                admission_informers=self._admission.informers,
                finalizer=TENANT in options.controllers,
                history=HistoryLimits(size=options.watch_history_size),
                reviews=UncachedReviews(access_review) if options.visibility == "reviews" else None,
                replica=self._replica() if options.leader_elect else None,
            )
        )

    def _api_config(self, settings: SettingsSource) -> ApplicationApiConfig:
        return ApplicationApiConfig(
            cluster=self._cluster,
            tenants=self._tenants,
            authorizer=self._authorizer,
            metrics=self._process.metrics,
            observe=admission_observer(self._process.metrics),
            cluster_admission=lambda namespaces: self._admission.plugins(
                namespaces=namespaces, authorizer=self._authorizer
            ),
            admission_informers=self._admission.informers,
            defaults=lambda: release_defaults(self._options, settings.current.release_settings()),
            history=HistoryLimits(size=self._options.watch_history_size),
            home=self._options.service_namespace,
        )

    def _replica(self) -> Replica:
        return Replica(
            identity=new_identity(), namespace=self._options.service_namespace, metrics=self._process.metrics.registry
        )

    async def run(self) -> None:
        with stop_on_signals(self._process.stop):
            tls = await run_unless_stopped(self._process, self._prepare())
            if tls is not None:
                await self._run(tls)

    async def _prepare(self) -> ServerTls:
        await self._read_configmap()
        return await self._obtain_tls()

    async def _read_configmap(self) -> None:
        """Fails if the ConfigMap may not be read: the server would answer every request with 401 (WIRE-A10)."""
        if self._options.authentication_tolerate_lookup_failure or self._delegation.complete_by_flags:
            return
        try:
            found = await self._cluster.get(CONFIGMAPS, NAMESPACE, NAME)
        except StatusError as error:
            # after any other error the informer retries, and readiness waits for it
            if error.code == 403:
                why = f"cannot read ConfigMap {NAMESPACE}/{NAME}: {error.message}"
                raise _CannotStart(f"{why}; bind the account to Role {NAMESPACE}/{NAME}-reader") from error
        else:
            await self._delegation.replace([found], 0)

    async def _obtain_tls(self) -> ServerTls:
        """Waits for the cluster if the certificate is stored there. Raises UnusableFile."""
        try:
            return TLS_TRANSPORTS[self._options.tls_transport](
                await self._certificate.obtain(),
                self._delegation.current.bundle(),
                on_handshake_error=self._process.metrics.handshake_error,
            )
        except UnusableFile:
            raise
        except (OSError, ValueError) as error:
            raise _CannotStart(f"cannot use the serving certificate, its key, or a client CA: {error}") from error

    async def _run(self, tls: ServerTls) -> None:
        self._tls = tls
        options, process = self._options, self._process
        audit = open_audit_log(options.audit_log_path, process.metrics)
        authenticator, peers = self._authenticator()
        groups = self._groups()
        app = build_application(
            process,
            groups=groups,
            authenticator=authenticator,
            authorizer=self._authorizer,
            request_headers=self._delegation.request_header,
            max_requests_inflight=options.max_requests_inflight,
            impersonation=False,
            audit=audit.write if audit else None,
            read_only=options.shadow,
            cors_allowed_origins=options.cors_allowed_origins,
        )
        informers = (*self._tenants.informers, *self._admission.informers, self._configmap)
        add_checks(process, informers)
        export_state(process, tls, informers)
        export_tenants(process, self._tenants)
        add_config_check(process, self._settings_file)
        add_package_check(process, self._sources)
        add_publishing_check(process, self._controllers.publishing)
        add_admission_checks(process, self._admission)
        add_applications_check(process, self._applications)
        add_projections_check(process, self._projections)
        add_root_check(process, self._tenants, lambda: self._controllers.may_create_root)
        tasks: dict[str, Task] = {
            **background_tasks(self._tenants, self._admission, self._settings_file, others=(self._configmap,)),
            "serving-certificate": partial(self._certificate.follow, tls),
            "platform-package": self._package.run,
            "controllers": self._controllers.run,
            "start-log": self._start_log().run,
            "applications": self._applications.run,
            "projections": self._projections.run,
            **self._ca_reload_tasks(),
        }
        try:
            await run_server(process, tasks, partial(open_listener, app, tls, options, process, peers))
        finally:
            if audit:
                await asyncio.to_thread(audit.close)

    def _start_log(self) -> StartLog:
        options = self._options
        return StartLog(
            command="serve --shadow" if options.shadow else "serve",
            address=options.bind_address,
            port=options.secure_port,
            controllers=options.controllers,
            process=self._process,
            informers=(*self._tenants.informers, *self._admission.informers, self._configmap),
            caches=self._tenants.caches,
            optional=self._controllers.informers,
            applications=self._applications.summary,
        )

    def _groups(self) -> InstalledGroups:
        """All groups, with the kinds that ApplicationDefinitions describe as they come and go."""
        served = (*tenant_groups(self._tenants), *projection_groups(self._projections))
        tenants = install_groups(self._process, served, self._authorizer)
        applications = InstalledApplications(self._process, self._applications, self._authorizer)
        groups = installed(tenants)
        self._applications.on_change(lambda: groups.replace([applications.extend(each) for each in tenants]))
        return groups

    def _authenticator(self) -> tuple[UnionAuthenticator, Peers]:
        """Tries request headers, client certificates and bearer tokens in this order (WIRE-A1)."""
        metrics, peers = self._process.metrics, PeerCertificates()
        delegation = self._delegation
        headers = RequestHeaderAuthenticator(
            config=delegation.request_header,
            peers=peers,
            verifier=CertificateVerifier(lambda: delegation.request_header().ca_pem),
        )
        certificates = ClientCertificateAuthenticator(peers=peers, verifier=CertificateVerifier(delegation.client_ca))
        tokens = BearerTokenAuthenticator(
            TokenReviewer(self._review_call(TOKEN_REVIEWS_PATH, "authn")),
            tolerance=self._options.cluster_outage_tolerance,
            on_stale=partial(metrics.stale_decision_used, "tokenreviews"),
        )
        return (
            UnionAuthenticator((headers, certificates, tokens)),
            Peers(is_front_proxy=headers.is_front_proxy, user=certificates.user_of),
        )

    def _access_review(self) -> SubjectAccessReviewAuthorizer:
        return SubjectAccessReviewAuthorizer(
            self._review_call(SUBJECT_ACCESS_REVIEWS_PATH, "authz"),
            tolerance=self._options.cluster_outage_tolerance,
            on_stale=partial(self._process.metrics.stale_decision_used, "subjectaccessreviews"),
        )

    def _review_call(self, path: str, kind: str) -> ReviewCall:
        return count_responses(
            partial(self._cluster.review, path), partial(self._process.metrics.delegated_request, kind)
        )

    def _ca_reload_tasks(self) -> dict[str, Task]:
        """Tasks that reload the CA files named by flags when they change."""
        options, delegation = self._options, self._delegation
        files = {
            "client-ca": (options.client_ca_file, delegation.reload_client_ca),
            "requestheader-ca": (options.requestheader_client_ca_file, delegation.reload_request_header_ca),
        }
        return {
            f"follow-{name}": partial(follow_file, path, reload)
            for name, (path, reload) in files.items()
            if path is not None
        }

    def _replace_client_cas(self, bundle: bytes) -> None:
        if self._tls is not None:
            try:
                self._tls.replace_client_cas(bundle)
            except (OSError, ValueError) as error:
                _logger.warning("cannot use the client CAs, keeping the previous ones: %s", error)


def _authentication_flags(options: ServeOptions) -> ClusterAuthenticationInfo:
    """The authentication settings in flags. Raises UnusableFile, and OSError if a file cannot be read."""
    return ClusterAuthenticationInfo(
        client_ca=read_ca_bundle("--client-ca-file", options.client_ca_file),
        request_header=RequestHeaderConfig(
            ca_pem=read_ca_bundle("--requestheader-client-ca-file", options.requestheader_client_ca_file),
            allowed_names=options.requestheader_allowed_names,
            username_headers=options.requestheader_username_headers,
            uid_headers=options.requestheader_uid_headers,
            group_headers=options.requestheader_group_headers,
            extra_prefixes=options.requestheader_extra_headers_prefix,
        ),
    )


def _certificate_source(options: ServeOptions, cluster: HttpClusterClient) -> CertificateSource:
    service = ServiceReference(namespace=options.service_namespace, name=options.service_name)
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return FileCertificate(options.tls_cert_file, options.tls_private_key_file)
    if options.cert_dir is not None:
        return SelfManagedCertificate(LocalPki(options.cert_dir), service.dns_names)
    return SecretCertificate(ServingCertificate(cluster=cluster, service=service, api_services=API_SERVICES))

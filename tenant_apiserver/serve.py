"""`serve`: the Tenant API behind a cluster's aggregator; the cluster is the host."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import uvloop

from apiserver.authentication.authenticator import UnionAuthenticator
from apiserver.authentication.request_header import RequestHeaderAuthenticator, RequestHeaderConfig
from apiserver.authentication.token_review import BearerTokenAuthenticator, TokenReviewer
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.authorizer import standard_authorizer
from apiserver.authorization.subject_access_review import SubjectAccessReviewAuthorizer
from apiserver.delegation.review_client import ReviewCall, count_responses
from apiserver.meta.errors import StatusError
from apiserver.server.listener import CannotListen, stop_on_signals
from apiserver.storage.event_history import HistoryLimits
from apiserver.tls.file_reload import follow_file
from apiserver.tls.server_context import ServerTls
from controller.platform.settings import PlatformSettings, ReloadableSettings
from registry.cluster.client import HttpClusterClient
from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS, SUBJECT_ACCESS_REVIEWS_PATH, TOKEN_REVIEWS_PATH
from tenant_apiserver import gc_tuning as memory
from tenant_apiserver import log_format as logs
from tenant_apiserver import process as assembly
from tenant_apiserver.certificates import delegated_authentication as delegation
from tenant_apiserver.certificates.cluster_secret import ServiceReference, ServingCertificate
from tenant_apiserver.certificates.delegated_authentication import ClusterAuthenticationInfo, DelegatedAuthentication
from tenant_apiserver.certificates.local_pki import LocalPki, PkiUnusable
from tenant_apiserver.certificates.sources import (
    CertificateSource,
    FileCertificate,
    SecretCertificate,
    SelfManagedCertificate,
)
from tenant_apiserver.options.command_line import ServeOptions
from tenant_apiserver.options.settings_file import SettingsFile, load
from tenant_apiserver.process import Process
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.controllers import ControllerContext, Controllers
from tenant_apiserver.wiring.tenant_api import tenant_api
from tenant_apiserver.wiring.tenant_controller import NAME as TENANT

API_SERVICES = ("v1alpha1.apps.cozystack.io", "v1alpha1.core.cozystack.io")

_logger = logging.getLogger("tenant_apiserver")


def serve(options: ServeOptions) -> int:
    """The exit status: 0 after a signal, 1 if there is no host to serve for, 2 for settings that are wrong."""
    logs.configure(form=options.log_format, verbosity=options.v)
    for deprecation in options.deprecations:
        _logger.warning("%s", deprecation)
    try:
        config = load(options.config)
    except ValueError as error:
        print(f"tenant-apiserver serve: --config: {error}", file=sys.stderr)
        return 2
    return uvloop.run(_serve(options, config))


async def _serve(options: ServeOptions, config: PlatformSettings) -> int:
    # endpoints of a Service take a moment to follow readyz
    process = Process(stages=assembly.stages(delay=1.0))
    try:
        host = await HttpClusterClient.connect(options.kubeconfig, observe=process.metrics.client_request)
    except ValueError as error:
        print(f"tenant-apiserver serve: --kubeconfig: {error}", file=sys.stderr)
        return 1
    admission = ClusterAdmission(host, process.metrics.registry)
    try:
        await _Server(options, config, host, admission, process).run()
    except (CannotListen, PkiUnusable, _CannotStart) as error:
        print(f"tenant-apiserver serve: {error}", file=sys.stderr)
        return 1
    finally:
        await admission.close()
        await host.close()
    return 0


class _CannotStart(Exception):
    """What flags name cannot be used, or what the host must show is refused."""


class _Server:
    def __init__(
        self,
        options: ServeOptions,
        config: PlatformSettings,
        cluster: HttpClusterClient,
        admission: ClusterAdmission,
        process: Process,
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._process = process
        settings, metrics = ReloadableSettings(config), self._process.metrics
        self._config = SettingsFile(options.config, settings)
        access_review = self._access_review()
        self._authorizer = standard_authorizer(access_review)
        self._admission = admission
        self._tenants = tenant_api(
            cluster=cluster,
            root_host=options.root_host,
            settings=settings,
            observe=assembly.admission_observer(metrics),
            cluster_admission=lambda namespaces: self._admission.plugins(
                namespaces=namespaces, authorizer=self._authorizer
            ),
            finalizer=TENANT in options.controllers,
            history=HistoryLimits(size=options.watch_history_size),
            reviews=access_review if options.visibility == "reviews" else None,
        )
        for cache in self._tenants.caches:
            metrics.track_cache(cache)
        self._delegation = DelegatedAuthentication(fixed=_fixed(options), on_change=self._trust)
        self._callers = Informer(
            cluster, CONFIGMAPS, namespace=delegation.NAMESPACE, field_selector=f"metadata.name={delegation.NAME}"
        )
        self._callers.add_handler(self._delegation)
        self._controllers = Controllers(
            ControllerContext(
                cluster=cluster,
                tenants=self._tenants,
                settings=settings,
                metrics=metrics,
            ),
            chosen=options.controllers,
            lease_namespace=options.service_namespace if options.leader_elect else "",
        )
        self._certificate = _certificate(options, cluster)
        self._tls: ServerTls | None = None

    async def run(self) -> None:
        with stop_on_signals(self._process.stop):
            tls = await assembly.run_unless_stopped(self._process, self._prepare())
            if tls is not None:
                await self._run(tls)

    async def _prepare(self) -> ServerTls:
        await self._look_up_callers()
        return await self._obtain_tls()

    async def _look_up_callers(self) -> None:
        """Who may not read the ConfigMap would answer everybody with a 401 for ever, and does not start (WIRE-A10)."""
        if self._options.authentication_tolerate_lookup_failure or self._delegation.set_in_full_by_flags:
            return
        try:
            found = await self._cluster.get(CONFIGMAPS, delegation.NAMESPACE, delegation.NAME)
        except StatusError as error:
            # of anything else the informer tells, goes on looking, and readiness waits for it
            if error.code == 403:
                raise _CannotStart(f"authentication settings of the host: {error.message}") from error
        else:
            await self._delegation.replace([found], 0)

    async def _obtain_tls(self) -> ServerTls:
        """Waits for the host, if that keeps the certificate."""
        try:
            return assembly.TLS_TRANSPORTS[self._options.tls_transport](
                await self._certificate.obtain(),
                self._delegation.current.bundle(),
                on_handshake_error=self._process.metrics.handshake_error,
            )
        except (OSError, ValueError) as error:
            raise _CannotStart(f"serving certificate, key or CA of clients: {error}") from error

    async def _run(self, tls: ServerTls) -> None:
        self._tls = tls
        options, process = self._options, self._process
        audit = assembly.audit_log(options.audit_log_path, process.metrics)
        app = assembly.build(
            process,
            groups=assembly.tenant_groups(self._tenants),
            authenticator=self._authenticator(),
            authorizer=self._authorizer,
            request_headers=self._delegation.request_header,
            max_requests_inflight=options.max_requests_inflight,
            impersonation=False,
            audit=audit.write if audit else None,
        )
        informers = (*self._tenants.informers, *self._admission.informers, self._callers)
        assembly.add_checks(process, informers)
        assembly.add_config_check(process, self._config)
        assembly.add_admission_checks(process, self._admission)
        work: dict[str, Callable[[], Awaitable[None]]] = {
            **assembly.informer_tasks(self._tenants, (*self._admission.informers, self._callers)),
            "serving-certificate": partial(self._certificate.follow, tls),
            "controllers": self._controllers.run,
            "config": self._config.follow,
            "policy-params": self._admission.policies.params.run,
            "memory": partial(memory.freeze_gc, informers),
            "unused-memory": memory.trim_malloc,
            **self._followed_cas(),
        }
        try:
            await assembly.run(process, work, partial(assembly.listen, app, tls, options, process))
        finally:
            if audit:
                await asyncio.to_thread(audit.close)

    def _authenticator(self) -> UnionAuthenticator:
        """In the order of WIRE-A1."""
        metrics, peers = self._process.metrics, PeerCertificates()
        settings = self._delegation
        reviewer = TokenReviewer(self._reviews(TOKEN_REVIEWS_PATH, "authn"))
        return UnionAuthenticator(
            (
                RequestHeaderAuthenticator(
                    config=settings.request_header,
                    peers=peers,
                    verifier=CertificateVerifier(lambda: settings.request_header().ca_pem),
                ),
                ClientCertificateAuthenticator(peers=peers, verifier=CertificateVerifier(settings.client_ca)),
                BearerTokenAuthenticator(
                    reviewer,
                    tolerance=self._options.cluster_outage_tolerance,
                    on_stale=partial(metrics.stale_decision_used, "tokenreviews"),
                ),
            )
        )

    def _access_review(self) -> SubjectAccessReviewAuthorizer:
        return SubjectAccessReviewAuthorizer(
            self._reviews(SUBJECT_ACCESS_REVIEWS_PATH, "authz"),
            tolerance=self._options.cluster_outage_tolerance,
            on_stale=partial(self._process.metrics.stale_decision_used, "subjectaccessreviews"),
        )

    def _reviews(self, path: str, kind: str) -> ReviewCall:
        return count_responses(
            partial(self._cluster.review, path), partial(self._process.metrics.delegated_request, kind)
        )

    def _followed_cas(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """CA files that flags name, read again when they change."""
        options, callers = self._options, self._delegation
        followed = {
            "client-ca": (options.client_ca_file, callers.reload_client_ca),
            "requestheader-ca": (options.requestheader_client_ca_file, callers.reload_request_header_ca),
        }
        return {
            f"follow-{name}": partial(follow_file, path, changed)
            for name, (path, changed) in followed.items()
            if path is not None
        }

    def _trust(self, bundle: bytes) -> None:
        if self._tls is not None:
            try:
                self._tls.replace_client_cas(bundle)
            except (OSError, ValueError) as error:
                _logger.warning("the CAs of clients are not usable, the old ones stay: %s", error)


def _fixed(options: ServeOptions) -> ClusterAuthenticationInfo:
    """What flags say of callers. Raises OSError if a file is gone."""
    client_ca, proxy_ca = options.client_ca_file, options.requestheader_client_ca_file
    return ClusterAuthenticationInfo(
        client_ca=client_ca.read_bytes() if client_ca else b"",
        request_header=RequestHeaderConfig(
            ca_pem=proxy_ca.read_bytes() if proxy_ca else b"",
            allowed_names=options.requestheader_allowed_names,
            username_headers=options.requestheader_username_headers,
            uid_headers=options.requestheader_uid_headers,
            group_headers=options.requestheader_group_headers,
            extra_prefixes=options.requestheader_extra_headers_prefix,
        ),
    )


def _certificate(options: ServeOptions, cluster: HttpClusterClient) -> CertificateSource:
    service = ServiceReference(namespace=options.service_namespace, name=options.service_name)
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return FileCertificate(options.tls_cert_file, options.tls_private_key_file)
    if options.cert_dir is not None:
        return SelfManagedCertificate(LocalPki(options.cert_dir), service.dns_names)
    return SecretCertificate(ServingCertificate(cluster=cluster, service=service, api_services=API_SERVICES))

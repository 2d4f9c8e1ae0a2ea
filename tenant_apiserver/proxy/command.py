"""The `proxy` command."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from functools import partial

from aiohttp import web

from apiserver.audit import AuditLog
from apiserver.authentication.authenticator import Authenticator, UnionAuthenticator
from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authentication.token_review import BearerTokenAuthenticator, TokenReviewer
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.subject_access_review import SubjectAccessReviewAuthorizer
from apiserver.delegation.review_client import ReviewCall, count_responses
from apiserver.server import event_loop
from apiserver.server import listener as serving
from apiserver.server.healthz import READINESS
from apiserver.server.listener import CannotListen, ConnectionLimits, Listener, stop_on_signals
from apiserver.tls.file_reload import follow_file
from apiserver.tls.server_context import ServerTls
from registry.cluster.interface import SUBJECT_ACCESS_REVIEWS_PATH, TOKEN_REVIEWS_PATH
from registry.cluster.upstream import UpstreamClient
from registry.visibility.visible_objects import NamedObjects
from tenant_apiserver import __version__, log_format
from tenant_apiserver.certificates.delegated_authentication import ClusterAuthenticationInfo, DelegatedAuthentication
from tenant_apiserver.certificates.local_pki import LocalPki, PkiUnusable
from tenant_apiserver.certificates.pem_files import read_ca_bundle
from tenant_apiserver.certificates.sources import CertificateSource, FileCertificate, SelfManagedCertificate
from tenant_apiserver.gc_tuning import trim_malloc
from tenant_apiserver.options.flag import with_value
from tenant_apiserver.options.proxy import ProxyOptions
from tenant_apiserver.process import (
    TLS_TRANSPORTS,
    Process,
    Task,
    add_checks,
    open_audit_log,
    run_server,
    run_unless_stopped,
    shutdown_stages,
)
from tenant_apiserver.proxy.chain import ProxyParts, proxy_application
from tenant_apiserver.proxy.claimed_volumes import ClaimedVolumes
from tenant_apiserver.proxy.client_ca import ClusterClientCa
from tenant_apiserver.proxy.configured_kinds import ConfiguredKinds
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tenant_apiserver.proxy.merged.answers import MergedAnswers
from tenant_apiserver.proxy.merged.watch_rights import WatchRights
from tenant_apiserver.proxy.merged.widened_watches import WidenedWatches
from tenant_apiserver.proxy.named_lists import NamedLists
from tenant_apiserver.proxy.namespace_lists import NamespaceLists
from tenant_apiserver.proxy.namespaced_lists import NamespacedLists
from tenant_apiserver.proxy.own_account import OwnAccount
from tenant_apiserver.proxy.own_kind import OwnKind, OwnKinds
from tenant_apiserver.proxy.own_rights import (
    ACCESS_REVIEWS,
    CLIENT_CA,
    FORWARDING,
    TOKEN_REVIEWS,
    OwnRights,
    telling_refusal,
)
from tenant_apiserver.proxy.selected_lists import SelectedLists
from tenant_apiserver.proxy.socket_token import SocketTokenAuthenticator
from tenant_apiserver.state_metrics import export_state
from tenant_apiserver.wiring.visibility import RbacSources, rbac_sources

_logger = logging.getLogger("tenant_apiserver")
# watches and streams, and idle connections, of one user
_CONNECTIONS_PER_REQUEST = 6


def proxy(options: ProxyOptions) -> int:
    """Returns the exit status: 0 after a signal, 1 if the proxy cannot start."""
    log_format.configure(form=options.log_format, verbosity=options.v)
    return event_loop.run(_proxy(options))


async def _proxy(options: ProxyOptions) -> int:
    process = Process(stages=shutdown_stages(delay=1.0))
    try:
        upstream = await UpstreamClient.connect(options.kubeconfig, observe=process.metrics.client_request)
    except ValueError as error:
        print(f"tenant-apiserver proxy: {with_value('--kubeconfig', options.kubeconfig)}: {error}", file=sys.stderr)
        return 1
    try:
        await _ProxyServer(options, upstream, process).run()
    except (CannotListen, PkiUnusable, OSError, ValueError) as error:
        problem = error.describe("--secure-port") if isinstance(error, CannotListen) else error
        print(f"tenant-apiserver proxy: {problem}", file=sys.stderr)
        return 1
    finally:
        await upstream.close()
    return 0


class _ProxyServer:
    def __init__(self, options: ProxyOptions, upstream: UpstreamClient, process: Process) -> None:
        self._options = options
        self._upstream = upstream
        self._process = process
        self._tls: ServerTls | None = None
        ca = options.client_ca_file
        self._delegation = DelegatedAuthentication(
            from_flags=ClusterAuthenticationInfo(
                client_ca=read_ca_bundle("--client-ca-file", ca), request_header=RequestHeaderConfig()
            ),
            on_change=self._replace_client_cas,
        )
        self._client_ca = None if ca else ClusterClientCa(upstream, self._delegation)
        self._kinds = ConfiguredKinds(upstream, options.config)
        self._account = OwnAccount(upstream)
        rights = (*FORWARDING, TOKEN_REVIEWS, ACCESS_REVIEWS, *(() if ca else (CLIENT_CA,)))
        self._rights = OwnRights(upstream, rights, self._account)
        self._refusals = ImpersonationRefusals(lambda: self._account.name, self._rights.refused)
        self._reviews = SubjectAccessReviewAuthorizer(
            self._review_call(SUBJECT_ACCESS_REVIEWS_PATH, "authz", "review access"),
            tolerance=0.0,
            on_stale=lambda: None,
        )
        rbac = rbac_sources(upstream)
        self._namespaces = NamespaceLists(upstream, rbac, process, self._reviews)
        self._volumes = (
            ClaimedVolumes(upstream, rbac, process, self._reviews)
            if options.config.persistent_volumes_by_claim
            else None
        )
        by_index: Sequence[OwnKind] = (self._namespaces, *([self._volumes] if self._volumes else []))
        answers = MergedAnswers(upstream, self._refusals, rbac.history, shutdown=process.stages.shutdown)
        watched = WatchRights(rbac)
        self._own_kinds = OwnKinds((*by_index, *self._merged_kinds(answers, watched, rbac)))
        self._widened = WidenedWatches(answers, watched, options.config.answered_kinds, synced=rbac.synced)

    async def run(self) -> None:
        """Raises CannotListen, PkiUnusable, and OSError or ValueError for unusable files."""
        certificate = _certificate_source(self._options)
        with stop_on_signals(self._process.stop):
            pair = await run_unless_stopped(self._process, certificate.obtain())
            if pair is None:
                return
            transport = TLS_TRANSPORTS[self._options.tls_transport]
            self._tls = transport(
                pair,
                self._delegation.current.client_ca,
                on_handshake_error=self._process.metrics.handshake_error,
            )
            await self._serve(self._tls, certificate)

    async def _serve(self, tls: ServerTls, certificate: CertificateSource) -> None:
        process, informers = self._process, self._namespaces.informers
        audit = open_audit_log(self._options.audit_log_path, process.metrics)
        app, peers = self._application(audit)
        add_checks(process, informers)
        others = (
            *(self._volumes.informers if self._volumes else ()),
            *(self._client_ca.informers if self._client_ca else ()),
        )
        export_state(process, tls, (*informers, *others))
        self._add_own_checks()
        tasks: dict[str, Task] = {
            **self._namespaces.tasks,
            **(self._volumes.tasks if self._volumes else {}),
            **self._client_ca_tasks(),
            "own-account": self._account.find,
            "own-rights": self._rights.follow,
            "configured-kinds": self._kinds.follow,
            "serving-certificate": partial(certificate.follow, tls),
            "unused-memory": trim_malloc,
        }
        try:
            await run_server(process, tasks, partial(self._listen, app, tls, peers))
        finally:
            if audit:
                await asyncio.to_thread(audit.close)

    def _add_own_checks(self) -> None:
        health = self._process.health
        health.add("own-account", self._account.check, endpoints=READINESS)
        health.add("own-rights", self._rights.check, endpoints=READINESS)
        if self._client_ca:
            health.add("client-ca", self._client_ca.check, endpoints=READINESS)
        health.add("config", self._kinds.describe, endpoints=READINESS)

    def _application(self, audit: AuditLog | None) -> tuple[web.Application, Peers]:
        certificates, authenticator = self._authenticators()
        parts = ProxyParts(
            upstream=self._upstream,
            process=self._process,
            authenticator=authenticator,
            authorizer=self._reviews,
            own_account=lambda: self._account.name,
            own_answer=self._own_kinds.handler,
            expired=self._widened.handler,
            refusals=self._refusals,
            audit=audit.write if audit else None,
            is_served=self._kinds.is_served,
        )
        return proxy_application(parts, self._options), Peers(user=certificates.user_of)

    def _authenticators(self) -> tuple[ClientCertificateAuthenticator, UnionAuthenticator]:
        """Client certificates, then bearer tokens. Identity headers are no credential here: they are dropped."""
        peers, metrics = PeerCertificates(), self._process.metrics
        certificates = ClientCertificateAuthenticator(
            peers=peers, verifier=CertificateVerifier(self._delegation.client_ca)
        )
        tokens = BearerTokenAuthenticator(
            TokenReviewer(self._review_call(TOKEN_REVIEWS_PATH, "authn", "review tokens")),
            tolerance=self._options.cluster_outage_tolerance,
            on_stale=partial(metrics.stale_decision_used, "tokenreviews"),
        )
        all_of_them: tuple[Authenticator, ...] = (certificates, tokens, SocketTokenAuthenticator(tokens))
        return certificates, UnionAuthenticator(all_of_them)

    async def _listen(self, app: web.Application, tls: ServerTls, peers: Peers) -> Listener:
        options, process = self._options, self._process
        listener = await serving.listen(
            app,
            tls=tls,
            host=options.bind_address,
            port=options.secure_port,
            grace=process.stages.grace,
            limits=ConnectionLimits(per_user=_CONNECTIONS_PER_REQUEST * options.max_requests_inflight),
            bytes_in_flight=process.bytes_in_flight,
            peers=peers,
        )
        _logger.info("tenant-apiserver %s proxy listens on port %d", __version__, listener.port)
        return listener

    def _review_call(self, path: str, kind: str, what: str) -> ReviewCall:
        counted = count_responses(
            partial(self._upstream.review, path), partial(self._process.metrics.delegated_request, kind)
        )
        return telling_refusal(counted, what, self._rights.refused)

    def _merged_kinds(self, answers: MergedAnswers, rights: WatchRights, rbac: RbacSources) -> Sequence[OwnKind]:
        config, most = self._options.config, self._options.max_namespaces
        return (
            NamespacedLists(answers, rights, config.namespaced_kinds, max_namespaces=most),
            SelectedLists(self._upstream, config.selected, shutdown=self._process.stages.shutdown),
            NamedLists(answers, WatchRights(rbac, NamedObjects.OBJECTS), config.cluster_kinds),
        )

    def _client_ca_tasks(self) -> dict[str, Task]:
        """The CA of client certificates is followed in the file of the flag, or else in the cluster."""
        if self._options.client_ca_file is not None:
            path, reload = self._options.client_ca_file, self._delegation.reload_client_ca
            return {"follow-client-ca": partial(follow_file, path, reload)}
        return {"informer-client-ca": self._client_ca.run} if self._client_ca else {}

    def _replace_client_cas(self, bundle: bytes) -> None:
        if self._tls is not None:
            try:
                self._tls.replace_client_cas(self._delegation.current.client_ca)
            except (OSError, ValueError) as error:
                _logger.warning("cannot use the client CAs, keeping the previous ones: %s", error)


def _certificate_source(options: ProxyOptions) -> CertificateSource:
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return FileCertificate(options.tls_cert_file, options.tls_private_key_file)
    assert options.cert_dir is not None
    return SelfManagedCertificate(LocalPki(options.cert_dir), options.serving_names)

"""Builds the API of the kinds that ApplicationDefinitions describe. They come and go while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from admission.cel.library.regex import matches
from admission.cel.schema_rules import SchemaRuleCompiler
from admission.chain import Chain, DurationObserver, Plugin
from admission.complete_caches import CompleteCaches
from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import ClusterNamespaces, NamespaceSource
from admission.owner_references import OwnerReferencesPermissionEnforcement
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from apiserver.metrics import Metrics
from apiserver.storage.event_history import HistoryLimits
from apiserver.storage.watch_cache import WatchCache
from controller.application.kept_forms_writer import KeptFormsReader
from controller.runtime.event_recorder import Recorder
from registry.application.convert import ReleaseDefaults
from registry.application.definition import ApplicationDefinition
from registry.application.feed import ReleaseRouter
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.application.kept_forms import read_sources
from registry.application.kinds import ApplicationKinds, ApplicationParts, ServedApplication
from registry.application.release_cache import ReleaseCache
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import Availability, InformerFactory
from registry.cluster.interface import APPLICATIONDEFINITIONS, CONFIGMAPS, ClusterResource
from registry.names import GROUP
from registry.tenant.release_settings import ReleaseSettings
from tenant_apiserver.options.command_line import CommonOptions
from tenant_apiserver.wiring.applications.reports import ApplicationCollector, ApplicationReports
from tenant_apiserver.wiring.owner_references import DiscoveredKinds
from tenant_apiserver.wiring.policies import DiscoverableCluster
from tenant_apiserver.wiring.releases import APPLICATIONS
from tenant_apiserver.wiring.tenant_api import TenantApi


@dataclass(frozen=True, kw_only=True)
class ApplicationApiConfig:
    """The parameters of an ApplicationApi."""

    cluster: DiscoverableCluster
    tenants: TenantApi
    authorizer: Authorizer
    metrics: Metrics
    observe: DurationObserver
    cluster_admission: Callable[[NamespaceSource], Sequence[Plugin]]
    """Returns the plugins that run last."""
    admission_informers: Sequence[Informer]
    defaults: Callable[[], ReleaseDefaults] = ReleaseDefaults
    history: HistoryLimits = field(default_factory=HistoryLimits)
    home: str = "cozy-system"
    """The namespace of the ConfigMap that keeps the forms in force across restarts."""


def release_defaults(options: CommonOptions, settings: ReleaseSettings) -> ReleaseDefaults:
    """Defaults of the HelmReleases of applications. Those without a flag of their own are the same as for Tenants."""
    history = options.helmrelease_max_history
    return ReleaseDefaults(
        interval=options.helmrelease_interval or settings.interval,
        retry_interval=options.helmrelease_retry_interval or settings.retry_interval,
        install_timeout=options.helmrelease_install_timeout,
        upgrade_timeout=options.helmrelease_upgrade_timeout,
        max_history=history if history is not None else settings.max_history,
        values_secret=settings.values_secret,
    )


class ApplicationApi(NoOpEventHandler):
    """Follows the ApplicationDefinitions of the cluster, which may begin to serve them at any time, or never.

    `on_change` is called after the kinds that are served have changed; the caller runs `run`.
    """

    def __init__(self, config: ApplicationApiConfig) -> None:
        self._config = config
        self._definitions: dict[str, Object] = {}
        self._changed = asyncio.Event()
        self._followed = asyncio.Event()
        self._found = asyncio.Event()
        self._error: StatusError | None = None
        self._listed = False
        self._on_followed: list[Callable[[], None]] = []
        self._informers = InformerFactory(config.cluster)
        self._available: Availability = self._informers.watch_availability(
            APPLICATIONDEFINITIONS.group,
            APPLICATIONDEFINITIONS.kind,
            [APPLICATIONDEFINITIONS.version],
            plural=APPLICATIONDEFINITIONS.plural,
            namespaced=False,
        )
        self._available.subscribe(self._follow_definitions, on_error=self.set_cluster_error)
        self._releases = config.tenants.releases
        router = ReleaseRouter(store=self._releases.store, retry=self._releases.retry_now)
        config.tenants.release_events.subscribe(APPLICATIONS, router)
        self.router = router
        """Gets every change of a HelmRelease of an application."""
        self._kinds = ApplicationKinds(self._parts(router))
        self._reports = ApplicationReports(self._kinds, router.unserved)
        self._kinds.on_states = lambda: self._reports.tell_states(self._definitions)
        ApplicationCollector(config.metrics.registry, self._kinds, router.unserved)
        self._chain_end = tuple(config.cluster_admission(self._namespaces))
        self._kept_forms = Informer(
            config.cluster,
            CONFIGMAPS,
            namespace=config.home,
            field_selector=f"metadata.name={KEPT_FORMS}",
            store_objects=False,
        )
        self.kept_forms = KeptFormsReader()
        """Reads the forms that were in force when a process last led. The FormsKeeper of the leader writes them."""
        self.kept_forms.on_change = self._changed.set
        self._kept_forms.add_handler(self.kept_forms)
        self.leads: Callable[[], bool] = lambda: False
        """True while this process writes the forms in force, and so takes over none from another."""

    def _parts(self, router: ReleaseRouter) -> ApplicationParts:
        config = self._config
        self._namespaces = ClusterNamespaces(cluster=config.cluster, lister=config.tenants.namespaces.store)
        return ApplicationParts(
            cluster=config.cluster,
            router=router,
            releases=ReleaseCache(self._releases.store),
            compiler=SchemaRuleCompiler(),
            matches=matches,
            caches=lambda resource: WatchCache(resource, history=config.history),
            visibility=partial(config.tenants.visibility.resources, GROUP),
            defaults=config.defaults,
        )

    @property
    def recorder(self) -> Recorder:
        """Gets an Event about each definition that cannot be served as it is, and when it is mended."""
        return self._reports.recorder

    @recorder.setter
    def recorder(self, recorder: Recorder) -> None:
        self._reports.recorder = recorder

    @property
    def home(self) -> str:
        return self._config.home

    def release_name(self, kind: str, name: str) -> str | None:
        """The name of the HelmRelease of an application; None if the kind is not served."""
        found = (each.definition.names for each in self._kinds.served.values() if each.definition.kind == kind)
        return next((names.release_name(name) for names in found), None)

    @property
    def forms(self) -> Mapping[str, ApplicationDefinition] | None:
        """The forms in force by the names of their definitions, None until they are known."""
        return self._kinds.in_force if self._followed.is_set() else None

    @property
    def releases(self) -> Informer:
        """The informer of HelmReleases, which is that of Tenants."""
        return self._releases

    @property
    def served(self) -> Sequence[ServedApplication]:
        """The kinds that are served now. Those that are served as before are the same objects."""
        return tuple(self._kinds.served.values())

    def default_of(self, kind: str, field: str) -> str:
        """The default of a field at the top of the spec, empty if there is none or the kind is not served."""
        for each in self.served:
            if each.definition.kind == kind:
                schema = (each.definition.schema.get("properties") or {}).get(field) or {}
                return str(schema.get("default") or "")
        return ""

    def on_change(self, listener: Callable[[], None]) -> None:
        def changed() -> None:
            for each in self.served:
                self._config.metrics.track_cache(each.feed.cache)
            listener()

        self._kinds.on_change = changed

    def admission(self, application: ServedApplication) -> Chain:
        """The chain of one kind."""
        config = self._config
        complete = [each.complete for each in (config.tenants.namespaces, *config.admission_informers)]
        owners = OwnerReferencesPermissionEnforcement(
            resource=application.definition.names.resource,
            authorizer=config.authorizer,
            kinds=DiscoveredKinds(config.cluster),
        )
        first = (CompleteCaches(complete), NamespaceLifecycle(namespaces=self._namespaces), owners)
        return Chain((*first, *self._chain_end), observe=config.observe)

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informer-applicationdefinitions")
            group.create_task(self._run_when_found(self._kept_forms), name="informer-application-kinds")
            group.create_task(self._follow_changes(), name="applications")
            group.create_task(self._tell_unserved(), name="unserved-applications")

    async def _run_when_found(self, informer: Informer) -> None:
        await self._found.wait()
        await informer.run()

    async def _follow_changes(self) -> None:
        await self.kept_forms.settled.wait()
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._listed:
                await self._follow()

    async def _follow(self) -> None:
        kept = self.kept_forms.take()
        definitions = dict(self._definitions)
        if kept is not None and not (self._followed.is_set() and self.leads()):
            await self._kinds.adopt(read_sources(kept, definitions.keys()))
        await self._kinds.follow(definitions)
        self._followed.set()
        for listener in self._on_followed:
            listener()
        if self._releases.synced.is_set():
            self._reports.tell_unserved()

    async def _tell_unserved(self) -> None:
        """Tells what is not served at start: definitions are followed before HelmReleases are known."""
        await self._releases.synced.wait()
        await self._followed.wait()
        self._reports.tell_unserved()

    def on_followed(self, listener: Callable[[], None]) -> None:
        """`listener` is called whenever `forms` may have changed."""
        self._on_followed.append(listener)

    def describe(self) -> str:
        """For readiness: which definitions are not served. Raises RuntimeError until the kinds are known."""
        if self._available.resource is None:
            if self._error is not None:
                return f"ApplicationDefinitions cannot be read: {self._error}"
            if not self._available.checked.is_set():
                raise RuntimeError("ApplicationDefinitions have not been looked up yet")
            return "ApplicationDefinitions are not served, so Tenants are the only kind"
        if not self._followed.is_set() or not self._releases.synced.is_set():
            if self._error is not None:
                return f"ApplicationDefinitions cannot be read: {self._error}"
            raise RuntimeError("applications have not been read yet")
        return "; ".join(self._reports.problems())

    def summary(self) -> str:
        """For the log: how many kinds are served. Empty if the cluster has no definitions."""
        return self._reports.summary() if self._followed.is_set() else ""

    # of the informer of ApplicationDefinitions

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self._error = None
        self._listed = True
        self._definitions = {each["metadata"]["name"]: each for each in items}
        self._changed.set()

    def apply(self, type: str, obj: Object, rv: int) -> None:
        name = obj["metadata"]["name"]
        if type == "DELETED":
            self._definitions.pop(name, None)
        else:
            self._definitions[name] = obj
        self._changed.set()

    def set_cluster_error(self, error: StatusError | None) -> None:
        self._error = error

    def _follow_definitions(self, found: ClusterResource) -> None:
        self._error = None
        self._found.set()
        self._informers.get(found, store_objects=False).add_handler(self)

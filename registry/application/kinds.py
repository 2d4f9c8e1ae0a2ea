"""The kinds that are served now: each definition with its storage. They follow the definitions of the cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Object, Resource
from apiserver.schema.rules import RuleCompiler
from apiserver.schema.validation import Matches
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from registry.application.catalogue import Catalogue, DefinitionState, UnreadableForm, resolve
from registry.application.convert import ApplicationConversion, ReleaseDefaults
from registry.application.definition import ApplicationDefinition, source_of
from registry.application.feed import ApplicationFeed, ReleaseRouter
from registry.application.forms import read_form
from registry.application.release_backend import ReleaseBackend
from registry.application.release_cache import ReleaseCache
from registry.application.strategy import ApplicationStrategy
from registry.application.types import application_resource
from registry.application.validation import ApplicationValidation
from registry.cluster.interface import ClusterClient
from registry.generic.store import Store

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ApplicationParts:
    """The parts that all kinds share. `visibility` returns the source of a resource by its plural name."""

    cluster: ClusterClient
    router: ReleaseRouter
    releases: ReleaseCache
    compiler: RuleCompiler
    matches: Matches
    caches: Callable[[Resource], WatchCache]
    visibility: Callable[[str], VisibilitySource]
    defaults: Callable[[], ReleaseDefaults] = ReleaseDefaults


@dataclass(frozen=True, kw_only=True, eq=False)
class ServedApplication:
    """A kind with its storage."""

    conversion: ApplicationConversion
    feed: ApplicationFeed
    store: Store

    @property
    def definition(self) -> ApplicationDefinition:
        return self.conversion.definition


class ApplicationKinds:
    """`on_change` is called after the kinds that are served have changed, and `on_states` whenever it has been decided
    which forms are."""

    def __init__(self, parts: ApplicationParts) -> None:
        self._parts = parts
        self._served: dict[str, ServedApplication] = {}
        self._latest: dict[str, tuple[Object, ApplicationDefinition | UnreadableForm]] = {}
        self._in_force: Mapping[str, ApplicationDefinition] = {}
        self.on_change: Callable[[], None] = _nothing
        self.on_states: Callable[[], None] = _nothing
        self.states: Sequence[DefinitionState] = ()

    @property
    def served(self) -> Mapping[str, ServedApplication]:
        """The kinds by the names of their definitions."""
        return self._served

    @property
    def in_force(self) -> Mapping[str, ApplicationDefinition]:
        """The forms that are served, by the names of their definitions. Replaced when it changes."""
        return self._in_force

    async def adopt(self, sources: Iterable[tuple[str, Object]]) -> None:
        """Takes these forms for those in force, from the next `follow` on: what another replica has decided, or this
        one before it was started anew. Forms that cannot be read any more, and of other definitions, do not count.
        `sources` are read in a thread."""

        def read() -> dict[str, ApplicationDefinition]:
            found = ((name, self._parse_one(each)) for name, each in sources)
            return {name: form for name, form in found if isinstance(form, ApplicationDefinition)}

        adopted = await asyncio.to_thread(read)
        self._in_force = adopted | {name: each for name, each in self._in_force.items() if name not in adopted}

    async def follow(self, definitions: Mapping[str, Object]) -> None:
        """Serves these definitions and no others. Calls must not overlap, nor with `adopt`."""
        catalogue = await self._catalogue(definitions)
        changed = False
        for name in [name for name in self._served if name not in catalogue.served]:
            self._end(self._served.pop(name))
            changed = True
        for name, definition in catalogue.served.items():
            changed = await self._serve(name, definition) or changed
        if changed:
            self.on_change()
        self.states = catalogue.states
        self.on_states()

    async def _catalogue(self, definitions: Mapping[str, Object]) -> Catalogue:
        sources = {name: source_of(each) for name, each in definitions.items()}
        known = {name: each for name, each in self._latest.items() if each[0] == sources.get(name)}
        unread = {name: each for name, each in sources.items() if name not in known}
        # schemas are large, and their patterns are compiled
        read = await asyncio.to_thread(lambda: {name: (each, self._parse_one(each)) for name, each in unread.items()})
        self._latest = known | read
        # one of the same name that was created anew is another definition
        current = {
            name: each
            for name, each in self._in_force.items()
            if name in sources and each.uid == sources[name]["metadata"]["uid"]
        }
        catalogue = resolve({name: found for name, (_, found) in self._latest.items()}, current)
        self._in_force = catalogue.served
        return catalogue

    def _parse_one(self, source: Object) -> ApplicationDefinition | UnreadableForm:
        return read_form(source, self._parts.matches, self._parts.compiler, on_unforeseen=_log_unforeseen)

    async def _serve(self, name: str, definition: ApplicationDefinition) -> bool:
        """Returns False if clients see the same API as before."""
        current = self._served.get(name)
        if current is not None and current.definition.is_served_like(definition):
            current.conversion.definition = definition
            return False
        new = self._new(definition)
        await self._parts.router.add(new.feed)
        self._served[name] = new
        if current is not None:
            self._end(current)
        return True

    def _new(self, definition: ApplicationDefinition) -> ServedApplication:
        parts = self._parts
        resource = application_resource(definition)
        conversion = ApplicationConversion(definition, parts.defaults)
        cache = parts.caches(resource)
        feed = ApplicationFeed(cache=cache, conversion=conversion, router=parts.router)
        validation = ApplicationValidation(definition.schema, compiler=parts.compiler, matches=parts.matches)
        backend = ReleaseBackend(
            cluster=parts.cluster, cache=cache, feed=feed, releases=parts.releases, conversion=conversion
        )
        strategy = ApplicationStrategy(resource, definition, validation)
        store = Store(
            backend=backend,
            strategy=strategy,
            visibility=parts.visibility(definition.plural),
            shown=strategy.shown,
        )
        return ServedApplication(conversion=conversion, feed=feed, store=store)

    def _end(self, served: ServedApplication) -> None:
        """Watches end, and clients start them again if there is a new form of the kind."""
        self._parts.router.remove(served.feed)
        served.feed.cache.expire()


def _log_unforeseen(name: str) -> None:
    _logger.exception("ApplicationDefinition %s cannot be read", name)


def _nothing() -> None:
    pass

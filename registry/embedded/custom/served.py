"""A kind as its CustomResourceDefinition declares it, with its storages: a backend for each served version."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property

from apiserver import rest
from apiserver.encoding.encoded_object import to_json
from apiserver.json.values import deep_copy
from apiserver.meta import errors
from apiserver.meta.resource import Object, Resource, Schema
from apiserver.request.context import RequestContext
from apiserver.schema.pruning_and_defaulting import DefaultsTooLarge, apply_defaults, object_schema, prune
from apiserver.schema.rules import RuleCompiler
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.custom.definition import CustomDefinition, CustomVersion, ScalePaths
from registry.embedded.custom.scale import ScaleStorage
from registry.embedded.custom.strategies import CustomStatusStrategy, CustomStrategy
from registry.embedded.custom.validation import CustomValidation
from registry.embedded.storage.storages import SubresourceStorage
from registry.generic.store import Store
from registry.sqlite.backend import IdentityConversion, SqliteBackend
from registry.sqlite.database import Database


class CustomStore(Store):
    """No object is created while the definition is being deleted, or once it is, also by a request that was admitted
    meanwhile: it would appear with the next definition of the name."""

    def __init__(self, *, backend: SqliteBackend, strategy: CustomStrategy, is_terminating: Callable[[], bool]) -> None:
        super().__init__(backend=backend, strategy=strategy)
        self._is_terminating = is_terminating

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        @asynccontextmanager
        async def validate_and_check_again(new: Object | None, old: Object | None) -> AsyncIterator[None]:
            async with validate(new, old):
                self._check_definition(obj)
                yield

        self._check_definition(obj)
        return await super().create(context, obj, validate_and_check_again, dry_run=dry_run)

    def _check_definition(self, obj: Object) -> None:
        """Raises Forbidden."""
        if self._is_terminating():
            why = "create not allowed while custom resource definition is terminating"
            raise errors.Forbidden(self.resource.group_resource, obj["metadata"].get("name") or "", why)


@dataclass(frozen=True, slots=True)
class ServedCustomVersion:
    resource: Resource
    version: CustomVersion
    backend: SqliteBackend
    validation: CustomValidation
    is_terminating: Callable[[], bool]

    def storages(self) -> Iterator[tuple[str, rest.Storage]]:
        """Yields the storages by 'resource[/subresource]'."""
        plural = self.resource.plural
        strategy = CustomStrategy(self.resource, self.version, self.validation)
        store = CustomStore(backend=self.backend, strategy=strategy, is_terminating=self.is_terminating)
        yield plural, store
        if self.version.status:
            status = CustomStatusStrategy(self.resource, self.validation)
            yield f"{plural}/status", SubresourceStorage(Store(backend=self.backend, strategy=status))
        if self.version.scale is not None:
            yield f"{plural}/scale", ScaleStorage(store, self.version.scale)


@dataclass(frozen=True)
class ServedCustomKind:
    """`primary` is the backend of the preferred version, or of the stored one if none is served."""

    definition: CustomDefinition
    versions: tuple[ServedCustomVersion, ...]
    primary: SqliteBackend

    @property
    def backends(self) -> Sequence[SqliteBackend]:
        return [each.backend for each in self.versions] or [self.primary]

    @cached_property
    def storages(self) -> Mapping[tuple[str, str], Mapping[str, rest.Storage]]:
        """The storages by (group, version) and then by 'resource[/subresource]'."""
        group = self.definition.group
        return {(group, each.version.name): dict(each.storages()) for each in self.versions}


def serve_definition(
    definition: CustomDefinition,
    *,
    database: Database,
    caches: Callable[[Resource], WatchCache],
    compiler: RuleCompiler,
    stored_since: int,
    is_terminating: Callable[[], bool],
) -> ServedCustomKind:
    """Creates the backends of a definition, which must be loaded before they are used. Objects with a resourceVersion
    above `stored_since` were stored under this definition."""

    stored_fields = _fields(definition.storage)

    def backend(version: CustomVersion, resource: Resource) -> SqliteBackend:
        return SqliteBackend(
            database=database,
            resource=resource,
            cache=caches(resource),
            conversion=None if _fields(version) == stored_fields else _PruningConversion(resource),
            complete=_Defaults(resource, stored_since),
        )

    versions: list[ServedCustomVersion] = []
    validations: dict[tuple[bytes, ScalePaths | None], CustomValidation] = {}
    for version in definition.versions:
        resource = definition.resource(version)
        # versions often have the same schema, which is compiled once; comparing each with all others would stall
        alike = to_json(version.schema), version.scale
        if (validation := validations.get(alike)) is None:
            validation = validations[alike] = CustomValidation(version, compiler)
        served = ServedCustomVersion(resource, version, backend(version, resource), validation, is_terminating)
        versions.append(served)
    if versions:
        return ServedCustomKind(definition, tuple(versions), versions[0].backend)
    stored = definition.storage
    return ServedCustomKind(definition, (), backend(stored, definition.resource(stored)))


def _fields(version: CustomVersion) -> bytes:
    """Is equal for versions with the same fields. There may be hundreds, and to compare JSON is fast."""
    return to_json(version.schema.get("properties"))


class _PruningConversion(IdentityConversion):
    """The conversion None between versions with different schemas: only the fields of the version are served."""

    def __init__(self, resource: Resource) -> None:
        self._schema = object_schema(resource)

    def to_served(self, stored: Object) -> Object:
        pruned: Object = prune(self._schema, stored)
        _apply_defaults_if_few(self._schema, pruned)
        return pruned


class _Defaults:
    """Sets the defaults of fields that the schema did not have when an object was stored."""

    def __init__(self, resource: Resource, stored_since: int) -> None:
        self._schema = object_schema(resource)
        self._stored_since = stored_since

    def __call__(self, obj: Object) -> None:
        if int(obj["metadata"]["resourceVersion"]) < self._stored_since:
            _apply_defaults_if_few(self._schema, obj)


def _apply_defaults_if_few(schema: Schema, obj: Object) -> None:
    """Applies defaults in place to a stored object, all or none: what is shown depends on the object alone."""
    defaulted = deep_copy(obj)
    with suppress(DefaultsTooLarge):
        apply_defaults(schema, defaulted)
        obj.update(defaulted)
        for name in obj.keys() - defaulted.keys():
            del obj[name]

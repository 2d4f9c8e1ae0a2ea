"""The request scope: the endpoint that a handler serves (handlers.RequestScope). The installer creates one each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from apiserver import rest
from apiserver.admission import Admission, Attributes, Operation
from apiserver.authorization.authorizer import Authorizer
from apiserver.encoding.offload import json_size, offload_if_large
from apiserver.fieldmanager.field_manager import FieldManager, managed_fields_error
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query

_INVALID_MANAGED_FIELDS = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests"
)


@dataclass(frozen=True, kw_only=True)
class RequestScope:
    resource: Resource
    subresource: str
    storage: rest.Storage
    admission: Admission
    authorizer: Authorizer
    field_manager: FieldManager
    shutdown: asyncio.Event
    events_sent: Callable[[int], None]

    def key(self, context: RequestContext) -> Key:
        info = context.info
        return Key(info.namespace if self.resource.namespaced else "", info.name)

    def namespace(self, context: RequestContext) -> str:
        return context.info.namespace if self.resource.namespaced else ""

    async def mutate(
        self,
        context: RequestContext,
        operation: Operation,
        new: Object,
        old: Object | None,
        options: Mapping[str, Any],
    ) -> Object:
        """Run mutating admission. It cannot change the namespace (WIRE-H52), and its changes of managedFields are
        ignored if they are invalid (WIRE-G42). Raises BadRequest, and the errors of admission."""
        admitted = await self.admission.mutate(self._attributes(context, operation, new, old, options))
        if admitted is new:
            return new
        return await offload_if_large(
            partial(_restore_protected_metadata, context, admitted, new), size=json_size(admitted)
        )

    def validate(self, context: RequestContext, operation: Operation, options: Mapping[str, Any]) -> rest.ValidateFunc:
        """Validating admission of one operation, as the context manager that the storage enters around its write."""

        @asynccontextmanager
        async def validate(new: Object | None, old: Object | None) -> AsyncIterator[None]:
            attributes = self._attributes(context, operation, new, old, options)
            async with self.admission.validating(attributes):
                yield

        return validate

    def _attributes(
        self,
        context: RequestContext,
        operation: Operation,
        new: Object | None,
        old: Object | None,
        options: Mapping[str, Any],
    ) -> Attributes:
        subject = new if new is not None else old
        name = subject["metadata"].get("name", "") if subject is not None else ""
        return Attributes(
            operation=operation,
            resource=self.resource,
            subresource=self.subresource,
            namespace=(subject or {}).get("metadata", {}).get("namespace", "") or self.namespace(context),
            name=name or context.info.name,
            object=new,
            old_object=old,
            user=context.user,
            dry_run=bool(options.get("dryRun")),
            options=options,
            context=context,
        )


def _restore_protected_metadata(context: RequestContext, admitted: Object, new: Object) -> Object:
    """Undo the changes of metadata that mutating admission may not make. Raises BadRequest for another namespace."""
    if problem := managed_fields_error(admitted):
        context.warn(f"{_INVALID_MANAGED_FIELDS}: {problem}")
        managed = new["metadata"].get("managedFields")
        metadata = {key: value for key, value in admitted["metadata"].items() if key != "managedFields"}
        admitted = {**admitted, "metadata": {**metadata, "managedFields": managed} if managed else metadata}
    namespace = new["metadata"].get("namespace") or ""
    if (admitted["metadata"].get("namespace") or namespace) != namespace:
        raise errors.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        admitted["metadata"]["namespace"] = namespace
    if warning := meta.dedup_owner_references(admitted, admitted=True):
        context.warn(warning)
    return admitted


def write_options_document(kind: str, query: Query) -> dict[str, Any]:
    """The options of a valid request for admission (WIRE-H43): those in the query, without defaults. `kind` is
    CreateOptions or UpdateOptions; a PATCH has one or the other."""
    document: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if query.all("dryRun"):
        document["dryRun"] = ["All"]
    for name in ("fieldManager", "fieldValidation"):
        if value := query.get(name):
            document[name] = value
    return document

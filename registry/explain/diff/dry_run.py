"""Runs the write of a proposed Tenant as a dry run, so that what the API refuses has no plan.

A plan without it would tell what the refusal keeps to itself, such as which hostnames the tenants have that the user
may not see (ATTACK-15).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from apiserver import rest
from apiserver.admission import Admission, Attributes, Operation
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext

# All other metadata of a Tenant is the server's. The resourceVersion is left out as well: a plan is no write, and a
# controller may have changed the Tenant since the client read it.
_METADATA_OF_CLIENTS: Final = ("labels", "annotations", "finalizers", "ownerReferences")


class WritableTenants(rest.Getter, rest.Creater, rest.Updater, rest.Storage, Protocol):
    """The storage of Tenants."""


class TenantDryRun:
    """Methods return the Tenant as it would be stored: a new one has the values as they were sent. They raise Invalid,
    Conflict, and the errors of admission."""

    def __init__(self, tenants: WritableTenants, admission: Admission) -> None:
        self._tenants = tenants
        self._admission = admission

    async def create(self, context: RequestContext, key: Key, proposed: Object) -> Object:
        new = await self._admitted(context, "CREATE", _with_metadata(proposed, _identity(key)), None)
        stored = await self._tenants.create(context, new, self._validate(context, "CREATE"), dry_run=True)
        shown = {name: each for name, each in stored.items() if name != "spec"}
        return {**shown, "spec": new["spec"]} if "spec" in new else shown

    async def update(self, context: RequestContext, key: Key, proposed: Object) -> Object:
        """Raises NotFound as well."""

        async def change(current: Object | None) -> Object:
            assert current is not None
            own = {name: each for name, each in current["metadata"].items() if name not in _METADATA_OF_CLIENTS}
            return await self._admitted(context, "UPDATE", _with_metadata(proposed, own), current)

        stored, _ = await self._tenants.update(context, key, change, self._validate(context, "UPDATE"), dry_run=True)
        return stored

    async def _admitted(self, context: RequestContext, operation: Operation, new: Object, old: Object | None) -> Object:
        admitted = await self._admission.mutate(self._attributes(context, operation, new, old))
        # as for a write, admission cannot make it another object (WIRE-H52)
        return {**admitted, "metadata": {**admitted["metadata"], **_identity_of(new)}}

    def _validate(self, context: RequestContext, operation: Operation) -> rest.ValidateFunc:
        @asynccontextmanager
        async def validate(new: Object | None, old: Object | None) -> AsyncIterator[None]:
            async with self._admission.validating(self._attributes(context, operation, new, old)):
                yield

        return validate

    def _attributes(
        self, context: RequestContext, operation: Operation, new: Object | None, old: Object | None
    ) -> Attributes:
        subject = new or old or {}
        options: dict[str, Any] = {
            "kind": "CreateOptions" if operation == "CREATE" else "UpdateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "dryRun": ["All"],
        }
        return Attributes(
            operation=operation,
            resource=self._tenants.resource,
            namespace=subject["metadata"]["namespace"],
            name=subject["metadata"]["name"],
            object=new,
            old_object=old,
            user=context.user,
            dry_run=True,
            options=options,
            context=context,
        )


def _with_metadata(proposed: Object, own: Object) -> Object:
    """The Tenant with `own` metadata besides that of clients."""
    sent = proposed["metadata"]
    return {**proposed, "metadata": {**own, **{name: sent[name] for name in _METADATA_OF_CLIENTS if name in sent}}}


def _identity(key: Key) -> Object:
    return {"namespace": key.namespace, "name": key.name}


def _identity_of(obj: Object) -> Object:
    return {name: obj["metadata"][name] for name in ("namespace", "name")}

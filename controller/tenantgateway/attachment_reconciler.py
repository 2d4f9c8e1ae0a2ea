"""Attaches the namespaces that TenantGateways list by labelling them, and removes labels that are no longer wanted.

An annotation on each Namespace records that the label is ours. Labels are therefore cleaned up no matter when or how
a TenantGateway was deleted, and TenantGateways need no finalizer (GW-14).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.runtime.apply import ClusterWriter
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway.attachment import AttachmentRules, assign_attachments, attached_by, namespace_patch
from controller.tenantgateway.collected_errors import is_transient
from controller.tenantgateway.index import NamespaceIndex, TenantGatewayIndex
from controller.tenantgateway.model import Attachments
from registry.cluster.interface import NAMESPACES, is_terminating
from registry.cluster.object_store import ObjectLister

_logger = logging.getLogger(__name__)
_NO_ATTACHMENTS = Attachments()


class AttachmentReconciler:
    """Reconciles Namespaces, keyed by name, and enqueues the TenantGateways whose status changes with the result."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        namespaces: ObjectLister,
        index: NamespaceIndex,
        tenantgateways: TenantGatewayIndex,
        rules: Callable[[], AttachmentRules],
        enqueue: Enqueue,
    ) -> None:
        """`namespaces` are keyed by ('', name); `rules` returns the current ones, which settings change."""
        self._writer = writer
        self._namespaces = namespaces
        self._index = index
        self._tenantgateways = tenantgateways
        self._rules = rules
        self._enqueue = enqueue
        self._results: dict[str, tuple[Attachments, str]] = {}

    def attached_elsewhere(self, gateway: Key, attached: Iterable[str]) -> Mapping[str, str]:
        """Namespaces of the list `attached` that this gateway does not get, mapped to the namespace of the gateway that
        has it; empty for one of the platform that only the publisher's gateway may have."""
        owners = {each: self._result_of(each)[0].attached_elsewhere.get(gateway, {}).get(each) for each in attached}
        return {namespace: owner for namespace, owner in owners.items() if owner is not None}

    def errors(self, gateway: Key, attached: Iterable[str]) -> list[str]:
        """One message for each namespace whose label the cluster refused to change for this gateway."""
        parts = (_status_of(self._result_of(each), gateway) for each in sorted(set(attached)))
        return [error for _, error in parts if error]

    def initial_keys(self) -> Iterable[str]:
        """The keys to reconcile at the start: all listed namespaces, and all that carry our annotation."""
        return dict.fromkeys((*self._tenantgateways.listed_namespaces(), *self._index.attached()))

    async def reconcile(self, key: str) -> None:
        namespace = self._namespaces.get(Key("", key))
        claimants = self._tenantgateways.claimants(key)
        existing = {key: namespace} if namespace is not None else {}
        attachments = assign_attachments(claimants, existing, self._rules())
        error = ""
        try:
            if namespace is not None and not is_terminating(namespace):
                owner = attachments.owners.get(key)
                changes = namespace_patch(namespace, owner)
                if changes is not None:
                    await self._writer.patch(NAMESPACES, namespace, changes)
                    _log_move(key, attached_by(namespace), owner or "")
        except StatusError as e:
            if not is_transient(e) and e.code != 404:
                error = f"namespace {key}: {e.message}"
            raise
        finally:
            self._record(key, attachments, error)

    def _result_of(self, namespace: str) -> tuple[Attachments, str]:
        return self._results.get(namespace, (_NO_ATTACHMENTS, ""))

    def _record(self, namespace: str, attachments: Attachments, error: str) -> None:
        before, now = self._result_of(namespace), (attachments, error)
        if before == now:
            return
        if now == (_NO_ATTACHMENTS, ""):
            self._results.pop(namespace, None)
        else:
            self._results[namespace] = now
        # by default all TenantGateways list the same namespaces: enqueue only those whose own status changes
        for gateway in self._tenantgateways.claimants(namespace):
            if _status_of(before, gateway.key) != _status_of(now, gateway.key):
                self._enqueue(gateway.key)


def _log_move(namespace: str, before: str, now: str) -> None:
    if before and before != now:
        destination = f"the Gateway of {now}" if now else "no Gateway"
        _logger.info("namespace %s: attached to %s, before to the Gateway of %s", namespace, destination, before)


def _status_of(result: tuple[Attachments, str], gateway: Key) -> tuple[Mapping[str, str], str]:
    """The part of a result that the status of one TenantGateway shows."""
    attachments, error = result
    return (
        attachments.attached_elsewhere.get(gateway, {}),
        error if gateway.namespace in attachments.owners.values() else "",
    )

"""The Lease that all replicas record their claims in, written with optimistic concurrency."""

from __future__ import annotations

import hashlib
import logging

from admission.tenant.claims import claim_codec
from admission.tenant.claims.claim import Claim, ClaimsDocument
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key, Object
from registry.cluster.interface import LEASES, ClusterClient
from registry.names import CLAIMS_ANNOTATION

NAME = "tenant-apiserver-claims"
_LEASES = GroupResource(LEASES.group, LEASES.plural)
_NOBODY = Key("", "")
_logger = logging.getLogger(__name__)


class ClaimLease:
    """One object; a write succeeds only if nobody has written it since it was last read or written here."""

    def __init__(self, *, cluster: ClusterClient, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._lease: Object | None = None

    async def read(self) -> ClaimsDocument | None:
        """None if there is no Lease. Raises the cluster's StatusError."""
        try:
            self._lease = await self._cluster.get(LEASES, self._namespace, NAME)
        except StatusError as e:
            if e.code != 404 or e.reason != "NotFound":
                raise
            self._lease = None
            return None
        return _document(self._lease)

    async def write(self, document: ClaimsDocument) -> None:
        """Creates or updates the Lease. Raises a StatusError with code 409 if it has changed since, or was deleted, and
        the cluster's other StatusErrors."""
        text = claim_codec.encode(document)
        if self._lease is None:
            metadata: Object = {"name": NAME, "namespace": self._namespace, "annotations": {CLAIMS_ANNOTATION: text}}
            new: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": {}}
            self._lease = await self._cluster.create(LEASES, new, namespace=self._namespace)
            return
        metadata = dict(self._lease["metadata"])
        metadata["annotations"] = {**(metadata.get("annotations") or {}), CLAIMS_ANNOTATION: text}
        try:
            self._lease = await self._cluster.update(LEASES, {**self._lease, "metadata": metadata})
        except StatusError as e:
            if e.code == 404 and e.reason == "NotFound":
                raise errors.Conflict(_LEASES, NAME) from e
            raise


def _document(lease: Object) -> ClaimsDocument:
    text = (lease["metadata"].get("annotations") or {}).get(CLAIMS_ANNOTATION)
    if not text:
        return ClaimsDocument()
    try:
        return claim_codec.decode(text)
    except ValueError as e:
        _logger.warning("Lease %s cannot be read, and counts as one claim to everything: %s", NAME, e)
        # the id differs for each text, so that a replica of another version keeps its claims as long as it writes them
        id_ = f"unreadable-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        opaque = Claim(id=id_, holder="", key=_NOBODY, base=0, creates=False, outcomes=(), wide=True)
        return ClaimsDocument(claims=(opaque,))

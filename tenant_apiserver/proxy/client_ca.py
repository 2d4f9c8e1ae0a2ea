"""The CA of client certificates that the cluster publishes, for a proxy without --client-ca-file."""

from __future__ import annotations

from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS, ClusterClient
from tenant_apiserver.certificates.delegated_authentication import NAME, NAMESPACE, DelegatedAuthentication
from tenant_apiserver.proxy.own_rights import CLIENT_CA


class ClusterClientCa:
    """Follows the ConfigMap with the CA. The caller runs `run`."""

    def __init__(self, cluster: ClusterClient, delegation: DelegatedAuthentication) -> None:
        self._delegation = delegation
        self._informer = Informer(cluster, CONFIGMAPS, namespace=NAMESPACE, field_selector=f"metadata.name={NAME}")
        self._informer.add_handler(delegation)

    @property
    def informers(self) -> tuple[Informer, ...]:
        return (self._informer,)

    async def run(self) -> None:
        await self._informer.run()

    def check(self) -> str:
        """A health check. It fails until the ConfigMap has been read, as callers with a certificate would be refused,
        or be anonymous. A cluster that names no CA accepts no certificate itself: that is noted."""
        if not self._informer.synced.is_set():
            raise RuntimeError(
                f"ConfigMap {NAMESPACE}/{NAME} has not been read: {CLIENT_CA.without}; {CLIENT_CA.remedy}"
            )
        if not self._delegation.client_ca():
            return "the cluster names no CA of clients, so that no client certificate is accepted; see --client-ca-file"
        return ""

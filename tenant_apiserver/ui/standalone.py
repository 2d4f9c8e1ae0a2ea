"""The page of the stand-alone server, as its administrator."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from registry.cluster.kubernetes_asyncio_shim import Configuration
from registry.cluster.upstream import UpstreamClient
from registry.names import ROOT_NAMESPACE
from tenant_apiserver.ui.application import PageServer, SessionInfo

CLUSTER: Final = "stand-alone"
_HOW_TO_LOG_IN: Final = (
    "Open the URL that the server prints when it starts. It logs in one browser, once: for another one, run "
    "kubectl tenant ui --kubeconfig={kubeconfig}"
)


def standalone_page(cluster: Configuration, *, user: str, kubeconfig: Path) -> PageServer:
    """A server for the embedded cluster that `cluster` leads to, with the credentials of `user`."""
    info = SessionInfo(user=user, cluster=CLUSTER, namespace=ROOT_NAMESPACE)
    return PageServer(UpstreamClient(cluster), info, how_to_log_in=_HOW_TO_LOG_IN.format(kubeconfig=kubeconfig))

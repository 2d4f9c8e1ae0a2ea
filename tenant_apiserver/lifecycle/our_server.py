"""The fields of an APIService that lead to the server of ours that runs in the cluster."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from registry.cluster.interface import SECRETS, SERVICES
from tenant_apiserver.certificates.cluster_secret import SECRET_NAME
from tenant_apiserver.lifecycle.command import StepFailed, StepRefused
from tenant_apiserver.lifecycle.installed import NAMESPACE, SERVER
from tenant_apiserver.lifecycle.kinds import TargetObject
from tenant_apiserver.lifecycle.reader import ReadableCluster, read_objects, unreadable_lines
from tenant_apiserver.lifecycle.registration import OurServer

_CERT_MANAGERS_SECRET, _CERT_MANAGERS_CERTIFICATE = "tenant-apiserver-tls", "cozy-system/tenant-apiserver-serving"


async def our_server(cluster: ReadableCluster) -> OurServer:
    """With the CA of the Secret that the server or cert-manager keeps. Raises StepRefused if no server has started, and
    StepFailed if that cannot be read."""
    sources: Sequence[tuple[str, str]] = ((SECRET_NAME, ""), (_CERT_MANAGERS_SECRET, _CERT_MANAGERS_CERTIFICATE))
    for secret, certificate in sources:
        found, unreadable = await read_objects(cluster, [TargetObject(SECRETS, NAMESPACE, secret)])
        if unreadable:
            raise StepFailed(unreadable_lines(unreadable))
        bundle = next((each.get("data", {}).get("ca.crt", "") for each in found.values()), "")
        if bundle and _is_base64(bundle):
            return OurServer(bundle, certificate, await _port(cluster))
    why = f"Secret {NAMESPACE}/{SECRET_NAME} has no CA, so no server of ours has started yet"
    raise StepRefused(f"{why}; first: kubectl rollout status -n {NAMESPACE} deployment/tenant-apiserver")


async def _port(cluster: ReadableCluster) -> int:
    """The first port of our Service."""
    where = TargetObject(SERVICES, NAMESPACE, SERVER)
    found, unreadable = await read_objects(cluster, [where])
    if unreadable:
        raise StepFailed(unreadable_lines(unreadable))
    if where not in found:
        raise StepRefused(f"{where} does not exist; first: kubectl apply --server-side -k manifests/overlays/live")
    ports = found[where]["spec"].get("ports") or ({"port": OurServer("").port},)
    return int(ports[0]["port"])


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except binascii.Error:
        return False

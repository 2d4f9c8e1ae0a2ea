"""The Certificates of a TenantGateway. Pure: desired objects as controller.runtime.apply takes them.

None has a common name: that holds 64 characters, and a hostname has up to 253.
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Object
from controller.tenantgateway.model import Plan, PlannedCertificate, TenantGateway
from controller.tenantgateway.names import (
    CERT_MANAGER_GROUP,
    PER_LISTENER_LABEL,
    issuer_name,
    metadata,
    tenantgateway_labels,
)


def render_certificates(gateway: TenantGateway, plan: Plan) -> Sequence[Object]:
    """R-143, R-151 to R-154, R-159; none in the mode existingSecret."""
    return [_certificate(gateway, each) for each in plan.certificates]


def _certificate(gateway: TenantGateway, certificate: PlannedCertificate) -> Object:
    # `kubectl wait --selector` picks the certificates of hostnames by it, and the wildcard one must not have it (R-229)
    labels = {**tenantgateway_labels(gateway), **({PER_LISTENER_LABEL: "true"} if certificate.per_listener else {})}
    return {
        "metadata": metadata(gateway, certificate.name, labels),
        "spec": {
            "secretName": certificate.name,
            "issuerRef": {"group": CERT_MANAGER_GROUP, "kind": "Issuer", "name": issuer_name(gateway.key.name)},
            "commonName": None,
            "dnsNames": list(certificate.dns_names),
        },
    }

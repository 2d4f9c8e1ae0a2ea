"""Renders the Certificates of a TenantGateway as desired objects for `ClusterWriter`. Pure.

They have no common name, which is limited to 64 characters while a hostname may have 253.
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
    """One object for each planned certificate; none in the mode existingSecret (R-143, R-151 to R-154, R-159)."""
    return [_certificate(gateway, each) for each in plan.certificates]


def _certificate(gateway: TenantGateway, certificate: PlannedCertificate) -> Object:
    # `kubectl wait --selector` selects the certificates of single hostnames by this label (R-229)
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

"""Renders the HTTPRoute that redirects port 80 to HTTPS as a desired object for `ClusterWriter`. Pure."""

from __future__ import annotations

from apiserver.meta.resource import Object
from controller.tenantgateway.model import TenantGateway
from controller.tenantgateway.names import (
    GATEWAY_API_GROUP,
    HTTP_LISTENER,
    metadata,
    redirect_name,
    tenantgateway_labels,
)


def render_redirect(gateway: TenantGateway) -> Object:
    """Matches every hostname and path in every mode, so that any more specific route wins (R-183 to R-187)."""
    return {
        "metadata": metadata(gateway, redirect_name(gateway.key.name), tenantgateway_labels(gateway)),
        "spec": {
            "parentRefs": [http_listener(gateway)],
            "hostnames": None,
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                    "filters": [
                        {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}},
                    ],
                    "backendRefs": None,
                },
            ],
        },
    }


def http_listener(gateway: TenantGateway) -> Object:
    """The parentRef of a route on port 80 of the Gateway."""
    return {
        "group": GATEWAY_API_GROUP,
        "kind": "Gateway",
        "namespace": gateway.key.namespace,
        "name": gateway.key.name,
        "sectionName": HTTP_LISTENER,
    }

"""The requests of the page that reach the cluster. Pure.

The page needs little, so a fault in it, or a stolen cookie, reaches little: no Secret, no object of a workload, and no
write but those of Tenants.
"""

from __future__ import annotations

import re
from typing import Final

from registry.names import GROUP, VERSION

_PATH: Final = re.compile(r"/[A-Za-z0-9._~:/-]*")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~:/?@!$&'()*+,;=%-]*")
_DISCOVERY: Final = ("/version", "/api", "/apis")
_READABLE: Final = {
    "/api/v1": frozenset({"events", "namespaces", "resourcequotas"}),
    f"/apis/{GROUP}/{VERSION}": frozenset({"tenants"}),
    "/apis/gateway.cozystack.io/v1alpha1": frozenset({"tenantgateways"}),
    "/apis/gateway.networking.k8s.io/v1": frozenset({"gateways", "httproutes", "grpcroutes", "tlsroutes"}),
    "/apis/cert-manager.io/v1": frozenset({"certificates"}),
}
"""The resources that may be listed, watched and read, by group version. Subresources of a Tenant belong to it."""
_REVIEWS: Final = frozenset({"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"})
_TENANTS: Final = re.compile(rf"/apis/{re.escape(GROUP)}/{VERSION}/namespaces/[^/]+/tenants(/[^/]+)?")


def is_well_formed(path: str, query: str) -> bool:
    """True if every server takes the path for the same one: no escapes, no dot segments, no empty segments."""
    segments = path.split("/")[1:]
    return (
        _PATH.fullmatch(path) is not None
        and _QUERY.fullmatch(query) is not None
        and not any(each in ("", ".", "..") for each in segments)
    )


def is_allowed(method: str, path: str) -> bool:
    """True for a well-formed path that the page may use with this method."""
    match method:
        case "GET":
            return path in _DISCOVERY or _is_group_version(path) or _is_readable(path)
        case "POST":
            return path in _REVIEWS or _is_tenant(path, named=False)
        case "PUT" | "PATCH" | "DELETE":
            return _is_tenant(path, named=True)
    return False


def _is_group_version(path: str) -> bool:
    return path in _READABLE or (path.startswith("/openapi/v3/apis/") and path.removeprefix("/openapi/v3") in _READABLE)


def _is_readable(path: str) -> bool:
    for base, resources in _READABLE.items():
        if path.startswith(f"{base}/"):
            match path.removeprefix(f"{base}/").split("/"):
                case [resource]:
                    return resource in resources
                case ["namespaces", _]:
                    return "namespaces" in resources
                case ["namespaces", _, resource] | ["namespaces", _, resource, _]:
                    return resource in resources
                case ["namespaces", _, "tenants", _, "explain"]:
                    return "tenants" in resources
    return False


def _is_tenant(path: str, *, named: bool) -> bool:
    found = _TENANTS.fullmatch(path)
    return found is not None and (found.group(1) is not None) == named

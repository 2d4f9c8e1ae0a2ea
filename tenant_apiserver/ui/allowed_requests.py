"""The requests of the page that reach the cluster. Pure.

The page needs little, so a fault in it, or a stolen cookie, reaches little: no Secret, no object of a workload, and no
write but those of Tenants.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs

import orjson

from registry.names import GROUP, VERSION

_PATH: Final = re.compile(r"/[A-Za-z0-9._~:/-]*")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~:/?@!$&'()*+,;=%-]*")
_DISCOVERY: Final = ("/version", "/api", "/apis", "/openapi/v3")
_OPENAPI: Final = "/openapi/v3"
_READABLE: Final = {
    "": frozenset({"events", "namespaces", "resourcequotas"}),
    GROUP: frozenset({"tenants"}),
    "core.cozystack.io": frozenset({"tenantmodules", "tenantnamespaces"}),
    "gateway.cozystack.io": frozenset({"tenantgateways"}),
    "gateway.networking.k8s.io": frozenset({"gateways", "httproutes", "grpcroutes", "tlsroutes"}),
    "cert-manager.io": frozenset({"certificates"}),
}
"""The resources that may be listed, watched and read, by group. Not in it: TenantSecrets, and applications, whose
values may have passwords."""
_GROUP_VERSION: Final = re.compile(
    r"/(?:api|apis/(?P<group>[a-z0-9.-]+))/(?P<version>v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?)(?P<rest>/.*)?"
)
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_TENANTS: Final = re.compile(rf"/apis/{re.escape(GROUP)}/{VERSION}/namespaces/[^/]+/tenants(?P<name>/[^/]+)?")
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


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
    if method == "GET":
        return path in _DISCOVERY or _is_readable(path) or _is_description(path)
    named = _TENANTS.fullmatch(path)
    if method == "POST":
        return path == _REVIEWS or (named is not None and named["name"] is None)
    return method in _WRITES and named is not None and named["name"] is not None


def is_write(method: str, path: str) -> bool:
    """True for an allowed request that may change something, be it only as a dry run."""
    return method in _WRITES and path != _REVIEWS


def is_half_a_dry_run(method: str, query: str, body: bytes) -> bool:
    """True for a deletion that is a dry run by its query and not by its body: Kubernetes reads the options of the body
    alone, and deletes."""
    if method != "DELETE" or not body or "dryRun" not in parse_qs(query, keep_blank_values=True):
        return False
    try:
        options = orjson.loads(body)
    except orjson.JSONDecodeError:
        return True
    return not isinstance(options, dict) or options.get("dryRun") != ["All"]


def _is_description(path: str) -> bool:
    """True for the OpenAPI document of a group version with kinds that may be read."""
    found = _GROUP_VERSION.fullmatch(path.removeprefix(_OPENAPI)) if path.startswith(_OPENAPI) else None
    return found is not None and found["rest"] is None and (found["group"] or "") in _READABLE


def _is_readable(path: str) -> bool:
    found = _GROUP_VERSION.fullmatch(path)
    if found is None or (resources := _READABLE.get(found["group"] or "")) is None:
        return False
    match (found["rest"] or "").split("/")[1:]:
        case []:
            return found["rest"] is None
        case ["namespaces"] | ["namespaces", _]:
            return "namespaces" in resources
        case [resource] | ["namespaces", _, resource] | ["namespaces", _, resource, _]:
            return resource in resources and resource != "namespaces"
        case ["tenantnamespaces", _]:
            return "tenantnamespaces" in resources
        case ["namespaces", _, "tenants", _, "explain"]:
            return "tenants" in resources
    return False

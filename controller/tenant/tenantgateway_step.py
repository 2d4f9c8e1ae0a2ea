"""The step of the TenantGateway `cozystack` of a Tenant with a Gateway of its own (R-082 to R-093, R-096).

What hangs on it is for the TenantGateway's own controller: no Gateway, Issuer or Certificate is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import ValidationError

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.namespace_step import host_label
from controller.tenant.observe import ObservedTenant
from registry.names import MAX_LABEL_VALUE
from registry.tenantgateway.types import GROUP, KIND, TENANTGATEWAYS, TenantGatewaySpec

TENANTGATEWAY_NAME = "cozystack"
MISSING = "TenantGatewayMissing"
# Of the chart that makes it: a release of its own, in the Tenant's Namespace.
_RELEASE = "gateway"


def render_tenantgateway(namespace: str, spec: Object, current: Object | None = None) -> Object:
    """The TenantGateway as a merge patch: of its spec, nothing stays that is not wanted."""
    held = (current.get("spec") or {}) if current is not None else {}
    if current is not None and _essence(current) == _essence({"spec": spec}):
        wanted: Object = {}
    else:
        wanted = _exactly(spec, held)
    return {"metadata": {"name": TENANTGATEWAY_NAME, "namespace": namespace}, "spec": wanted}


def _exactly(wanted: Object, held: Object) -> Object:
    patch: Object = {key: None for key in held if key not in wanted}
    for key, value in wanted.items():
        before = held.get(key)
        patch[key] = _exactly(value, before) if isinstance(value, dict) and isinstance(before, dict) else value
    return patch


def missing_apex_finding(observed: ObservedTenant) -> Finding | None:
    """Why a Tenant that asks for a Gateway of its own has none: its domain is that of the Gateway."""
    host = observed.host
    if host_label(host):
        return None
    if host is None:
        return Finding(
            MISSING, "True", "NoApex", "no Gateway without a domain: neither the tenant nor an ancestor has one"
        )
    if len(host.value) > MAX_LABEL_VALUE:
        why = f"no Gateway for {host.value}: it has more than the {MAX_LABEL_VALUE} characters that a label holds"
        return Finding(MISSING, "True", "HostTooLongForLabel", why)
    return Finding(MISSING, "True", "NoApex", f"no Gateway for {host.value}: it is no domain")


def _essence(obj: Object) -> object:
    spec = obj.get("spec")
    try:
        return TenantGatewaySpec.model_validate(spec).model_dump(by_alias=True)
    except ValidationError:
        return spec


MANAGED_TENANTGATEWAY = ManagedKind(
    resource=TENANTGATEWAYS, normalize=_essence, selects=lambda namespace, name: name == TENANTGATEWAY_NAME
)


class TenantGatewayStep:
    """Findings: TenantGatewayMissing, while it is asked for and cannot be, and ChartConflict.

    `spec` gives the spec for an apex; `served` tells whether the host has the kind.
    """

    name = "TenantGateway"
    condition = "TenantGatewayApplied"

    def __init__(
        self,
        *,
        contents: ContentWriter,
        digests: ObjectDigests,
        spec: Callable[[str], Object],
        served: Callable[[], bool] = lambda: True,
    ) -> None:
        self._writer = contents
        self._marks = digests
        self._spec = spec
        self._served = served

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant = observed.tenant
        found = missing_apex_finding(observed) if tenant.gateway else None
        apex = host_label(observed.host)
        if not tenant.gateway or not apex:
            removed = await self._writer.remove(self._marks, tenant.namespace, TENANTGATEWAY_NAME)
            return [*removed, *([found] if found is not None else [])]
        if not self._served():
            why = f"the host has no CustomResourceDefinition of {KIND} ({TENANTGATEWAYS.plural}.{GROUP})"
            return [Finding(MISSING, "True", "NotServed", why)]
        spec = self._spec(apex)
        return await self._writer.ensure(
            self._marks,
            lambda current: render_tenantgateway(tenant.namespace, spec, current),
            Key(tenant.namespace, _RELEASE),
        )

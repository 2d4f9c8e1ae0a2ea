"""The step of the TenantGateway `cozystack` of a Tenant with a Gateway of its own (R-082 to R-093, R-096).

The Gateway, the Issuer and the Certificates are written by the controller of TenantGateways, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import ValidationError

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import GATEWAY_RELEASE
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.namespace_step import host_label
from controller.tenant.observe import ObservedTenant
from controller.tenant.planning.context import PlanningContext
from registry.names import MAX_LABEL_VALUE
from registry.tenantgateway.types import GROUP, KIND, TENANTGATEWAY_NAME, TENANTGATEWAYS, TenantGatewaySpec

MISSING = "TenantGatewayMissing"


def render_tenantgateway(namespace: str, spec: Object, current: Object | None = None) -> Object:
    """The TenantGateway as a merge patch that also removes every other field of its spec."""
    present = (current.get("spec") or {}) if current is not None else {}
    if current is not None and _normalize_spec(current) == _normalize_spec({"spec": spec}):
        changes: Object = {}
    else:
        changes = _exact_patch(spec, present)
    return {"metadata": {"name": TENANTGATEWAY_NAME, "namespace": namespace}, "spec": changes}


def _exact_patch(desired: Object, present: Object) -> Object:
    """The merge patch from `present` to exactly `desired`, with None for all other fields."""
    patch: Object = {key: None for key in present if key not in desired}
    for key, value in desired.items():
        before = present.get(key)
        patch[key] = _exact_patch(value, before) if isinstance(value, dict) and isinstance(before, dict) else value
    return patch


def missing_apex_finding(observed: ObservedTenant) -> Finding | None:
    """The reason why a Tenant with `spec.gateway` gets no Gateway: it has no domain that could be the Gateway's
    apex."""
    host = observed.host
    if host_label(host):
        return None
    if host is None:
        message = (
            "no Gateway without a domain: neither the tenant nor an ancestor has one; set spec.host, or "
            "publishing.host of the platform settings"
        )
        return Finding(MISSING, "True", "NoApex", message)
    if len(host.value) > MAX_LABEL_VALUE:
        message = (
            f"no Gateway for {host.value}: it has more than the {MAX_LABEL_VALUE} characters that a label holds; set a "
            "shorter spec.host"
        )
        return Finding(MISSING, "True", "HostTooLongForLabel", message)
    message = f"no Gateway for {host.value}: it is not a valid domain; correct spec.host, or that of the ancestor"
    return Finding(MISSING, "True", "NoApex", message)


def _normalize_spec(obj: Object) -> object:
    spec = obj.get("spec")
    try:
        return TenantGatewaySpec.model_validate(spec).model_dump(by_alias=True)
    except ValidationError:
        return spec


MANAGED_TENANTGATEWAY = ManagedKind(
    resource=TENANTGATEWAYS, normalize=_normalize_spec, selects=lambda namespace, name: name == TENANTGATEWAY_NAME
)


class TenantGatewayStep:
    """Findings: TenantGatewayMissing while it is required and cannot be created, and ChartConflict.

    `spec` returns the spec for an apex domain; `served` returns whether the cluster serves the kind.
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
        self._contents = contents
        self._digests = digests
        self._spec = spec
        self._served = served

    def planning(self, context: PlanningContext) -> TenantGatewayStep:
        return TenantGatewayStep(contents=context.contents, digests=self._digests, spec=self._spec, served=self._served)

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant = observed.tenant
        found = missing_apex_finding(observed) if tenant.gateway else None
        apex = host_label(observed.host)
        if not tenant.gateway or not apex:
            removed = await self._contents.remove(self._digests, tenant.namespace, TENANTGATEWAY_NAME)
            return [*removed, *([found] if found is not None else [])]
        if not self._served():
            message = (
                f"the cluster has no CustomResourceDefinition of {KIND} ({TENANTGATEWAYS.plural}.{GROUP}); apply "
                "manifests/overlays/prerequisites"
            )
            return [Finding(MISSING, "True", "NotServed", message)]
        spec = self._spec(apex)
        return await self._contents.ensure(
            self._digests,
            lambda current: render_tenantgateway(tenant.namespace, spec, current),
            Key(tenant.namespace, GATEWAY_RELEASE),
        )

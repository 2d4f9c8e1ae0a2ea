"""The objects that stay when the server has been removed, and how to remove them if that is really meant. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tenant_apiserver.least_privilege.proxy_rights import PROXY_ROLES
from tenant_apiserver.lifecycle.installed import NAMESPACE
from tenant_apiserver.lifecycle.kinds import TargetObject

GATEWAY_CRD = "tenantgateways.gateway.cozystack.io"
_PROXY_FOLDERS = tuple(each.file.rpartition("/")[0] for each in reversed(PROXY_ROLES))
_NO_FINALIZERS = '{"metadata":{"finalizers":null}}'
_GIVE_UP = f"      kubectl patch helmreleases -n <namespace> <name> --type=merge -p '{_NO_FINALIZERS}'"


def remainder(counts: Mapping[str, int], held: Sequence[str]) -> Sequence[str]:
    """Lines for the operator. `counts` are of HelmReleases, Namespaces and Gateways of tenants; `held` are HelmReleases
    `namespace/name` that are being deleted and that only our controllers would finish."""
    lines = [
        "What stays, and how to remove it if that is really meant:",
        f"  {counts['HelmReleases']} HelmReleases of tenants and applications, with all that they store",
        "      kubectl delete helmreleases -n tenant-root <name>: Flux uninstalls the chart",
        f"  {counts['Namespaces']} Namespaces of tenants, with everything in them",
        "      kubectl delete namespace <name>: deletes everything in it, volumes too",
        f"  {counts['Gateways']} Gateways that were made for tenants",
        "      kubectl delete tenantgateways -A --all: takes all hostnames and certificates of tenants away",
        f"  CustomResourceDefinition {GATEWAY_CRD} and Namespace {NAMESPACE}, which Cozystack has, too",
        f"      kubectl delete crd {GATEWAY_CRD}: deletes every TenantGateway and its Gateway",
        "  ClusterRoles cozy:tenant and cozy:tenant:*, to which people are bound",
    ]
    if held:
        lines += [
            f"These {len(held)} tenants are being deleted, and nobody deletes what belongs to them any more:",
            *(f"  {each}" for each in held),
            "      install the server again and wait, or give them up as they are, one by one:",
            _GIVE_UP,
        ]
    return lines


def remaining_proxy(found: Collection[TargetObject], unreadable: Mapping[TargetObject, str]) -> Sequence[str]:
    """Lines about the objects of the proxy, which serves users without this server, and stays."""
    if not found and not unreadable:
        return []
    return [
        f"The proxy stays, with {len(found)} objects: kubeconfigs of users may point at it.",
        *(f"  {each}" for each in found),
        *(f"  {each}: unknown: {why}" for each, why in unreadable.items()),
        *(f"      kubectl delete --ignore-not-found -k manifests/{each}" for each in _PROXY_FOLDERS),
    ]

"""The objects that stay when the server has been removed, and how to remove them if that is really meant. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from registry.securitygroup.convert import GROUP_SELECTOR
from registry.tenantsecret.convert import SECRET_SELECTOR
from tenant_apiserver.least_privilege.proxy_rights import PROXY_ROLES
from tenant_apiserver.lifecycle.installed import NAMESPACE
from tenant_apiserver.lifecycle.kinds import TargetObject

GATEWAY_CRD = "tenantgateways.gateway.cozystack.io"
_PROXY_FOLDERS = tuple(each.file.rpartition("/")[0] for each in reversed(PROXY_ROLES))
_NO_FINALIZERS = '{"metadata":{"finalizers":null}}'
_GIVE_UP = f"      kubectl patch helmreleases -n <namespace> <name> --type=merge -p '{_NO_FINALIZERS}'"


def remainder(counts: Mapping[str, int | None], held: Sequence[str]) -> Sequence[str]:
    """Lines for the operator. `counts` are of objects by kind, None if they may not be listed; `held` are HelmReleases
    `namespace/name` that are being deleted and that only our controllers would finish."""
    number = {kind: "an unknown number of" if count is None else str(count) for kind, count in counts.items()}
    lines = [
        "What stays, and how to remove it if that is really meant:",
        f"  {number['HelmRelease']} HelmReleases of tenants and applications, with all that they store",
        "      kubectl delete helmreleases -n tenant-root <name>: Flux uninstalls the chart",
        f"  {number['Namespace']} Namespaces of tenants, with everything in them",
        "      kubectl delete namespace <name>: deletes everything in it, volumes too",
        f"  {number['Gateway']} Gateways that were made for tenants",
        "      kubectl delete tenantgateways -A --all: takes all hostnames and certificates of tenants away",
        f"  {number['CiliumNetworkPolicy']} CiliumNetworkPolicies of SecurityGroups, whichever server wrote them",
        f"      kubectl delete ciliumnetworkpolicies -n <namespace> -l {GROUP_SELECTOR}: no Pod has their rules",
        f"  {number['Secret']} Secrets that are shown as TenantSecrets, whoever wrote them",
        f"      kubectl delete secrets -n <namespace> -l {SECRET_SELECTOR}: deletes passwords of applications, too",
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

"""The rule behind each reason that a condition of a Tenant can have. Data only."""

from __future__ import annotations

from collections.abc import Mapping

from registry.explain.rule import FURTHER, READY, Rule

_CONTENTS, _ISOLATION = "inheritance.md#conditions", "isolation.md#the-condition-isolationready"
_DELETION, _GUARD, _HOST = "troubleshooting.md#a-tenant-stays-in-deletion", "publishing.md#the-guard", "tenants.md#spec"
_CHART, _QUOTAS = "inheritance.md#beside-cozystacks-chart", "tenants.md#quotas"

REASONS_OF_TENANTS: Mapping[str, Rule] = {
    # every condition
    "Reconciled": Rule("The part is as the spec asks for.", READY),
    "Pending": Rule(
        "The part waits for another one, or for a controller of the cluster that has not answered yet.",
        READY,
        "wait; if it lasts, check that the controller that the message names is running",
    ),
    "Progressing": Rule(
        "Ready is Unknown until a controller has looked at the latest spec.",
        READY,
        "wait; if it lasts, check the Lease and the logs of tenant-apiserver, which must run controllers",
    ),
    "Unreadable": Rule(
        "A HelmRelease that cannot be read as a Tenant is shown without its spec.",
        "tenants.md#how-a-tenant-is-stored",
        "correct the HelmRelease that stores the tenant; the log of tenant-apiserver names the field",
    ),
    "Refused": Rule(
        "A write that the cluster refuses, or an object of another owner, leaves the part as it was.",
        READY,
        "do what the message of the cluster says: most often a policy, a quota or another owner is in the way",
    ),
    # Namespaces
    "NamespaceConflict": Rule(
        "The workload namespace of a tenant must not belong to anybody else.",
        FURTHER,
        "let the other owner give the Namespace up, or create the tenant under another name",
    ),
    "NotOwned": Rule(
        "A Namespace of another owner is never taken over.",
        FURTHER,
        "let the other owner give the Namespace up, or create the tenant under another name",
    ),
    "NamespaceTerminating": Rule(
        "Nothing can be created in a Namespace that is being deleted.",
        FURTHER,
        "wait until the Namespace is gone; delete what its conditions say remains",
    ),
    "NamespaceOfFormerTenant": Rule(
        "A Namespace that a former tenant left is not given to a new one of the same name.",
        FURTHER,
        "delete the Namespace, or create the tenant under another name",
    ),
    "ParentNotFound": Rule(
        "A tenant lies in the workload namespace of another tenant.",
        "tenants.md",
        "create the parent, or create the tenant in the workload namespace of an existing one",
    ),
    "ParentNamespaceNotReady": Rule(
        "The Namespace of a tenant is created after that of its parent.",
        READY,
        "wait for the parent; kubectl tenant explain tenant says why it is not ready",
    ),
    "SystemLabelRemoved": Rule("Labels of the platform are not left to tenants.", FURTHER),
    "NotOfThePlatform": Rule(
        "A label that only Namespaces of the platform may have is removed from those of tenants.",
        FURTHER,
        "do not set the label again",
    ),
    # hosts
    "HostConflict": Rule("Each domain belongs to one tenant.", _HOST, "set another spec.host"),
    "Duplicate": Rule("Each domain belongs to one tenant.", _HOST, "set another spec.host on one of the two"),
    "HostInvalid": Rule("The domain of a tenant is a DNS name in lower case.", _HOST, "correct spec.host"),
    "NotADomain": Rule("The domain of a tenant is a DNS name in lower case.", _HOST, "correct spec.host"),
    "HostTooLongForLabel": Rule(
        "A domain that is longer than the 63 characters of a label gets no Gateway.",
        "troubleshooting.md#there-is-no-tenantgateway",
        "set a shorter spec.host",
    ),
    "TooLong": Rule(
        "A domain that is longer than the 63 characters of a label gets no Gateway.",
        "troubleshooting.md#there-is-no-tenantgateway",
        "set a shorter spec.host",
    ),
    "SchedulingClassInvalid": Rule("A scheduling class is a label value.", _CONTENTS, "correct spec.schedulingClass"),
    "NotALabel": Rule("A scheduling class is a label value.", _CONTENTS, "correct spec.schedulingClass"),
    # contents of Namespaces
    "ChartConflict": Rule(
        "What the chart sets to another value than the tenant requires is left as it is.",
        _CHART,
        "upgrade or uninstall the chart's release, or change the value there",
    ),
    "LabelsDiffer": Rule(
        "Labels of the Namespace that the chart manages are left to the chart.",
        _CHART,
        "let the chart set the values that the message names",
    ),
    "ObjectsDiffer": Rule(
        "Objects that the chart manages are left to the chart.", _CHART, "let the chart set what the message names"
    ),
    "InvalidQuantity": Rule(
        "A key or quantity that a ResourceQuota cannot have limits nothing.",
        _CONTENTS,
        "correct the keys of spec.resourceQuotas that the message names",
    ),
    "PoolExceeded": Rule(
        "A tenant and those that share its quota together use no more than it.",
        "inheritance.md#pools-of-quota",
        "use less, or ask for a larger spec.resourceQuotas of the tenant that declares the pool",
    ),
    "NotEnforced": Rule(
        "On a cluster that counts no ResourceQuotas, declared limits bind only what child tenants may declare.",
        _QUOTAS,
    ),
    "NoQuotaController": Rule(
        "The quota controller of kube-controller-manager puts limits into effect.",
        _CONTENTS,
        "run kube-controller-manager with its resourcequota controller",
    ),
    "WaitsForQuota": Rule(
        "Nobody gets access to a namespace before its limits are in effect.", _CONTENTS, "wait for QuotaReady"
    ),
    "WaitsForIsolation": Rule(
        "Nobody gets access to a namespace before it is isolated.", _ISOLATION, "wait for IsolationReady"
    ),
    "ClusterRoleMissing": Rule(
        "People of a tenant are bound to ClusterRoles that the installation brings.",
        _CONTENTS,
        "kubectl apply --server-side -k manifests/overlays/cozy-tenant-roles",
    ),
    "ParentValuesMissing": Rule(
        "A tenant inherits the values of its parent from a Secret there.", _CONTENTS, "wait until the parent is ready"
    ),
    "Malformed": Rule(
        "A Secret that provides values must be readable as YAML.",
        _CONTENTS,
        "correct the Secret that the message names",
    ),
    # isolation
    "CiliumPolicies": Rule("CiliumNetworkPolicies isolate the namespace.", _ISOLATION),
    "NetworkPolicies": Rule("NetworkPolicies isolate the namespace.", _ISOLATION),
    "NotServed": Rule(
        "What needs a kind that the cluster does not serve, or a service that nothing publishes, is not there.",
        _ISOLATION,
        "install the CustomResourceDefinition, or publish the service, that the message names",
    ),
    "ClusterNetworksUnknown": Rule(
        "Without Cilium, tenants are isolated by the networks of the cluster, which must be known.",
        "isolation.md#without-cilium",
        "set isolation.clusterCIDRs of the platform settings",
    ),
    "ChartPoliciesRemain": Rule(
        "Policies of the tenant's chart open what ours do not.",
        _ISOLATION,
        "delete the policies that the message names",
    ),
    "TurnedOff": Rule("The platform has turned isolation off.", "isolation.md#settings"),
    "LeftToChart": Rule("The tenant's chart isolates the namespace.", _ISOLATION),
    # readiness of what the tenant asks for
    "NoController": Rule(
        "Flux installs what the services of a tenant need.",
        READY,
        "install Flux's helm-controller and the charts of Cozystack, or set the flag to false",
    ),
    "WorkloadsNotOperational": Rule(
        "WorkloadMonitors report the state of the tenant's workloads.", FURTHER, "look at the WorkloadMonitors named"
    ),
    "WorkloadsOperational": Rule("WorkloadMonitors report the state of the tenant's workloads.", FURTHER),
    "NoApex": Rule(
        "A Gateway serves a domain, which must exist and be valid.",
        "troubleshooting.md#there-is-no-tenantgateway",
        "set spec.host, or publishing.host of the platform settings",
    ),
    # deletion
    "Terminating": Rule("A tenant that is being deleted is not ready.", _DELETION, "wait, or do what its message says"),
    "HasChildTenants": Rule(
        "A tenant with children is deleted only if that is allowed.",
        "tenants.md#how-a-tenant-is-deleted",
        "delete the children first",
    ),
    "ChildTenantsRemain": Rule("Children are deleted before their parent.", _DELETION, "wait for the children"),
    "FluxUninstalls": Rule("Flux uninstalls the release before the Namespace goes.", _DELETION, "wait for Flux"),
    "TenantGatewayRemains": Rule(
        "The TenantGateway is deleted before the Namespace.", _DELETION, "look at the finalizers of the TenantGateway"
    ),
    "NamespaceRemains": Rule(
        "A tenant is gone when its Namespace is.", _DELETION, "delete what the message says remains in the Namespace"
    ),
    "NamespaceProtected": Rule(
        "A Namespace with the label platform.cozystack.io/no-delete is not deleted.",
        "tenants.md#how-a-tenant-is-deleted",
        "remove the label from the Namespace if it may go",
    ),
    # the platform
    "WrongValue": Rule(
        "A wrong value of the platform settings leaves those before in force.",
        "settings.md#invalid-settings",
        "correct the value that the message names",
    ),
    "Served": Rule("Every service of the platform that is asked for is published.", _GUARD),
    "NoPublishingTenant": Rule(
        "The tenant of publishing.ingressName publishes the services of the platform.",
        _GUARD,
        "create the tenant, or correct publishing.ingressName",
    ),
    "GatewayMissing": Rule(
        "The publishing tenant has a Gateway of its own.", _GUARD, "set gateway: true on the publishing tenant"
    ),
    "RouteMissing": Rule(
        "A published service has a route with its hostname.", _GUARD, "create the route that the message names"
    ),
    "NotAccepted": Rule(
        "A published service has a route that its Gateway accepts.", _GUARD, "look at the status of the route"
    ),
    "ListenerNotReady": Rule(
        "A hostname is served by a listener that is programmed.", _GUARD, "look at the listeners of the TenantGateway"
    ),
    "BackendMissing": Rule(
        "A published service has a Service with its port.", _GUARD, "create the Service that the message names"
    ),
    "IngressMissing": Rule(
        "Without Gateways an Ingress publishes the service.", _GUARD, "create the Ingress that the message names"
    ),
    "Unknown": Rule(
        "Only services of the platform can be published.", _GUARD, "remove the name from publishing.exposedServices"
    ),
}
"""Reasons that another controller may report as well, such as Flux, are explained by their message alone."""

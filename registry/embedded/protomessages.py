"""The messages in which Go clients send built-in kinds: field numbers and types of k8s.io/api and apimachinery.

Notation, a field between semicolons: number, JSON name, type. `*` before the type is a list, `{}` a map by string, and
`?` a field that is told from its zero value. Messages that no client of the embedded host sends are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    # k8s.io/apimachinery
    "Unknown": "1 typeMeta TypeMeta; 2 raw raw; 3 contentEncoding string; 4 contentType string",
    "TypeMeta": "1 apiVersion string; 2 kind string",
    "ObjectMeta": (
        "1 name string; 2 generateName string; 3 namespace string; 5 uid string; 6 resourceVersion string;"
        "7 generation int; 8 creationTimestamp Time; 9 deletionTimestamp Time; 10 deletionGracePeriodSeconds ?int;"
        "11 labels {}string; 12 annotations {}string; 13 ownerReferences *OwnerReference; 14 finalizers *string;"
        "17 managedFields *ManagedFieldsEntry"
    ),
    "OwnerReference": (
        "5 apiVersion string; 1 kind string; 3 name string; 4 uid string; 6 controller ?bool;7 blockOwnerDeletion ?bool"
    ),
    "ManagedFieldsEntry": (
        "1 manager string; 2 operation string; 3 apiVersion string; 4 time Time; 6 fieldsType string;"
        "7 fieldsV1 FieldsV1; 8 subresource string"
    ),
    "LabelSelector": "1 matchLabels {}string; 2 matchExpressions *Requirement",
    "Requirement": "1 key string; 2 operator string; 3 values *string",
    "DeleteOptions": (
        "1 gracePeriodSeconds ?int; 2 preconditions ?Preconditions; 3 orphanDependents ?bool;"
        "4 propagationPolicy ?string; 5 dryRun *string"
    ),
    "Preconditions": "1 uid ?string; 2 resourceVersion ?string",
    "Condition": (
        "1 type string; 2 status string; 3 observedGeneration int; 4 lastTransitionTime Time; 5 reason string;"
        "6 message string"
    ),
    # core/v1
    "Namespace": "1 metadata ObjectMeta; 2 spec NamespaceSpec; 3 status NamespaceStatus",
    "NamespaceSpec": "1 finalizers *string",
    "NamespaceStatus": "1 phase string; 2 conditions *NamespaceCondition",
    "NamespaceCondition": (
        "1 type string; 2 status string; 4 lastTransitionTime Time; 5 reason string; 6 message string"
    ),
    "ConfigMap": "1 metadata ObjectMeta; 2 data {}string; 3 binaryData {}bytes; 4 immutable ?bool",
    "Secret": "1 metadata ObjectMeta; 2 data {}bytes; 3 type string; 4 stringData {}string; 5 immutable ?bool",
    "ServiceAccount": (
        "1 metadata ObjectMeta; 2 secrets *ObjectReference; 3 imagePullSecrets *LocalObjectReference;"
        "4 automountServiceAccountToken ?bool"
    ),
    "ObjectReference": (
        "1 kind string; 2 namespace string; 3 name string; 4 uid string; 5 apiVersion string;"
        "6 resourceVersion string; 7 fieldPath string"
    ),
    "LocalObjectReference": "1 name string",
    "Service": "1 metadata ObjectMeta; 2 spec ServiceSpec; 3 status ServiceStatus",
    "ServiceSpec": (
        "1 ports *ServicePort; 2 selector {}string; 3 clusterIP string; 4 type string; 5 externalIPs *string;"
        "7 sessionAffinity string; 8 loadBalancerIP string; 9 loadBalancerSourceRanges *string; 10 externalName string;"
        "11 externalTrafficPolicy string; 12 healthCheckNodePort int; 13 publishNotReadyAddresses bool;"
        "17 ipFamilyPolicy ?string; 18 clusterIPs *string; 19 ipFamilies *string;"
        "20 allocateLoadBalancerNodePorts ?bool; 21 loadBalancerClass ?string; 22 internalTrafficPolicy ?string"
    ),
    "ServicePort": (
        "1 name string; 2 protocol string; 3 port int; 4 targetPort IntOrString; 5 nodePort int; 6 appProtocol ?string"
    ),
    "ServiceStatus": "1 loadBalancer LoadBalancerStatus; 2 conditions *Condition",
    "LoadBalancerStatus": "1 ingress *LoadBalancerIngress",
    "LoadBalancerIngress": "1 ip string; 2 hostname string",
    "ResourceQuota": "1 metadata ObjectMeta; 2 spec ResourceQuotaSpec; 3 status ResourceQuotaStatus",
    "ResourceQuotaSpec": "1 hard {}Quantity; 2 scopes *string; 3 scopeSelector ?ScopeSelector",
    "ResourceQuotaStatus": "1 hard {}Quantity; 2 used {}Quantity",
    "ScopeSelector": "1 matchExpressions *ScopeRequirement",
    "ScopeRequirement": "1 scopeName string; 2 operator string; 3 values *string",
    "LimitRange": "1 metadata ObjectMeta; 2 spec LimitRangeSpec",
    "LimitRangeSpec": "1 limits *LimitRangeItem",
    "LimitRangeItem": (
        "1 type string; 2 max {}Quantity; 3 min {}Quantity; 4 default {}Quantity; 5 defaultRequest {}Quantity;"
        "6 maxLimitRequestRatio {}Quantity"
    ),
    # coordination.k8s.io/v1
    "Lease": "1 metadata ObjectMeta; 2 spec LeaseSpec",
    "LeaseSpec": (
        "1 holderIdentity ?string; 2 leaseDurationSeconds ?int; 3 acquireTime MicroTime; 4 renewTime MicroTime;"
        "5 leaseTransitions ?int; 6 strategy ?string; 7 preferredHolder ?string"
    ),
    # rbac.authorization.k8s.io/v1
    "Role": "1 metadata ObjectMeta; 2 rules *PolicyRule",
    "ClusterRole": "1 metadata ObjectMeta; 2 rules *PolicyRule; 3 aggregationRule ?AggregationRule",
    "AggregationRule": "1 clusterRoleSelectors *LabelSelector",
    "PolicyRule": (
        "1 verbs *string; 2 apiGroups *string; 3 resources *string; 4 resourceNames *string; 5 nonResourceURLs *string"
    ),
    "RoleBinding": "1 metadata ObjectMeta; 2 subjects *Subject; 3 roleRef RoleRef",
    "ClusterRoleBinding": "1 metadata ObjectMeta; 2 subjects *Subject; 3 roleRef RoleRef",
    "RoleRef": "1 apiGroup string; 2 kind string; 3 name string",
    "Subject": "1 kind string; 2 apiGroup string; 3 name string; 4 namespace string",
    # authorization.k8s.io/v1 and authentication.k8s.io/v1; the status is the server's, and not read
    "SubjectAccessReview": "1 metadata ObjectMeta; 2 spec SubjectAccessReviewSpec",
    "LocalSubjectAccessReview": "1 metadata ObjectMeta; 2 spec SubjectAccessReviewSpec",
    "SelfSubjectAccessReview": "1 metadata ObjectMeta; 2 spec SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview": "1 metadata ObjectMeta; 2 spec SelfSubjectRulesReviewSpec",
    "SubjectAccessReviewSpec": (
        "1 resourceAttributes ?ResourceAttributes; 2 nonResourceAttributes ?NonResourceAttributes; 3 user string;"
        "4 groups *string; 5 extra {}ExtraValue; 6 uid string"
    ),
    "SelfSubjectAccessReviewSpec": (
        "1 resourceAttributes ?ResourceAttributes; 2 nonResourceAttributes ?NonResourceAttributes"
    ),
    "SelfSubjectRulesReviewSpec": "1 namespace string",
    "ResourceAttributes": (
        "1 namespace string; 2 verb string; 3 group string; 4 version string; 5 resource string; 6 subresource string;"
        "7 name string; 8 fieldSelector ?SelectorAttributes; 9 labelSelector ?SelectorAttributes"
    ),
    "SelectorAttributes": "1 rawSelector string; 2 requirements *Requirement",
    "NonResourceAttributes": "1 path string; 2 verb string",
    "SelfSubjectReview": "1 metadata ObjectMeta",
    "TokenReview": "1 metadata ObjectMeta; 2 spec TokenReviewSpec",
    "TokenReviewSpec": "1 token string; 2 audiences *string",
}

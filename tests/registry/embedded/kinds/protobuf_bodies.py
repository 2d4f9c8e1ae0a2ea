"""Protobuf bodies as Go's clients send them, and the objects that they contain.

Bodies of kubectl were captured from v1.37.1; the others are client-go's encoding of the object.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class CapturedBody(NamedTuple):
    client: str
    body: str
    """Base64."""
    object: dict[str, Any]


CAPTURED_BODIES = (
    CapturedBody(
        "kubectl create token robot --duration=10m --audience=a --bound-object-kind=Secret --bound-object-name=s",
        "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBI0ChAKABIAGgAiACoAMgA4AEIAEhoKAWEa"
        "EgoGU2VjcmV0EgJ2MRoBcyIBdSDYBBoECgASABoAIgA=",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": ["a"],
                "expirationSeconds": 600,
                "boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "u"},
            },
        },
    ),
    CapturedBody(
        "kubectl create namespace typed",
        "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEh0KFQoFdHlwZWQSABoAIgAqADIAOABCABIAGgIKABoAIgA=",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "typed"}},
    ),
    CapturedBody(
        "kubectl create configmap settings --from-literal=colour=blue --from-literal=empty= --from-file=bin",
        "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEkcKHQoIc2V0dGluZ3MSABoFdHlwZWQiACoAMgA4AEIAEg4KBmNvbG91chIEYmx1ZRIJ"
        "CgVlbXB0eRIAGgsKA2JpbhIE//4AARoAIgA=",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "typed"},
            "data": {"colour": "blue", "empty": ""},
            "binaryData": {"bin": "//4AAQ=="},
        },
    ),
    CapturedBody(
        "kubectl create secret generic login --from-literal=user=admin",
        "azhzAAoMCgJ2MRIGU2VjcmV0Ei0KGgoFbG9naW4SABoFdHlwZWQiACoAMgA4AEIAEg0KBHVzZXISBWFkbWluGgAaACIA",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "login", "namespace": "typed"},
            "data": {"user": "YWRtaW4="},
        },
    ),
    CapturedBody(
        "kubectl create serviceaccount robot",
        "azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSHAoaCgVyb2JvdBIAGgV0eXBlZCIAKgAyADgAQgAaACIA",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "typed"}},
    ),
    CapturedBody(
        "kubectl create role reader --verb=get,list --resource=configmaps,secrets --resource-name=settings",
        "azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEksKGwoGcmVhZGVyEgAaBXR5cGVkIgAqADIAOABC"
        "ABIsCgNnZXQKBGxpc3QSABoKY29uZmlnbWFwcxoHc2VjcmV0cyIIc2V0dGluZ3MaACIA",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "reader", "namespace": "typed"},
            "rules": [
                {
                    "verbs": ["get", "list"],
                    "apiGroups": [""],
                    "resources": ["configmaps", "secrets"],
                    "resourceNames": ["settings"],
                }
            ],
        },
    ),
    CapturedBody(
        "kubectl create clusterrole checker --verb=get --non-resource-url=/healthz",
        "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIqChcKB2NoZWNrZXISABoAIgAqADIA"
        "OABCABIPCgNnZXQqCC9oZWFsdGh6GgAiAA==",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "checker"},
            "rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        },
    ),
    CapturedBody(
        "kubectl create clusterrole sum --aggregation-rule=part=sum",
        "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRImChMKA3N1bRIAGgAiACoAMgA4AEIA"
        "Gg8KDQoLCgRwYXJ0EgNzdW0aACIA",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "sum"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "sum"}}]},
        },
    ),
    CapturedBody(
        "kubectl create rolebinding readers --role=reader --user=ann --group=staff --serviceaccount=typed:robot",
        "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxLCAQocCgdyZWFkZXJzEgAaBXR5cGVk"
        "IgAqADIAOABCABIoCgRVc2VyEhlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvGgNhbm4iABIrCgVHcm91cBIZcmJhYy5hdXRo"
        "b3JpemF0aW9uLms4cy5pbxoFc3RhZmYiABIgCg5TZXJ2aWNlQWNjb3VudBIAGgVyb2JvdCIFdHlwZWQaKQoZcmJhYy5hdXRo"
        "b3JpemF0aW9uLms4cy5pbxIEUm9sZRoGcmVhZGVyGgAiAA==",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "readers", "namespace": "typed"},
            "subjects": [
                {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"},
                {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "staff"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "typed"},
            ],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        },
    ),
    CapturedBody(
        "kubectl create clusterrolebinding checkers --clusterrole=checker --user=ann",
        "azhzAAoyChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEhJDbHVzdGVyUm9sZUJpbmRpbmcSdwoYCghjaGVja2VycxIA"
        "GgAiACoAMgA4AEIAEigKBFVzZXISGXJiYWMuYXV0aG9yaXphdGlvbi5rOHMuaW8aA2FubiIAGjEKGXJiYWMuYXV0aG9yaXph"
        "dGlvbi5rOHMuaW8SC0NsdXN0ZXJSb2xlGgdjaGVja2VyGgAiAA==",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "checkers"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "checker"},
        },
    ),
    CapturedBody(
        "kubectl create quota small --hard=cpu=500m,pods=2 --scopes=BestEffort",
        "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJIChoKBXNtYWxsEgAaBXR5cGVkIgAqADIAOABCABIoCg0KA2NwdRIGCgQ1MDBt"
        "CgsKBHBvZHMSAwoBMhIKQmVzdEVmZm9ydBoAGgAiAA==",
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "small", "namespace": "typed"},
            "spec": {"hard": {"cpu": "500m", "pods": "2"}, "scopes": ["BestEffort"]},
        },
    ),
    CapturedBody(
        "kubectl create service clusterip web --tcp=80:8080",
        "azhzAAoNCgJ2MRIHU2VydmljZRJuCiQKA3dlYhIAGgV0eXBlZCIAKgAyADgAQgBaCgoDYXBwEgN3ZWISQgobCgc4MC04MDgw"
        "EgNUQ1AYUCIHCAAQkD8aACgAEgoKA2FwcBIDd2ViGgAiCUNsdXN0ZXJJUDoAQgBSAFoAYABoABoCCgAaACIA",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "typed", "labels": {"app": "web"}},
            "spec": {
                "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                "selector": {"app": "web"},
                "type": "ClusterIP",
            },
        },
    ),
    CapturedBody(
        "kubectl create service nodeport door --tcp=80:http --node-port=30080",
        "azhzAAoNCgJ2MRIHU2VydmljZRJ1CiYKBGRvb3ISABoFdHlwZWQiACoAMgA4AEIAWgsKA2FwcBIEZG9vchJHCiAKBzgwLWh0"
        "dHASA1RDUBhQIgoIARAAGgRodHRwKIDrARILCgNhcHASBGRvb3IaACIITm9kZVBvcnQ6AEIAUgBaAGAAaAAaAgoAGgAiAA==",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "door", "namespace": "typed", "labels": {"app": "door"}},
            "spec": {
                "ports": [{"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http", "nodePort": 30080}],
                "selector": {"app": "door"},
                "type": "NodePort",
            },
        },
    ),
    CapturedBody(
        "kubectl create service externalname away --external-name=example.org",
        "azhzAAoNCgJ2MRIHU2VydmljZRJiCiYKBGF3YXkSABoFdHlwZWQiACoAMgA4AEIAWgsKA2FwcBIEYXdheRI0EgsKA2FwcBIE"
        "YXdheRoAIgxFeHRlcm5hbE5hbWU6AEIAUgtleGFtcGxlLm9yZ1oAYABoABoCCgAaACIA",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "away", "namespace": "typed", "labels": {"app": "away"}},
            "spec": {"selector": {"app": "away"}, "type": "ExternalName", "externalName": "example.org"},
        },
    ),
    CapturedBody(
        "kubectl auth can-i get configmaps/settings --subresource=status",
        "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSTgoQCgASABoAIgAqADIA"
        "OABCABIwCi4KBXR5cGVkEgNnZXQaACIAKgpjb25maWdtYXBzMgZzdGF0dXM6CHNldHRpbmdzGggIABIAGgAgABoAIgA=",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "namespace": "typed",
                    "verb": "get",
                    "resource": "configmaps",
                    "subresource": "status",
                    "name": "settings",
                }
            },
        },
    ),
    CapturedBody(
        "kubectl auth can-i get /healthz",
        "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSLwoQCgASABoAIgAqADIA"
        "OABCABIREg8KCC9oZWFsdGh6EgNnZXQaCAgAEgAaACAAGgAiAA==",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        },
    ),
    CapturedBody(
        "kubectl auth can-i --list",
        "azhzAAoxChdhdXRob3JpemF0aW9uLms4cy5pby92MRIWU2VsZlN1YmplY3RSdWxlc1JldmlldxIhChAKABIAGgAiACoAMgA4"
        "AEIAEgcKBXR5cGVkGgQYACIAGgAiAA==",
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "typed"}},
    ),
    CapturedBody(
        "kubectl auth whoami",
        "azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgAS"
        "BgoECgASABoAIgA=",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    ),
    CapturedBody(
        "kubectl auth reconcile (PUT of a Role)",
        "azhzAAokChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgRSb2xlEs4BCqABCgNyZWMSABoFdHlwZWQiACokOWI5NTY1"
        "NWEtN2ExNi00YTljLWIyZTUtMTFiMGU3MGUxMGRhMgI1MzgAQggIzNuE2AYQAIoBVwoHa3ViZWN0bBIGVXBkYXRlGhxyYmFj"
        "LmF1dGhvcml6YXRpb24uazhzLmlvL3YxIggIzNuE2AYQADIIRmllbGRzVjE6EAoOeyJmOnJ1bGVzIjp7fX1CABITCgNnZXQS"
        "ABoKY29uZmlnbWFwcxIUCgRsaXN0EgAaCmNvbmZpZ21hcHMaACIA",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {
                "name": "rec",
                "namespace": "typed",
                "uid": "9b95655a-7a16-4a9c-b2e5-11b0e70e10da",
                "resourceVersion": "53",
                "creationTimestamp": "2026-11-21T05:36:12Z",
                "managedFields": [
                    {
                        "manager": "kubectl",
                        "operation": "Update",
                        "apiVersion": "rbac.authorization.k8s.io/v1",
                        "time": "2026-11-21T05:36:12Z",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:rules": {}},
                    }
                ],
            },
            "rules": [
                {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]},
                {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]},
            ],
        },
    ),
    CapturedBody(
        "kubectl auth reconcile (DELETE of a RoleBinding)",
        "azhzAAotChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEg1EZWxldGVPcHRpb25zEigSJgokMWJlZWQ3MDEtNThmMi00"
        "ZGM1LTlmNzItMzBmZmI1NzZmNTA4GgAiAA==",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "1beed701-58f2-4dc5-9f72-30ffb576f508"},
        },
    ),
    CapturedBody(
        "client-go: Event of v1",
        "azhzAAoLCgJ2MRIFRXZlbnQSegoWCgFuEgAaBXR5cGVkIgAqADIAOABCABIkCglDb25maWdNYXASBXR5cGVkGghzZXR0aW5n"
        "cyIAKgAyADoAGgRNYWRlIgtJdCBpcyBtYWRlLioJCgVtYWtlchIAMggIgOLPqgYQADoAQANKBk5vcm1hbFIAYgByAHoAGgAi"
        "AA==",
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "n", "namespace": "typed"},
            "involvedObject": {"kind": "ConfigMap", "namespace": "typed", "name": "settings"},
            "reason": "Made",
            "message": "It is made.",
            "source": {"component": "maker"},
            "firstTimestamp": "2023-11-14T22:13:20Z",
            "count": 3,
            "type": "Normal",
        },
    ),
    CapturedBody(
        "client-go: Event of events.k8s.io/v1",
        "azhzAAoZChBldmVudHMuazhzLmlvL3YxEgVFdmVudBKOAQoWCgFuEgAaBXR5cGVkIgAqADIAOABCABILCIDiz6oGEICU7zoa"
        "DwgCEgsIgOLPqgYQgJTvOiIFbWFrZXIqADIETWFrZToAQiQKCUNvbmZpZ01hcBIFdHlwZWQaCHNldHRpbmdzIgAqADIAOgBS"
        "C0l0IGlzIG1hZGUuWgZOb3JtYWxiBAoAEgBqAHIAeAAaACIA",
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "n", "namespace": "typed"},
            "eventTime": "2023-11-14T22:13:20.123456Z",
            "series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:20.123456Z"},
            "reportingController": "maker",
            "action": "Make",
            "regarding": {"kind": "ConfigMap", "namespace": "typed", "name": "settings"},
            "note": "It is made.",
            "type": "Normal",
        },
    ),
    CapturedBody(
        "client-go: Lease of coordination.k8s.io/v1",
        "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRIvChYKAW4SABoFdHlwZWQiACoAMgA4AEIAEhUKAm1lEAEi"
        "CwiA4s+qBhCAlO86KAAaACIA",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "n", "namespace": "typed"},
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 1,
                "renewTime": "2023-11-14T22:13:20.123456Z",
                "leaseTransitions": 0,
            },
        },
    ),
    CapturedBody(
        "client-go: LimitRange of v1",
        "azhzAAoQCgJ2MRIKTGltaXRSYW5nZRI2ChYKAW4SABoFdHlwZWQiACoAMgA4AEIAEhwKGgoJQ29udGFpbmVyIg0KA2NwdRIG"
        "CgQxMDBtGgAiAA==",
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "n", "namespace": "typed"},
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]},
        },
    ),
    CapturedBody(
        "client-go: SubjectAccessReview of authorization.k8s.io/v1",
        "azhzAAouChdhdXRob3JpemF0aW9uLms4cy5pby92MRITU3ViamVjdEFjY2Vzc1JldmlldxJFChAKABIAGgAiACoAMgA4AEIA"
        "EicSBAoAEgAaA2FubiIFc3RhZmYqEAoGc2NvcGVzEgYKAWEKAWIyATEaCAgAEgAaACAAGgAiAA==",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "nonResourceAttributes": {},
                "user": "ann",
                "groups": ["staff"],
                "extra": {"scopes": ["a", "b"]},
                "uid": "1",
            },
        },
    ),
    CapturedBody(
        "client-go: LocalSubjectAccessReview of authorization.k8s.io/v1",
        "azhzAAozChdhdXRob3JpemF0aW9uLms4cy5pby92MRIYTG9jYWxTdWJqZWN0QWNjZXNzUmV2aWV3EloKFQoAEgAaBXR5cGVk"
        "IgAqADIAOABCABI3Ci4KBXR5cGVkEgRsaXN0GgAiACoHc2VjcmV0czIAOgBKDgoAEgoKAWESAkluGgFiGgNhbm4yABoICAAS"
        "ABoAIAAaACIA",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": "typed"},
            "spec": {
                "resourceAttributes": {
                    "namespace": "typed",
                    "verb": "list",
                    "resource": "secrets",
                    "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
                },
                "user": "ann",
            },
        },
    ),
    CapturedBody(
        "client-go: TokenReview of authentication.k8s.io/v1",
        "azhzAAonChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESC1Rva2VuUmV2aWV3EikKEAoAEgAaACIAKgAyADgAQgASCQoBdBIE"
        "aGVyZRoKCAASBAoAEgAaABoAIgA=",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": "t", "audiences": ["here"]},
        },
    ),
    CapturedBody(
        "client-go: DeleteOptions of v1",
        "azhzAAoTCgJ2MRINRGVsZXRlT3B0aW9ucxIWCAASAxIBNxgAIgZPcnBoYW4qA0FsbBoAIgA=",
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"resourceVersion": "7"},
            "orphanDependents": False,
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        },
    ),
)

"""The keys that Tenants would have by the namespaces in a question, where there is no such Tenant. Pure.

They are reviewed in place of a Tenant's, so that the reviews of an answer do not tell whether there is one.
"""

from __future__ import annotations

from apiserver.meta.resource import Key
from registry.names import NAMESPACE_PREFIX, ROOT_NAME, ROOT_NAMESPACE, workload_namespace


def key_of_namespace(namespace: str) -> Key:
    """The Tenant that would have this workload namespace; others for names that no Tenant's has."""
    if namespace == ROOT_NAMESPACE:
        return Key(ROOT_NAMESPACE, ROOT_NAME)
    parent, _, name = namespace.rpartition("-")
    key = Key(ROOT_NAMESPACE if f"{parent}-" == NAMESPACE_PREFIX else parent, name)
    return key if workload_namespace(*key) == namespace else Key(namespace, namespace)

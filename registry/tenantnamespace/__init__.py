"""The TenantNamespace kind: a read-only view of the Namespaces of tenants."""

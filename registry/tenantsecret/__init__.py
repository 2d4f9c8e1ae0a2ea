"""The TenantSecret kind: the Secrets that are labelled as a tenant's own, one for one."""

"""The TenantModule kind: a read-only view of the HelmReleases that are modules of a tenant, such as its etcd."""

"""The Tenant kind, stored as HelmReleases of the cluster."""

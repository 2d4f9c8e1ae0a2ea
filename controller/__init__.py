"""Controllers, which bring the cluster to the state that Tenants and TenantGateways declare."""

"""The condition Ready of a Tenant: the parts that it is computed from, and the state of the HelmRelease."""

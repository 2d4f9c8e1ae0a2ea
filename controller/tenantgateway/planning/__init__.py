"""The changes that the controller of TenantGateways would make after those of Tenants: nothing is sent."""

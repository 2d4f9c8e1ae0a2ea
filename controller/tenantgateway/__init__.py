"""The controller that turns TenantGateways into Gateways, Issuers, Certificates and route statuses."""

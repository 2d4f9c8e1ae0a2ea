"""The TenantGateway kind and its CustomResourceDefinition."""

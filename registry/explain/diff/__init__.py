"""The subresource `tenants/diff`: what the controllers would change for a Tenant, as far as the user may get it."""

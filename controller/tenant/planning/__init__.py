"""The changes that the controllers would make for a Tenant, as it is or as a client would make it: nothing is sent."""

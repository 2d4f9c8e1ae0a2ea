"""Why a Tenant, a hostname, a route, a namespace or a user is as it is: the chain of facts that leads there."""

"""The network policies of a Tenant's Namespace, which isolate it from its siblings (R-076 to R-081)."""

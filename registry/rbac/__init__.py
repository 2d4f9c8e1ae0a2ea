"""RBAC decisions over an in-memory index of roles and bindings."""

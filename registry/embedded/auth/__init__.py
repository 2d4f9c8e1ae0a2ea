"""Authentication and authorization of the embedded cluster: service account tokens, RBAC and its default roles."""

"""The REST verbs over any storage backend (pkg/registry/generic in kubernetes/apiserver)."""

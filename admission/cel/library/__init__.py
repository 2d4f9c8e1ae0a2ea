"""Kubernetes' CEL function libraries (pkg/cel/library), one per file."""

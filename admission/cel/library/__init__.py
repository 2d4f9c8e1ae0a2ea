"""Kubernetes' CEL function libraries (pkg/cel/library), a file each."""

"""Structural schemas: pruning, defaulting and validation (apiextensions-apiserver/pkg/apiserver/schema)."""

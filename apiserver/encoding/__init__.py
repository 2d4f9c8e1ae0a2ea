"""Encoded objects and their representations: JSON, YAML, tables, metadata only, gzip."""

"""Generates and serves the OpenAPI documents, /openapi/v2 and /openapi/v3."""

"""Maps request paths to handlers, and serves discovery and OpenAPI."""

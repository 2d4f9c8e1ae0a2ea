"""JSON values: comparison, nesting limits, and parsing of deeply nested documents."""

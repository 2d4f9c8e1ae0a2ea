"""Values typed by a schema: merge, compare, validate (structured-merge-diff/typed)."""

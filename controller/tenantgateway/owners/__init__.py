"""The namespaces that may own a Gateway, and what becomes of one that is in no such namespace."""

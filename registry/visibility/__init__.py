"""The namespaces that a user may see in lists and watches."""

"""Parts of a hostname that its owner gives to routes of other namespaces, which consent by ReferenceGrants (seed 003).

A root is a route in the namespace that owns the hostname; a vertex is a route that a root, or another vertex, delegates
to. For each vertex that is reached, a flat route is written into the root's namespace, which the Gateway serves.
"""

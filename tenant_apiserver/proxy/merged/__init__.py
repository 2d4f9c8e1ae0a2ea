"""Lists and watches that are merged of several, each of which the cluster allows the caller.

Every byte comes from a request that the caller himself may make: the index of RBAC objects says only where to ask.
"""

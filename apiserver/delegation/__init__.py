"""Calls of the review endpoints of the cluster, and the cache of their decisions."""

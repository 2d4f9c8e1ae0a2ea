"""Kinds that show objects of the cluster in another form, one for one: what feeds their caches, and their storages."""

"""The client of the cluster, which stores all state, and informers (client-go's rest and tools/cache)."""

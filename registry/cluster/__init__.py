"""The cluster that state is kept in: its client, and informers over its objects (client-go's rest and tools/cache)."""

"""The stored kinds: the clients, caches and storages behind the API server, and the rules of each kind."""

"""A generic Kubernetes-style API server on aiohttp. It serves resources from storages, whatever their kinds are."""

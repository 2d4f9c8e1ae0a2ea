"""A generic Kubernetes-style API server on aiohttp. It serves the resources of any storage, whatever they mean."""

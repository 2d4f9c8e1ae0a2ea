"""A generic Kubernetes-style API server on aiohttp. It knows nothing about the resources that it serves."""

"""A generic Kubernetes-style HTTP API over aiohttp. It knows resources and storages, never what they mean."""

"""The Common Expression Language as Kubernetes' policies and webhooks use it."""

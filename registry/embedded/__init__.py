"""A Kubernetes API server with its controllers in this process, over SQLite: for evaluation, development and CI."""

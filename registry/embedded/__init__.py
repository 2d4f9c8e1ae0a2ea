"""A Kubernetes API server with its controllers in this process, over SQLite: for trying out, development and CI."""

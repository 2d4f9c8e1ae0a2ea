"""The HTTPS server: application, listener, shutdown, health checks and version."""

"""Field ownership and server-side apply (pkg/endpoints/handlers/fieldmanager of kubernetes/apiserver)."""

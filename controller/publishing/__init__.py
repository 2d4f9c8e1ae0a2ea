"""The publishing guard: which of the platform's services are published, by route or by Ingress, and what is missing."""

"""The controller of Tenants: the reconciler, its steps (one per `*_step` module), and the finalizer."""

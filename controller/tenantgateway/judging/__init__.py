"""The conditions that routes get for their parentRefs to Gateways."""

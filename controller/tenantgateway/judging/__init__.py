"""What the status of routes tells about their parentRefs to Gateways."""

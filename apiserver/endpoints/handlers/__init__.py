"""The handlers of the API verbs, one per file."""

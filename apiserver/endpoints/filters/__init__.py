"""The filters that every request passes before its handler, one per file."""

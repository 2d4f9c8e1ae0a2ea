"""Command-line flags and the file of platform settings."""

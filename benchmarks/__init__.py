"""Benchmarks: programs that measure a running server from outside, over TLS, and print a table."""

"""Wires the API, the controllers and the reports of applications."""

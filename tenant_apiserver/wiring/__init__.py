"""Builds the parts of the process, one module for each part."""

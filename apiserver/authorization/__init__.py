"""Authorizers, the attributes they decide on, and the 403 of a denied request."""

"""Authenticators: front proxy headers, client certificates and bearer tokens, tried in order."""

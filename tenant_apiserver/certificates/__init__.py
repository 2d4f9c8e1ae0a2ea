"""Sources of the serving certificate and of the client CAs, and their rotation."""

"""Where the serving certificate and the CAs of clients come from, and their rotation."""

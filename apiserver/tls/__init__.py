"""TLS of the listener: accepting connections, handshakes, certificates and their reload."""

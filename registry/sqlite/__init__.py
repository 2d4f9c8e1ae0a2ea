"""The storage backend of the embedded cluster: objects in an SQLite database."""

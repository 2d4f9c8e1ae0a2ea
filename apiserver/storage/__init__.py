"""The watch cache: keeps the objects of one resource in memory, and serves lists and watches from it."""

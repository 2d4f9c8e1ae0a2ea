"""The cost of `tenant-apiserver proxy`."""

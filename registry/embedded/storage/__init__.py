"""REST storages and strategies of the embedded cluster's resources."""

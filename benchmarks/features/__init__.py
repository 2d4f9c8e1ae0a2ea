"""One program for each feature or cost that the general comparison does not measure."""

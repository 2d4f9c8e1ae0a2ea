"""The paths of routes, as far as they decide which routes may have one hostname together."""

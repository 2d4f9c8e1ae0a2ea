"""Tests that take something away from a server, or give it too much. A package, so that its clusters end with it."""

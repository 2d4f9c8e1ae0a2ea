"""The platform's settings, and the values that are rendered from them."""

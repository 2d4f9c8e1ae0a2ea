"""The web page: the tree of Tenants in a browser, served on loopback with the credentials of one user."""

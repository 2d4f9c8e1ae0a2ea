"""The command `tenant-apiserver`: parse options, build the server and its controllers, run them."""

__version__ = "0.1.0"

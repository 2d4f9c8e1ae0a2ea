"""The command: options -> validate -> build -> run."""

__version__ = "0.1.0"

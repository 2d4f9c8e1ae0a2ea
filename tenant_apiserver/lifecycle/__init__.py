"""Going onto a live cluster and off again: `preflight`, `replace`, `back` and `uninstall`, with the operator's rights.

Pure functions judge facts and say what to write; `reader.py` reads the facts, and `writer.py` writes.
"""

"""Imports configuration, credentials and transport of kubernetes-asyncio without its generated models.

The `__init__` modules of the library import 850 generated modules, none of them used here, at a cost of 34 MiB and a
third of the start-up time. The two outer packages are therefore registered without executing them.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

_LIBRARY = "kubernetes_asyncio"


def _register_package(name: str) -> ModuleType:
    """Registers the package without executing it, unless it has been imported already."""
    if name not in sys.modules:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.modules[name] = importlib.util.module_from_spec(spec)
    return sys.modules[name]


_register_package(_LIBRARY)
_client = _register_package(f"{_LIBRARY}.client")

from kubernetes_asyncio.client.configuration import Configuration  # noqa: E402

for _name, _value in {"Configuration": Configuration, "ApiClient": object}.items():
    # the library's `config` imports both from `client`, and uses ApiClient only in annotations
    if not hasattr(_client, _name):
        setattr(_client, _name, _value)

from kubernetes_asyncio import config  # noqa: E402
from kubernetes_asyncio.client.rest import RESTClientObject  # noqa: E402
from kubernetes_asyncio.config import ConfigException  # noqa: E402

__all__ = ["ConfigException", "Configuration", "RESTClientObject", "config"]

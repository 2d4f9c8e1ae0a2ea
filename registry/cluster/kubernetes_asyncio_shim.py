"""What we use of kubernetes-asyncio: configuration, credentials and transport.

The library's packages import 850 modules of generated models and clients, of which nothing is used here and which
need 34 MiB and a third of a start's time. So its two outer packages are entered without being executed.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

_LIBRARY = "kubernetes_asyncio"


def _enter(name: str) -> ModuleType:
    """The package, for its modules to be found in; as it is if somebody has imported it before."""
    if name not in sys.modules:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.modules[name] = importlib.util.module_from_spec(spec)
    return sys.modules[name]


_enter(_LIBRARY)
_client = _enter(f"{_LIBRARY}.client")

from kubernetes_asyncio.client.configuration import Configuration  # noqa: E402

for _name, _value in {"Configuration": Configuration, "ApiClient": object}.items():
    # what the library's `config` imports from `client`; of ApiClient it only says that functions return it
    if not hasattr(_client, _name):
        setattr(_client, _name, _value)

from kubernetes_asyncio import config  # noqa: E402
from kubernetes_asyncio.client.rest import RESTClientObject  # noqa: E402
from kubernetes_asyncio.config import ConfigException  # noqa: E402

__all__ = ["ConfigException", "Configuration", "RESTClientObject", "config"]

"""The identity of a replica in Leases."""

from __future__ import annotations

import os
import socket
import uuid


def new_identity() -> str:
    """A name that no other process has, nor another start of this one."""
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"

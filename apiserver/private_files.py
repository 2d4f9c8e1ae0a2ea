"""Files that only their owner may read: keys, kubeconfigs, databases.

Another user with write access to the directory can replace a file that is about to be written by a symbolic link or by
a file of their own. Nothing here follows such a link, or writes secrets into a file that another user has opened.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

MODE = 0o600
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_private(path: Path, content: bytes) -> None:
    """Atomically replaces `path` by a new file of mode 0600. A symbolic link there is replaced, not followed. Raises
    OSError."""
    # the name cannot be guessed, so that nobody can occupy it and prevent the write
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(scratch, os.O_WRONLY | _NEW, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def create_private(path: Path) -> None:
    """Creates an empty file of mode 0600. An existing file keeps its content and gets this mode. Raises OSError, for a
    symbolic link, too."""
    try:
        descriptor = os.open(path, os.O_RDWR | _NEW, MODE)
    except FileExistsError:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, MODE)
    os.close(descriptor)

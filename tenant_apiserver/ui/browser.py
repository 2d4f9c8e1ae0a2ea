"""Opens the page in the user's browser without showing the code to other accounts: the arguments of a process are
public, so the browser gets a private file that leads to the URL."""

from __future__ import annotations

import threading
import webbrowser
from html import escape
from pathlib import Path
from typing import Final

from apiserver.private_files import write_private

_DOCUMENT: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Tenants</title>
</head>
<body><p><a href="{url}">The page of the tenants</a></p></body>
</html>
"""


def write_leading_file(folder: Path, url: str) -> Path:
    """Writes a document that leads to `url` into a folder that only the user can enter."""
    path = folder / "tenants.html"
    write_private(path, _DOCUMENT.format(url=escape(url)).encode())
    return path


def open_in_browser(folder: Path, url: str) -> None:
    """Opens the URL by a file in the folder. Does not wait for the browser, which may run in the terminal."""
    address = write_leading_file(folder, url).as_uri()
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

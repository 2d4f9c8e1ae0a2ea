"""The documents that a browser gets without a session. They have no style of their own: the policy of content allows
only files, and the files of the page are not for strangers. Pure."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from typing import Final

from aiohttp import web

_DOCUMENT: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{text}</p>
</main>
</body>
</html>
"""


def document(status: HTTPStatus, title: str, text: str) -> web.Response:
    """A page of one heading and one paragraph."""
    body = _DOCUMENT.format(title=escape(title), text=escape(text))
    return web.Response(status=status, text=body, content_type="text/html", charset="utf-8")

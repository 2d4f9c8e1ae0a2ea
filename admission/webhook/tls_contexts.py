"""Which servers of webhooks are believed: TLS contexts by CA bundle, made once, so that connections can be reused."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict

from admission.webhook.errors import CallFailed

_MOST = 200


class Trust:
    """`context` for a bundle of CAs (PEM); without one, those of the system are trusted."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[bytes, ssl.SSLContext] = OrderedDict()

    async def context(self, ca_bundle: bytes) -> ssl.SSLContext:
        """Raises CallFailed for a bundle that is none."""
        if ca_bundle not in self._contexts:
            # the system's are read from disk
            made = _context(ca_bundle) if ca_bundle else await asyncio.to_thread(_context, b"")
            self._contexts[ca_bundle] = made
            while len(self._contexts) > _MOST:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(ca_bundle)
        return self._contexts[ca_bundle]


def _context(ca_bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    # whatever is in the bundle is trusted, be it an intermediate or the server's own certificate, as Go has it
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if not ca_bundle:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context
    try:
        context.load_verify_locations(cadata=ca_bundle.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        why = "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
        raise CallFailed(why, code=500) from error
    return context

"""TLS contexts for webhook calls, cached by CA bundle so that connections are reused."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict

from admission.webhook.errors import CallFailed

_MAX_CONTEXTS = 200


class TlsContexts:
    """A cache of client contexts by CA bundle (PEM); an empty bundle trusts the system's CAs."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[bytes, ssl.SSLContext] = OrderedDict()

    async def context(self, ca_bundle: bytes) -> ssl.SSLContext:
        """Raises CallFailed for a bundle that is not PEM."""
        if ca_bundle not in self._contexts:
            # the system's CAs are read from disk
            context = _context(ca_bundle) if ca_bundle else await asyncio.to_thread(_context, b"")
            self._contexts[ca_bundle] = context
            while len(self._contexts) > _MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(ca_bundle)
        return self._contexts[ca_bundle]


def _context(ca_bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    # like Go, trust every certificate in the bundle, be it an intermediate or the server's own
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

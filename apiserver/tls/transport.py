"""One TLS connection of the server: OpenSSL works on its socket, without an event loop's buffers between them.

Python's ssl, which the TLS of event loops stands on, refuses client certificates that it cannot verify (WIRE-A21).
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from OpenSSL import SSL, crypto

_RECORD: Final = 16 * 1024
# so many at once, then others have their turn
_RECORDS: Final = 16
# bytes that wait for their client: from the first on its writer is paused, until the second
_HIGH, _LOW = 64 * 1024, 16 * 1024
DISCARDED: Final = 64 * 1024
"""Of what a client sends that nobody wants any more, so much is read at a time."""


class TlsTransport(asyncio.Transport):
    """What asyncio's transports are to their protocols, for a connection that has shaken hands.

    What cannot be sent yet waits as it came, not copied: a frame that a thousand slow clients are to get is there once.
    After `close`, what the client still sends is discarded for as long as `linger` seconds, because closing the socket
    then would reset the connection and take from the client what it has not read.
    """

    def __init__(
        self,
        plain: socket.socket,
        tls: SSL.Connection,
        protocol: asyncio.Protocol,
        *,
        linger: float,
        closed: Callable[[TlsTransport], None],
    ) -> None:
        """`plain` does not block, `tls` is that of its handshake on the same socket. `closed` is called once it is."""
        super().__init__(
            {
                "socket": plain,
                "peername": plain.getpeername(),
                "sockname": plain.getsockname(),
                "sslcontext": tls.get_context(),
                "ssl_object": tls,
            }
        )
        self._loop = asyncio.get_running_loop()
        self._plain = plain
        self._tls = tls
        self._protocol: asyncio.Protocol = protocol
        self._linger = linger
        self._timer: asyncio.TimerHandle | None = None
        self._closed = closed
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._high, self._low = _HIGH, _LOW
        self._reading = True
        self._reading_waits_to_write = False
        self._writing_paused = False
        self._closing = False
        self._lost = False

    def start(self) -> None:
        """Let the protocol have the connection."""
        self._protocol.connection_made(self)
        if self.is_reading():
            self._loop.add_reader(self._plain, self._read)

    # reading

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        if self.is_reading():
            self._reading = False
            self._loop.remove_reader(self._plain)

    def resume_reading(self) -> None:
        if not self._reading and not self._closing:
            self._reading = True
            self._loop.add_reader(self._plain, self._read)

    def _read(self) -> None:
        for _ in range(_RECORDS):
            try:
                data = self._tls.recv(_RECORD)
            except SSL.WantReadError:
                return
            except SSL.WantWriteError:
                # OpenSSL has to answer something of TLS itself first
                self._reading_waits_to_write = True
                self._loop.add_writer(self._plain, self._write_on)
                return
            except SSL.ZeroReturnError:
                self._protocol.eof_received()
                self.close()
                return
            except SSL.Error as error:
                self._end(_reset(error))
                return
            self._protocol.data_received(data)
            # a whole record is read at once: nothing is left in OpenSSL's hands, and the loop tells of the next
            if len(data) < _RECORD or not self.is_reading():
                return

    # writing

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else _HIGH if low is None else 4 * low
        self._low = low if low is not None else self._high // 4
        self._pause_or_resume()

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends what the socket takes at once. The rest waits."""
        if self._closing or not data:
            return
        data = bytes(data)
        if not self._unsent:
            try:
                if self._sent(data):
                    return
            except ConnectionError as error:
                self._end(error)
                return
            self._loop.add_writer(self._plain, self._write_on)
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        self._pause_or_resume()

    def _write_on(self) -> None:
        if self._reading_waits_to_write:
            self._reading_waits_to_write = False
            self._read()
        try:
            while self._unsent and self._sent(self._unsent[0]):
                self._unsent_bytes -= len(self._unsent.popleft())
        except ConnectionError as error:
            self._end(error)
            return
        self._pause_or_resume()
        if not self._unsent and self._plain.fileno() >= 0:
            self._loop.remove_writer(self._plain)
            if self._closing:
                self._say_goodbye()

    def _sent(self, data: bytes) -> bool:
        """Whether all of it is. If not, OpenSSL knows how far it is, and wants the same again.

        Raises ConnectionError.
        """
        try:
            self._tls.send(data)
        except (SSL.WantWriteError, SSL.WantReadError):
            return False
        except SSL.Error as error:
            raise _reset(error) from error
        return True

    def _pause_or_resume(self) -> None:
        if not self._writing_paused and self._unsent_bytes > self._high:
            self._writing_paused = True
            self._protocol.pause_writing()
        elif self._writing_paused and self._unsent_bytes <= self._low:
            self._writing_paused = False
            self._protocol.resume_writing()

    # the end

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Once everything is sent."""
        if not self._closing:
            self._closing = True
            self._loop.remove_reader(self._plain)
            if not self._unsent:
                self._say_goodbye()

    def abort(self) -> None:
        self._end(None)

    def _say_goodbye(self) -> None:
        try:
            heard = self._tls.shutdown()
            self._plain.shutdown(socket.SHUT_WR)
        except (SSL.Error, OSError):
            heard = True
        if heard:
            self._end(None)
            return
        self._loop.call_soon(self._tell_lost, None)
        self._loop.add_reader(self._plain, self._discard)
        self._timer = self._loop.call_later(self._linger, self._end, None)

    def _discard(self) -> None:
        try:
            if self._plain.recv(DISCARDED):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        """Close the socket now, whatever has not been sent."""
        if self._plain.fileno() < 0:
            return
        self._closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._plain)
        self._loop.remove_writer(self._plain)
        self._plain.close()
        self._loop.call_soon(self._tell_lost, error)
        self._closed(self)

    def _tell_lost(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._protocol.connection_lost(error)


def client_chain(tls: SSL.Connection) -> tuple[bytes, ...]:
    """DER of the client's certificate and of what it sent behind it; empty without one. Nothing of it is verified."""
    certificate = tls.get_peer_certificate()
    if certificate is None:
        return ()
    # OpenSSL's chain of a client does not begin with its own certificate
    return tuple(_der(each) for each in (certificate, *(tls.get_peer_cert_chain() or ())))


def reason_of(error: SSL.Error) -> str:
    """OpenSSL's words, the innermost first."""
    queue = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return "; ".join(entry[-1] for entry in queue) or "unknown"


def _reset(error: SSL.Error) -> ConnectionResetError:
    return ConnectionResetError(f"the connection broke: {reason_of(error)}")


def _der(certificate: crypto.X509) -> bytes:
    return crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)

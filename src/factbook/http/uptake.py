"""Rate at which a client reads its answer, against the allowed minimum."""

import asyncio
import socket
import struct
from typing import Final

# Bytes a second below which a client counts as slow.
LEAST_RATE: Final = 500

# Offset of `tcpi_bytes_acked` in Linux's `struct tcp_info`, and the length up to its end.
_ACKNOWLEDGED: Final = struct.Struct("=120xQ")


class Uptake:
    """Credit of one connection's client in bytes: time uses it up, and reading restores it.

    It holds `patience` seconds at the minimum rate. A reader, or a proxy before it, takes more than
    a megabyte at once and then nothing for a while, so that a single pause says little.
    """

    def __init__(self, transport: asyncio.Transport, patience: float) -> None:
        self._transport = transport
        self._most = self._credit = patience * LEAST_RATE
        self._unsent = 0  # bytes at the last look
        self._acknowledged = 0

    def is_too_slow(self, seconds: float) -> bool:
        """Return true if the credit is used up, `seconds` after the last look."""
        before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
        if not self._unsent:
            self._credit = self._most
            return False
        acknowledged, self._acknowledged = self._acknowledged, self._total_acknowledged()
        if not before:
            return False  # the answer has not waited for all of this time
        taken: float = self._acknowledged - acknowledged
        if not self._acknowledged:
            # Where the system does not count: the buffer grows only after most of it was taken.
            taken = before - self._unsent if self._unsent <= before else self._most
        self._credit = min(self._most, self._credit + taken - seconds * LEAST_RATE)
        return self._credit <= 0

    def _total_acknowledged(self) -> int:
        """Bytes that the client's system has acknowledged since the start; 0 if unsupported.

        The buffer alone moves in steps: the system here takes the next bytes of a slow client only
        when a third of its own buffer, which grows to megabytes, is free.
        """
        connection = self._transport.get_extra_info("socket")
        try:
            information = connection.getsockopt(
                socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size
            )
            (total,) = _ACKNOWLEDGED.unpack(information)
        except (AttributeError, OSError, struct.error):
            return 0
        return int(total)

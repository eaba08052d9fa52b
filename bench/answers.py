"""Answers of HTTP/1.1 as they arrive on a connection, one after another."""

_LAST_CHUNK = b"\r\n0\r\n\r\n"


class Answer:
    """What has arrived of an answer."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._end: int | None = None  # of the head
        self._length: int | None = None  # of the whole; None while it is not known, or in chunks

    def feed(self, data: bytes) -> bool:
        """Whether it is complete with what has arrived now."""
        self.content += data
        if self._end is None:
            self._end = end = self.content.find(b"\r\n\r\n") + 4
            if end < 4:
                self._end = None
                return False
            head = bytes(self.content[:end]).lower()
            if b"transfer-encoding: chunked" not in head:
                self._length = end + _content_length(head)
        if self._length is None:
            return self.content.endswith(_LAST_CHUNK)
        return len(self.content) >= self._length

    @property
    def status(self) -> int:
        return int(self.content[9:12])

    def clear(self) -> None:
        """Be ready for the next."""
        self.content.clear()
        self._end = self._length = None


def _content_length(head: bytes) -> int:
    start = head.find(b"\r\ncontent-length:")
    if start < 0:
        raise ValueError(f"An answer without a length: {head[:200]!r}")
    return int(head[start + 17 :].split(b"\r", 1)[0])

"""Memory of answers, so that calls are not repeated.

Answers of a batch are kept between its attempts, so that only failed calls are repeated; answers
with validators, so that asking again uses no quota; and our own limits that were exceeded, so that
reading up to them is not repeated.
"""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from factbook.outbound.answers import HostReply

DAYS_KEPT: Final = 30
LARGEST_KEPT: Final = 8 * 1024 * 1024  # a file tree of GitHub has at most 7 MB

# What a later reader of the answer may need; the rest belongs to the exchange.
_KEPT_HEADERS: Final = ("content-type", "link", "x-total-count", "x-total")


class Memory(Protocol):
    """Store of one integration's earlier answers, kept between its runs.

    An entry put with `days` expires after that many days; others are removed with the integration.
    """

    async def get(self, key: str) -> bytes | None:
        """The value of the key, or None."""
        ...

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        """Store the value under the key, replacing an earlier one."""
        ...


class _Stored(msgspec.Struct, frozen=True):
    etag: str
    modified: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """An earlier reply with its validators."""

    etag: str
    modified: str
    reply: HostReply

    @property
    def conditions(self) -> dict[str, str]:
        """The headers of a conditional request for the reply (RFC 9110)."""
        given = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in given.items() if value}

    def confirmed(self, reply: HostReply) -> HostReply:
        """The kept reply with the headers of the 304 that confirms it."""
        headers = {**self.reply.headers, **reply.headers, "etag": self.etag}
        return HostReply(self.reply.status, headers, self.reply.body)


def key_of(identity: str, url: str, headers: Mapping[str, str]) -> str:
    """The storage key of an answer, distinct for each credential and each form of the answer."""
    parts = (identity, url, headers.get("accept", ""))
    return "answer:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def recall(memory: Memory, key: str) -> Kept | None:
    """The reply kept under the key; None if there is none or this version cannot decode it."""
    found = await memory.get(key)
    if found is None:
        return None
    try:
        stored = msgspec.msgpack.decode(found, type=_Stored)
        body = zlib.decompress(stored.body)
    except (msgspec.MsgspecError, zlib.error, UnicodeDecodeError):
        return None
    return Kept(stored.etag, stored.modified, HostReply(200, stored.headers, body))


async def keep(memory: Memory, key: str, reply: HostReply) -> None:
    """Keep a reply that has a validator and is small enough."""
    etag, modified = reply.headers.get("etag", ""), reply.headers.get("last-modified", "")
    if reply.status != 200 or not (etag or modified) or len(reply.body) > LARGEST_KEPT:
        return
    headers = {name: reply.headers[name] for name in _KEPT_HEADERS if name in reply.headers}
    stored = _Stored(etag, modified, headers, zlib.compress(reply.body, level=1))
    await memory.put(key, msgspec.msgpack.encode(stored), days=DAYS_KEPT)

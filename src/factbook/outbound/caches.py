"""Answers that are kept with their validators, so that asking again costs no quota."""

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
    """Earlier answers of one integration, kept between its runs.

    What is put with `days` is forgotten that many days later; the rest when the integration goes.
    """

    async def get(self, key: str) -> bytes | None:
        """What was put under the key, or None."""
        ...

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        """Keep the value under the key, in the place of an earlier one."""
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
        """The headers that ask whether the reply still holds (RFC 9110)."""
        given = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in given.items() if value}

    def confirmed(self, reply: HostReply) -> HostReply:
        """The kept reply with the headers of the 304 that confirms it."""
        headers = {**self.reply.headers, **reply.headers, "etag": self.etag}
        return HostReply(self.reply.status, headers, self.reply.body)


def key_of(identity: str, url: str, headers: Mapping[str, str]) -> str:
    """Where the answer is kept: another credential or another form is another place."""
    parts = (identity, url, headers.get("accept", ""))
    return "answer:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def recall(memory: Memory, key: str) -> Kept | None:
    """What was kept under the key, or None; what this version cannot read counts as None."""
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
    """Keep a reply that has a validator and a reasonable size."""
    etag, modified = reply.headers.get("etag", ""), reply.headers.get("last-modified", "")
    if reply.status != 200 or not (etag or modified) or len(reply.body) > LARGEST_KEPT:
        return
    headers = {name: reply.headers[name] for name in _KEPT_HEADERS if name in reply.headers}
    stored = _Stored(etag, modified, headers, zlib.compress(reply.body, level=1))
    await memory.put(key, msgspec.msgpack.encode(stored), days=DAYS_KEPT)

"""Caches of answers that avoid repeated calls.

The cache of a batch keeps answers between attempts, so a retry repeats only failed calls. Answers
with validators are stored, so a repeated request uses no quota. Lists longer than our limits are
noted, so later runs don't read them up to the limit again.
"""

import hashlib
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from factbook.clock import DAY
from factbook.outbound.outcomes import MEANINGS, Answer, HostReply

MOST_CACHED_BYTES: Final = 64 * 1024 * 1024

CallKey = tuple[str, str, bytes | None, str, bool, Hashable]
"""Method, whole address, body and Accept header of a call, and how its answer is decoded."""
DAYS_KEPT: Final = 30
LARGEST_KEPT: Final = 8 * 1024 * 1024  # a GitHub file tree has at most 7 MB

# Headers that later readers may need; the others describe the exchange.
_KEPT_HEADERS: Final = ("content-type", "link", "x-total-count", "x-total")
DAYS_NOTED: Final = 7


class AnswerCaches:
    """Caches of the batches that are retried, which share `most_bytes` for bodies."""

    def __init__(self, most_bytes: int = MOST_CACHED_BYTES) -> None:
        self._caches: dict[Hashable, AnswerCache] = {}
        self.room = most_bytes

    def open(self, batch: Hashable, now: int) -> "AnswerCache":
        """Get or create the cache of a batch."""
        return self._caches.setdefault(batch, AnswerCache(self, now))

    def close(self, batch: Hashable) -> None:
        """Drop the answers of a batch."""
        if found := self._caches.pop(batch, None):
            self.room += found.size


class AnswerCache:
    """Final answers by call, as long as there is room.

    `now` is the time of the first attempt, in milliseconds. Later attempts use the same time, as
    their requests wouldn't match otherwise. `failures` counts calls that may succeed on another
    attempt.
    """

    def __init__(self, caches: AnswerCaches, now: int) -> None:
        self.now = now
        self.size = 0
        self.failures = 0
        self._caches = caches
        self._answers: dict[CallKey, Answer] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: CallKey) -> Answer | None:
        """The answer to the call, or None."""
        return self._answers.get(key)

    def put(self, key: CallKey, answer: Answer) -> None:
        """Cache a final answer if there is room; count an answer that is worth a retry."""
        size = len(answer.body)
        if answer.ok:
            # GraphQL may return errors beside data.
            is_passing = isinstance(answer.data, dict) and bool(answer.data.get("errors"))
        else:
            is_passing = MEANINGS[answer.outcome].passing
        if is_passing:
            self.failures += answer.ok or answer.missing.retried
        elif key not in self._answers and size <= self._caches.room:
            self._caches.room -= size
            self.size += size
            self._answers[key] = answer

    def clear(self) -> None:
        """Drop all answers, so that every call is made again."""
        self._answers.clear()
        self._caches.room += self.size
        self.size = 0


class Memory(Protocol):
    """Key-value store of one integration, kept between its runs.

    Entries with `days` expire after that many days; others stay until the integration is removed.
    """

    async def get(self, key: str) -> bytes | None:
        """The value of the key, or None."""
        ...

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        """Store the value under the key, replacing an earlier one."""
        ...


class _StoredReply(msgspec.Struct, frozen=True):
    etag: str
    modified: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class KeptReply:
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
        """The stored reply, updated with the headers of the 304 that confirms it."""
        headers = {**self.reply.headers, **reply.headers, "etag": self.etag}
        return HostReply(self.reply.status, headers, self.reply.body)


def make_answer_key(identity: str, url: str, headers: Mapping[str, str]) -> str:
    """The storage key of an answer, by credential, URL and Accept header."""
    parts = (identity, url, headers.get("accept", ""))
    return "answer:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()


async def recall_reply(memory: Memory, key: str) -> KeptReply | None:
    """The reply kept under the key; None if there is none or this version cannot decode it."""
    found = await memory.get(key)
    if found is None:
        return None
    try:
        stored = msgspec.msgpack.decode(found, type=_StoredReply)
        body = zlib.decompress(stored.body)
    except (msgspec.MsgspecError, zlib.error, UnicodeDecodeError):
        return None
    return KeptReply(stored.etag, stored.modified, HostReply(200, stored.headers, body))


async def keep_reply(memory: Memory, key: str, reply: HostReply) -> None:
    """Store a reply that has a validator and is small enough."""
    etag, modified = reply.headers.get("etag", ""), reply.headers.get("last-modified", "")
    if reply.status != 200 or not (etag or modified) or len(reply.body) > LARGEST_KEPT:
        return
    headers = {name: reply.headers[name] for name in _KEPT_HEADERS if name in reply.headers}
    stored = _StoredReply(etag, modified, headers, zlib.compress(reply.body, level=1))
    await memory.put(key, msgspec.msgpack.encode(stored), days=DAYS_KEPT)


class _NotedLimit(msgspec.Struct, array_like=True):
    """An exceeded limit, and the time in milliseconds when a run exceeded it."""

    at: int
    limit: str


async def exceeds_noted_limit(memory: Memory, what: str, limit: object, now: int) -> bool:
    """True if a recent run exceeded this limit for `what`."""
    stored = await memory.get(_make_limit_key(what))
    if stored is None:
        return False
    try:
        noted = msgspec.json.decode(stored, type=_NotedLimit)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return noted.limit == str(limit) and 0 <= now - noted.at < DAYS_NOTED * DAY


async def note_exceeded_limit(memory: Memory, what: str, limit: object, now: int) -> None:
    """Record for `DAYS_NOTED` days that `what` exceeds this limit."""
    stored = msgspec.json.encode(_NotedLimit(now, str(limit)))
    await memory.put(_make_limit_key(what), stored, days=DAYS_NOTED)


def _make_limit_key(what: str) -> str:
    return f"exceeds:{what}"

"""Memory of integrations between runs, kept in the database."""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from factbook.clock import DAY
from factbook.storage import Database, Transaction, Write

# What is left of an integration that is not configured any more.
KEPT_DAYS = 30
_KEPT_WITHOUT_SOURCE = KEPT_DAYS * DAY
# The first bytes of what integrations compress.
_COMPRESSED: Final = zlib.compress(b"", level=1)[:2]
_LONGEST_TEXT: Final = 64 * 1024 * 1024
_READ_AT_ONCE: Final = 20


class DatabaseMemory:
    """The memory of one integration while it collects one batch.

    Written values are visible at once, and stored by `flush` together with the facts of the batch.
    Values requested concurrently by several tasks are read together.
    """

    def __init__(self, database: Database, source_id: str, now: int) -> None:
        self._database = database
        self._source_id = source_id
        self._now = now
        self._fresh: dict[str, tuple[bytes, int | None]] = {}
        self._wanted: set[str] = set()
        self._reading: asyncio.Task[dict[str, bytes]] | None = None

    async def get(self, key: str) -> bytes | None:
        """The value under the key, or None."""
        if key in self._fresh:
            return self._fresh[key][0]
        if self._reading is None:
            # It begins to run when all that are ready now have asked.
            self._reading = asyncio.create_task(self._read())
        self._wanted.add(key)
        # One that is cancelled leaves the answer to the others.
        return (await asyncio.shield(self._reading)).get(key)

    async def _read(self) -> dict[str, bytes]:
        wanted, self._wanted, self._reading = self._wanted, set(), None
        given = (self._source_id, sorted(wanted), self._now)
        return {key: bytes(value) for key, value in await self._database.all(_GET, given)}

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        """Keep the value under the key for `days` days, replacing an earlier one."""
        self._fresh[key] = (value, None if days is None else self._now + days * DAY)

    def flush(self, transaction: Transaction) -> None:
        """Store the written values."""
        transaction.many(
            _PUT,
            [
                (self._source_id, key, value, self._now, forget_at)
                for key, (value, forget_at) in sorted(self._fresh.items())
            ],
        )


async def sweep(database: Database, source_ids: list[str], now: int) -> int:
    """Delete values that have expired or belong to none of these sources; returns their number."""
    # Looked for before, as others write meanwhile.
    outlived = await database.one("SELECT 1 FROM memories WHERE forget_at <= ? LIMIT 1", (now,))
    orphans = [id_ for (id_,) in await database.all(_ORPHANED, (source_ids,))]
    if not (outlived or orphans):
        return 0
    return await database.write(lambda transaction: _sweep(transaction, orphans, now))


def forget_source(transaction: Transaction, source_id: str) -> None:
    """Delete every value of a source."""
    transaction.run("DELETE FROM memories WHERE source_id = ?", (source_id,))


async def forget_mentions(
    database: Database, mentions: Callable[[str], bool], write: Write | None
) -> int:
    """Delete the values that mention something; returns their number.

    Deleted answers are fetched again. Without `write`, they are only counted.
    """
    count, after = 0, ("", "")
    while rows := await database.search(_NEXT, (*after, _READ_AT_ONCE)):
        found = [
            (source_id, key)
            for source_id, key, value in rows
            if any(map(mentions, (key, *_texts(bytes(value)))))
        ]
        if found and write is not None:
            await write(partial(_delete, keys=found))
        count, after = count + len(found), rows[-1][:2]
    return count


def _texts(value: bytes) -> Iterator[str]:
    """The value, and what is compressed in it."""
    yield value.decode("utf-8", "replace")
    place = value.find(_COMPRESSED)
    while place >= 0:
        with suppress(zlib.error):
            text = zlib.decompressobj().decompress(value[place:], _LONGEST_TEXT)
            yield text.decode("utf-8", "replace")
        place = value.find(_COMPRESSED, place + 1)


def _delete(transaction: Transaction, *, keys: list[tuple[str, str]]) -> None:
    transaction.many("DELETE FROM memories WHERE source_id = ? AND key = ?", keys)


def _sweep(transaction: Transaction, orphans: list[str], now: int) -> int:
    outlived = transaction.run(_FORGET, (now,))
    return outlived + transaction.run(_ORPHANS, (now - _KEPT_WITHOUT_SOURCE, orphans))


_GET = """
SELECT key, value FROM memories
WHERE source_id = ? AND key IN LIST(?) AND (forget_at IS NULL OR forget_at > ?)
"""

_NEXT = """
SELECT source_id, key, value FROM memories WHERE (source_id, key) > (?, ?)
ORDER BY source_id, key LIMIT ?
"""

_PUT = """
INSERT INTO memories (source_id, key, value, updated_at, forget_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (source_id, key) DO UPDATE SET value = excluded.value,
    updated_at = excluded.updated_at, forget_at = excluded.forget_at
"""

_FORGET = "DELETE FROM memories WHERE forget_at <= ?"

# From source to source by the index.
_ORPHANED = """
WITH RECURSIVE sources (id) AS (
    SELECT MIN(source_id) FROM memories
    UNION ALL
    SELECT (SELECT MIN(m.source_id) FROM memories m WHERE m.source_id > s.id) FROM sources s
    WHERE s.id IS NOT NULL
)
SELECT id FROM sources WHERE id IS NOT NULL AND NOT (id IN LIST(?))
"""

_ORPHANS = "DELETE FROM memories WHERE updated_at < ? AND source_id IN LIST(?)"

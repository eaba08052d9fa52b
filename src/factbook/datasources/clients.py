"""HTTP clients for integrations, and their memory between runs."""

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from factbook.clock import DAY, Clock
from factbook.integrations.integration import Authorize, Integration
from factbook.outbound.client import Governor, HttpClient
from factbook.settings import Settings
from factbook.storage import Database, Transaction, Write
from factbook.telemetry.spans import NO_TRACER, Tracer

if TYPE_CHECKING:
    from factbook.outbound.network import Sender

# Creates the client for an integration's host.
Connect = Callable[[Integration], HttpClient]
# Leftover values of integrations that are no longer configured.
MEMORY_DAYS = 30
_ORPHANS_KEPT = MEMORY_DAYS * DAY
# The first bytes of compressed values.
_COMPRESSED_START: Final = zlib.compress(b"", level=1)[:2]
_LONGEST_MEMORY_TEXT: Final = 64 * 1024 * 1024
_MEMORIES_AT_ONCE: Final = 20


class ClientFactory:
    """Factory of clients that use the network settings.

    Clients with the same credential share a governor and the connections to each host.
    """

    def __init__(self, settings: Settings, clock: Clock, tracer: Tracer = NO_TRACER) -> None:
        # Slow to import, and unused without integrations.
        from factbook.outbound.network import Network  # noqa: PLC0415

        self._network = Network(settings, tracer=tracer)
        self._clock = clock
        self._shared: dict[str, _Shared] = {}

    def client(self, integration: Integration) -> HttpClient:
        """A client with the integration's credential, including one for each further host.

        Raises ConfigurationError for an invalid address.
        """
        calls = max(integration.at_once, integration.calls_at_once)
        name, clock = integration.credential, self._clock
        shared = self._shared.get(name)
        if shared is None or shared.edition != integration.edition:
            shared = self._shared[name] = _Shared(integration.edition, {}, {})
        further = {
            url: self._client(shared, url, url, authorize, Governor(at_once=calls, clock=clock))
            for url, authorize in integration.further.items()
        }
        governor = Governor(at_once=calls, pace=integration.pace, clock=clock)
        own = integration.base_url, "", integration.authorize, governor
        return self._client(shared, *own, further)

    def _client(
        self,
        shared: "_Shared",
        url: str,
        name: str,
        authorize: Authorize,
        new: Governor,
        further: Mapping[str, HttpClient] | None = None,
    ) -> HttpClient:
        # A sender for each credential and address; a shared one would delay unrelated calls.
        sender, clock = shared.senders.get((name, url)), self._clock
        if sender is None or sender.closed:
            sender = shared.senders[name, url] = self._network.sender(url)
        governor = shared.governors.setdefault(name, new)
        credential = authorize(HttpClient(url, sender, governor=governor, clock=clock))
        return HttpClient(
            url, sender, credential=credential, governor=governor, further=further, clock=clock
        )


class _Shared(NamedTuple):
    """State shared by clients with the same credential edition, by further host ("": main host)."""

    edition: str
    governors: dict[str, Governor]
    senders: dict[tuple[str, str], "Sender"]


class Clients:
    """The client of each integration, created on first use."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._made: dict[str, tuple[Integration, HttpClient]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, integration: Integration) -> HttpClient:
        """The client; a new one if the integration has changed."""
        id_ = integration.source.id
        made = self._made.get(id_)
        if made is None or made[0] is not integration:
            client = self._connect(integration)
            self._made[id_] = (integration, client)
            if made is not None:
                self._let_go(made[1])
            return client
        return made[1]

    async def aclose(self) -> None:
        """Close the connections of all clients."""
        made = list(self._made.values())
        self._made.clear()
        closing = (client.aclose() for _, client in made)
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)

    def _let_go(self, client: HttpClient) -> None:
        """Close the client after its pending calls, unless another shares its connections."""
        if any(client.shares(other) for _, other in self._made.values()):
            return
        task = asyncio.ensure_future(client.aclose(idle=True))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


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
            # The task starts after every task that is ready now has added its key.
            self._reading = asyncio.create_task(self._read())
        self._wanted.add(key)
        # If one caller is cancelled, the others still get the answer.
        return (await asyncio.shield(self._reading)).get(key)

    async def _read(self) -> dict[str, bytes]:
        wanted, self._wanted, self._reading = self._wanted, set(), None
        given = (self._source_id, sorted(wanted), self._now)
        return {key: bytes(value) for key, value in await self._database.all(_GET_MEMORIES, given)}

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        """Keep the value under the key for `days` days, replacing an earlier one."""
        self._fresh[key] = (value, None if days is None else self._now + days * DAY)

    def flush(self, transaction: Transaction) -> None:
        """Store the written values."""
        transaction.many(
            _PUT_MEMORY,
            [
                (self._source_id, key, value, self._now, forget_at)
                for key, (value, forget_at) in sorted(self._fresh.items())
            ],
        )


async def sweep_memories(database: Database, source_ids: list[str], now: int) -> int:
    """Delete values that have expired or belong to none of these sources; returns their number."""
    # Read outside the transaction, to keep writers from waiting.
    outlived = await database.one("SELECT 1 FROM memories WHERE forget_at <= ? LIMIT 1", (now,))
    orphans = [id_ for (id_,) in await database.all(_ORPHANED, (source_ids,))]
    if not (outlived or orphans):
        return 0

    def delete_outlived(transaction: Transaction) -> int:
        expired = transaction.run(_DELETE_EXPIRED, (now,))
        return expired + transaction.run(_ORPHANS, (now - _ORPHANS_KEPT, orphans))

    return await database.write(delete_outlived)


def delete_source_memories(transaction: Transaction, source_id: str) -> None:
    """Delete every value of a source."""
    transaction.run("DELETE FROM memories WHERE source_id = ?", (source_id,))


async def delete_mentions(
    database: Database, mentions: Callable[[str], bool], write: Write | None
) -> int:
    """Delete the values that mention any of the texts; returns their number.

    Deleted answers are fetched again. Without `write`, they are only counted.
    """
    count, after = 0, ("", "")
    while rows := await database.search(_NEXT_MEMORIES, (*after, _MEMORIES_AT_ONCE)):
        found = [
            (source_id, key)
            for source_id, key, value in rows
            if any(map(mentions, (key, *_memory_texts(bytes(value)))))
        ]
        if found and write is not None:
            await write(partial(_delete_memories, keys=found))
        count, after = count + len(found), rows[-1][:2]
    return count


def _memory_texts(value: bytes) -> Iterator[str]:
    """The value, and its decompressed contents."""
    yield value.decode("utf-8", "replace")
    place = value.find(_COMPRESSED_START)
    while place >= 0:
        with suppress(zlib.error):
            text = zlib.decompressobj().decompress(value[place:], _LONGEST_MEMORY_TEXT)
            yield text.decode("utf-8", "replace")
        place = value.find(_COMPRESSED_START, place + 1)


def _delete_memories(transaction: Transaction, *, keys: list[tuple[str, str]]) -> None:
    transaction.many("DELETE FROM memories WHERE source_id = ? AND key = ?", keys)


_GET_MEMORIES = """
SELECT key, value FROM memories
WHERE source_id = ? AND key IN LIST(?) AND (forget_at IS NULL OR forget_at > ?)
"""

_NEXT_MEMORIES = """
SELECT source_id, key, value FROM memories WHERE (source_id, key) > (?, ?)
ORDER BY source_id, key LIMIT ?
"""

_PUT_MEMORY = """
INSERT INTO memories (source_id, key, value, updated_at, forget_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (source_id, key) DO UPDATE SET value = excluded.value,
    updated_at = excluded.updated_at, forget_at = excluded.forget_at
"""

_DELETE_EXPIRED = "DELETE FROM memories WHERE forget_at <= ?"

# Jumps from source to source in the index.
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

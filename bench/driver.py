"""The driver's floor: the CPU of reading rows from PostgreSQL with psycopg and nothing around it.

One connection, prepared statements and the event loop of the service; neither HTTP, a token nor
JSON. PostgreSQL's own CPU is counted, as it is with the service.
"""

import random
import time
from typing import NamedTuple

import psycopg
import uvloop

from bench.catalog import Key
from bench.databases import Database
from bench.processes import cpu_seconds, on_core

_FIRST = """
SELECT ref, head, uid, etag, body, relations, problems FROM entities
WHERE kind = 'component' AND ref >= 'component:' AND ref < 'component;' ORDER BY ref LIMIT %s
"""
_ENTITY = "SELECT ref, head, uid, etag, body, relations, problems FROM entities WHERE ref = %s"
_FACTS = "SELECT ref, compliance, updated_at FROM entities WHERE ref = %s"
_WARM = 50
_AT_ONCE = 100


class BareRead(NamedTuple):
    """A statement, and the parameters of which each run takes some at random."""

    statement: str
    parameters: list[tuple[str | int]]

    def cost(self, database: Database, seconds: float, core: int, seed: int) -> float:
        """CPU milliseconds of a read, on this core."""
        with on_core(core):
            return uvloop.run(self._measured(database, seconds, random.Random(seed)))

    async def _measured(self, database: Database, seconds: float, chance: random.Random) -> float:
        connection = await psycopg.AsyncConnection.connect(
            database.url, autocommit=True, prepare_threshold=1
        )
        async with connection:
            await self._repeat(connection, _WARM, chance)
            count, end = 0, time.monotonic() + seconds
            before = time.process_time() + cpu_seconds(database.processes)
            while time.monotonic() < end:
                await self._repeat(connection, _AT_ONCE, chance)
                count += _AT_ONCE
            spent = time.process_time() + cpu_seconds(database.processes) - before
        return 1000 * spent / count

    async def _repeat(
        self, connection: psycopg.AsyncConnection, times: int, chance: random.Random
    ) -> None:
        for _ in range(times):
            cursor = await connection.execute(
                self.statement.encode(), chance.choice(self.parameters)
            )
            assert await cursor.fetchall()


def first_components(count: int) -> BareRead:
    """The first components by reference."""
    return BareRead(_FIRST, [(count,)])


def entities_by_ref(keys: list[Key]) -> BareRead:
    """One of these entities."""
    return BareRead(_ENTITY, _refs(keys))


def facts_by_ref(keys: list[Key]) -> BareRead:
    """The catalog's own facts about one of these entities."""
    return BareRead(_FACTS, _refs(keys))


def _refs(keys: list[Key]) -> list[tuple[str | int]]:
    return [(f"{key.kind}:default/{key.name}".lower(),) for key in keys]

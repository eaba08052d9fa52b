"""Rewriting of conditions that very many entities meet, to avoid reading all of those.

The query planner knows little about the joint distribution of keys and values: with a million
entities it may scan them one by one for seconds. The relevant frequencies of values are therefore
looked up first.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeGuard

from msgspec import Struct

from factbook.catalog import search
from factbook.catalog.store.conditions import COLUMNS, SQL, AllOf, AnyOf, Apart, Condition, Has
from factbook.catalog.store.frequent_targets import Targeted
from factbook.storage import Database

# So many entities are found and sorted in no time.
MANY: Final = 1_000
_MOST_VALUES = 5
_MOST_SPELLINGS = 20
_ALMOST_UNIQUE = ("metadata.name", "metadata.uid")


class Frequent(NamedTuple):
    """Two forms of a condition whose every part is met by many entities.

    `near` probes entities one by one and suits a few of them; None where that is impossible.
    `apart` evaluates each part before it reads entities and suits all of them.
    """

    near: Condition | None
    apart: Condition


class _Met(Struct, frozen=True):
    """An entity has the key with the value, in one of these spellings."""

    key: str
    value: str
    spellings: Sequence[str]

    def sql(self) -> SQL:
        marks = ", ".join("?" * len(self.spellings))
        return _PROBE.format(marks), [self.key, self.value, *self.spellings]


class Selectivity:
    """Selectivity of a condition, looked up once for a page and its total."""

    def __init__(self, database: Database, condition: Condition) -> None:
        self._database = database
        self.condition = condition
        self._found: tuple[Frequent | None] | None = None

    async def frequent(self) -> Frequent | None:
        """The condition rewritten; None if few entities meet it."""
        if self._found is None:
            self._found = (await frequent(self._database, self.condition),)
        return self._found[0]


async def frequent(database: Database, condition: Condition) -> Frequent | None:
    """Rewrite a conjunction of conditions on keys; None if few entities meet it."""
    parts = list(_parts(condition))
    looked_up = [part for part in parts if _is_looked_up(part)]
    if not looked_up or any(not _is_usual(part) for part in parts):
        return None
    for part in looked_up:
        if not await _is_met_by_many(database, part):
            return None
    near = [one for part in looked_up if (one := await _near(database, part))]
    others = [part for part in parts if part not in looked_up]
    apart = AllOf([*others, *map(Apart, looked_up)])
    return Frequent(AllOf([*others, *near]) if len(near) == len(looked_up) else None, apart)


async def probed(database: Database, part: Has) -> Condition:
    """The same for few entities, found by another condition: each of them is looked at."""
    if part.key in COLUMNS:
        return Apart(part)
    return (await _near(database, part)) or part


def _parts(condition: Condition) -> Iterator[Condition]:
    """The terms of a conjunction."""
    if isinstance(condition, AllOf) or (isinstance(condition, AnyOf) and len(condition.parts) == 1):
        for part in condition.parts:
            yield from _parts(part)
    else:
        yield condition


def _is_looked_up(part: Condition) -> TypeGuard[Has | Targeted]:
    return isinstance(part, Targeted) or (isinstance(part, Has) and part.key not in COLUMNS)


def _is_usual(part: Condition) -> bool:
    """Return true if many entities may meet this part."""
    return isinstance(part, Apart | Targeted) or (
        isinstance(part, Has)
        and part.key not in _ALMOST_UNIQUE
        and not part.key.startswith("relations.")
        and (part.values is None or 0 < len(part.values) <= _MOST_VALUES)
    )


async def _is_met_by_many(database: Database, part: Has | Targeted) -> bool:
    if isinstance(part, Targeted):
        return True
    if part.values is None:
        counted = [await database.one(_COUNT_KEY, (part.key, MANY))]
    else:
        counted = [
            await database.one(_COUNT, (part.key, value, MANY))
            for value in part.values
            if value != search.EXISTS
        ]
    met: int = sum(row[0] for row in counted if row)
    return met >= MANY


async def _near(database: Database, part: Has | Targeted) -> Condition | None:
    if isinstance(part, Targeted):
        return part.near
    met = []
    for value in part.values or ():
        keys = (part.key, value, part.key, value, _MOST_SPELLINGS + 1)
        rows = await database.all(_SPELLINGS, keys)
        if len(rows) > _MOST_SPELLINGS:
            return None
        if rows and value != search.EXISTS:
            met.append(_Met(part.key, value, [row[0] for row in rows]))
    return AnyOf(met) if met else None


_KEY = "key_id = (SELECT id FROM search_keys WHERE key = ?)"

_COUNT_KEY = f"SELECT count(*) FROM (SELECT 1 FROM search WHERE {_KEY} LIMIT ?) met"

_COUNT = f"SELECT count(*) FROM (SELECT 1 FROM search WHERE {_KEY} AND value = ? LIMIT ?) met"

# From one spelling to the next, because between them stand all the entities that have it.
_SPELLINGS = f"""
WITH RECURSIVE spelled (original) AS (
    SELECT (SELECT min(original) FROM search WHERE {_KEY} AND value = ?)
    UNION ALL
    SELECT (
        SELECT min(s.original) FROM search s
        WHERE {_KEY} AND s.value = ? AND s.original > spelled.original
    ) FROM spelled WHERE spelled.original IS NOT NULL
)
SELECT original FROM spelled WHERE original IS NOT NULL LIMIT ?
"""

# The offset keeps PostgreSQL from reading all that have the value.
_PROBE = """EXISTS (
    SELECT 1 FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)
        AND value = ? AND original IN ({}) AND entity_id = e.id LIMIT 1 OFFSET 0
)"""

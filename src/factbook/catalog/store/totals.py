"""Numbers of entities that meet a condition."""

from typing import Final

from factbook.catalog.store import overview
from factbook.catalog.store.conditions import (
    EVERYTHING,
    SQL,
    AllOf,
    Condition,
    Has,
    only_key,
    required_kind,
)
from factbook.catalog.store.selectivity import Selectivity
from factbook.storage import Database

# So many entities are counted in tens of milliseconds, whatever the size of the catalog.
BOUND: Final = 10_000
MORE: Final = BOUND + 1
# Entities among which a frequent condition is tried first.
_WINDOW: Final = 5 * BOUND


async def exact(
    database: Database, condition: Condition, selectivity: Selectivity | None = None
) -> int:
    """Count the entities that meet the condition, of which the selectivity may be known."""
    selectivity = selectivity or Selectivity(database, condition)
    key = only_key(condition)
    if key in ("", "kind"):
        kinds, kind = await overview.by_kind(database), required_kind(condition)
        return sum(kinds.values()) if kind is None else kinds.get(kind, 0)
    if key is None and (found := await selectivity.frequent()):
        condition = found.apart
    where, parameters = condition.sql()
    # The entries of one value stand side by side in an index: they are counted in no time.
    ask = database.search if key is None else database.all
    rows = await ask(f"SELECT count(*) FROM entities e WHERE {where}", parameters)
    count: int = rows[0][0]
    return count


async def bounded(
    database: Database, condition: Condition, selectivity: Selectivity | None = None
) -> int:
    """Count the entities that meet the condition; `MORE` stands for any number above `BOUND`.

    What is known without counting is exact above it, too.
    """
    if only_key(condition) in ("", "kind"):
        return await exact(database, condition)
    selectivity = selectivity or Selectivity(database, condition)
    if found := await selectivity.frequent():
        # SQLite lists what has a value sooner than it probes many entities.
        near = None if database.dialect == "sqlite" else found.near
        if near and await _up_to_bound(database, _among_first(condition, near)) == MORE:
            return MORE
        condition = found.apart
    where, parameters = condition.sql()
    return await _up_to_bound(database, (f"entities e WHERE {where}", parameters))


async def is_above_bound(database: Database, condition: Condition) -> bool:
    """Return true if more than `BOUND` entities have the one value that is the condition.

    It is told by an index alone; of any other condition the answer is no.
    """
    match condition:
        case AllOf(parts=[Has(key, [value])]) if only_key(condition) is None:
            rows = await database.search(_HAVING, (key, value))
            return bool(rows[0][0] == MORE)
    return False


async def _up_to_bound(database: Database, sources: SQL) -> int:
    sql, parameters = sources
    rows = await database.search(
        f"SELECT count(*) FROM (SELECT 1 FROM {sql} LIMIT {MORE}) counted", parameters
    )
    count: int = rows[0][0]
    return count


def _among_first(condition: Condition, met: Condition) -> SQL:
    """Entities that meet `met` among the first ones of the required kind."""
    kind = required_kind(condition)
    of_kind, kinds = (Has("kind", [kind]) if kind else EVERYTHING).sql()
    where, parameters = met.sql()
    # An index has them in this order, and kinds mixed; only columns that `met` names are read.
    first = (
        "SELECT e.id, e.uid, e.ref, e.kind, e.namespace, e.name FROM entities e "
        f"WHERE {of_kind} ORDER BY e.name, e.ref LIMIT {_WINDOW}"
    )
    return f"({first}) e WHERE {where}", [*kinds, *parameters]


async def up_to(database: Database, entity_id: int) -> tuple[int, int]:
    """The number of entities with ids up to this one, and of all."""
    row = await database.one(_UP_TO, (entity_id,))
    return row or (0, 0)


_HAVING: Final = f"""
SELECT count(*) FROM (
    SELECT DISTINCT entity_id FROM search
    WHERE key_id = (SELECT id FROM search_keys WHERE key = ?) AND value = ? LIMIT {MORE}
) met
"""

_UP_TO: Final = "SELECT COUNT(CASE WHEN id <= ? THEN 1 END), COUNT(*) FROM entities"

"""Numbers of entities that meet a condition."""

from factbook.catalog.store import overview
from factbook.catalog.store.conditions import Condition, only_key, required_kind
from factbook.catalog.store.selectivity import frequent
from factbook.storage import Database


async def exact(database: Database, condition: Condition) -> int:
    """Count the entities that meet the condition."""
    key = only_key(condition)
    if key in ("", "kind"):
        kinds, kind = await overview.by_kind(database), required_kind(condition)
        return sum(kinds.values()) if kind is None else kinds.get(kind, 0)
    if key is None and (found := await frequent(database, condition)):
        condition = found.apart
    where, parameters = condition.sql()
    # The entries of one value stand side by side in an index: they are counted in no time.
    ask = database.search if key is None else database.all
    rows = await ask(f"SELECT count(*) FROM entities e WHERE {where}", parameters)
    count: int = rows[0][0]
    return count

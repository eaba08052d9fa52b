"""Partitions of history by month, where an operator has asked for them: which are kept.

A month goes as a whole once no source keeps any of its rows. Rows that outlive their source's time
while others of their month are kept are deleted one by one (facts.retention).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from factbook.errors import UnavailableError
from factbook.facts.datasource import DataSource, milliseconds
from factbook.facts.row_age import FOUND_UNTIL
from factbook.storage import Database, Transaction
from factbook.storage.partitions import MonthlyTable, Partition, replace_gone

MONTHLY: Final = MonthlyTable("facts_history", "written_at")

_BEFORE_ALL: Final = -(2**63)


async def drop_months(database: Database, sources: Sequence[DataSource], now: int) -> None:
    """Drop the months before now of which no source keeps a row."""
    # Before these times; a source that keeps a number of rows, or all, has none.
    cutoffs = dict(_cutoffs(sources, now))

    async def is_gone(one: Partition) -> bool:
        source_id = ""
        while source_id := await _next(database, one, source_id):
            if not _may_go(cutoffs, source_id, one):
                return False
            values = (source_id, one.start or _BEFORE_ALL, one.end, cutoffs[source_id])
            try:
                if await database.search(_KEPT, values):
                    return False
            except UnavailableError:  # it takes too long, so its rows go one by one
                return False
        return True

    def check(transaction: Transaction, one: Partition) -> bool:
        """Return true unless somebody has pushed rows of an old time since."""
        source_id, sql = "", _NEXT.format(one.name)
        while row := transaction.one(sql, (source_id,)):
            source_id = row[0]
            if not _may_go(cutoffs, source_id, one):
                return False
        return True

    await replace_gone(database, MONTHLY, now, is_gone, check)


def _cutoffs(sources: Sequence[DataSource], now: int) -> Iterator[tuple[str, int]]:
    for source in sources:
        lifecycle = source.lifecycle
        if lifecycle and lifecycle.time_to_live and lifecycle.max_items is None:
            yield source.id, now - milliseconds(lifecycle.time_to_live)


def _may_go(cutoffs: Mapping[str, int], source_id: str, one: Partition) -> bool:
    return one.end is not None and cutoffs.get(source_id, _BEFORE_ALL) >= one.end


async def _next(database: Database, one: Partition, source_id: str) -> str:
    row = await database.one(_NEXT.format(one.name), (source_id,))
    return row[0] if row else ""


_NEXT: Final = "SELECT source_id FROM {} WHERE source_id > ? ORDER BY source_id LIMIT 1"

# An old row is kept while it is confirmed, or one that needs it, as in facts.retention.
_KEPT: Final = """
SELECT 1 FROM facts_history h
WHERE h.source_id = ? AND h.written_at >= ? AND h.written_at < ? AND {until} >= ?
LIMIT 1
""".replace("{until}", FOUND_UNTIL)

"""Rows of the history of one fact about an entity, equal ones next to each other as one."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from factbook.facts import history
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import find_reason
from factbook.facts.history import HistoryEntry, HistoryPosition
from factbook.facts.schema import Fact
from factbook.scheduling.schedule import find_next_start
from factbook.storage import Database
from factbook.web.site import fact_display
from factbook.web.site.fact_display import Reason, Value

_ROWS: Final = 50
_READ: Final = 500
_BYTES: Final = 4_000_000


class HistoryRow(NamedTuple):
    """Collections with the same value or reason for none; neither if the last value was kept.

    The first was `at`, the last `until`, None if there was only one. `times` is their number, about
    where the history holds no row of each.
    """

    at: int
    until: int | None
    times: int
    value: Value | None
    reason: Reason | None
    version: str

    @property
    def result(self) -> tuple[object, ...]:
        """The part that equal rows have in common."""
        return self[3:]


async def before(
    database: Database,
    source: DataSource,
    fact: Fact,
    entity_id: int,
    facts: Mapping[str, object],
    moment: int | None,
) -> tuple[list[HistoryRow], int | None]:
    """The last rows written before a time, newest first, and the time to continue from.

    The latest `facts` serve to estimate length.
    """
    limit = history.count_fitting_rows(facts, _READ, _BYTES)
    after = None if moment is None else HistoryPosition(moment, "")
    found = await history.page_history(
        database, [source.id], entity_id, None, None, after, limit + 1
    )
    rows, last = _folded((_row(source, fact, entry), entry) for entry in found[:limit])
    is_more = len(found) > limit or (last is not None and last != found[-1].written_at)
    return rows, last if is_more else None


def _folded(
    entries: Iterable[tuple[HistoryRow, HistoryEntry]],
) -> tuple[list[HistoryRow], int | None]:
    """Up to fifty folded rows, and the time of the last one among them."""
    rows: list[HistoryRow] = []
    last: int | None = None
    for row, entry in entries:
        if rows and rows[-1].result == row.result:
            newer = rows[-1]
            until = newer.until or newer.at
            rows[-1] = row._replace(until=until, times=row.times + newer.times)
        elif len(rows) == _ROWS:
            break
        else:
            rows.append(row)
        last = entry.written_at
    return rows, last


def _row(source: DataSource, fact: Fact, entry: HistoryEntry) -> HistoryRow:
    points = history.fact_points([entry], [fact.name])[fact.name]
    value = points[0][1] if points else None
    reason = None
    if points and value is None:
        reason = find_reason(fact.name, msgspec.json.decode(entry.reasons))
    return HistoryRow(
        entry.written_at,
        entry.confirmed_at,
        1 + times(source, entry.written_at, entry.confirmed_at),
        None if value is None else fact_display.shown(fact, value),
        None if reason is None else fact_display.plain(reason),
        entry.version,
    )


def times(source: DataSource, start: int, end: int | None) -> int:
    """About how many collections followed one at the start until the end, at the least one."""
    if end is None:
        return 0
    if source.cadence is None:
        return 1
    first = find_next_start(source.id, source.cadence, start)
    return max(1, (end - start) // (find_next_start(source.id, source.cadence, first) - first))

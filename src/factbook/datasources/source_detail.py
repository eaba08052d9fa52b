"""Details of one source: its condition, its last run and the gaps of that run."""

from typing import Final, NamedTuple

from factbook.facts import health, source_overview
from factbook.facts.datasource import DataSource
from factbook.facts.health import Condition
from factbook.scheduling import runs
from factbook.scheduling.runs import CountedGap, RunRecord
from factbook.storage import Database

MOST_FAILED: Final = 1_000
_KEPT: Final = "nothing new came; older values are kept for a while"


class Detail(NamedTuple):
    """A source, its condition, its last run with gaps, and entities for which it failed."""

    source: DataSource
    condition: Condition
    run: RunRecord | None
    gaps: list[CountedGap]
    failed: list[tuple[str, str]]


async def detail(database: Database, source: DataSource, now: int, *, failed: bool) -> Detail:
    """The details of a source; `failed` adds up to `MOST_FAILED` entities, each with a reason."""
    found = await runs.fetch_source_health(database, source.id)
    last = found.last if found else None
    return Detail(
        source,
        health.condition(source, found, now),
        last,
        await runs.list_gaps(database, last.id) if last else [],
        await _failed(database, last) if last and failed else [],
    )


async def _failed(database: Database, last: RunRecord) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after: int | None = 0
    while after is not None and len(found) < MOST_FAILED:
        page = await source_overview.failures(
            database, last.source_id, last.started_at, after, MOST_FAILED
        )
        found += [(one.ref, next(iter(one.reasons.values()), _KEPT)) for one in page.failures]
        after = page.more
    return found[:MOST_FAILED]

"""Expiration of values that nothing collects any more; a failed collection expires its own.

After a start of the service, a run gets the time to renew them first.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from factbook.clock import Throttle, iso
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation, expiry
from factbook.facts.health import LATE
from factbook.facts.reasons import UPSTREAM_ERROR
from factbook.scheduling import runs
from factbook.scheduling.runs import SourceHealth
from factbook.storage import Database, Transaction

_AT_ONCE = 500


class _Start:
    """The first round of this process."""

    at: int | None = None


class _Expired(NamedTuple):
    """The number of entities, and the id of the last one looked at; None at the end."""

    entities: int
    last: int | None


async def sweep(database: Database, sources: Iterable[DataSource], now: int, pace: Throttle) -> int:
    """Expire values of sources without a run for as long as a value lasts; returns how many."""
    start = database.remembered.of(_Start)
    start.at = now if start.at is None or start.at > now else start.at
    if now - start.at < LATE:
        return 0
    known, count = await runs.fetch_health(database), 0
    for source in sources:
        reason = _cause(source, known.get(source.id), now)
        after = None if reason is None else 0
        while reason is not None and after is not None:
            step = partial(_expire, source=source, reason=reason, after=after, now=now)
            expired: _Expired = await database.write(step)
            count, after = count + expired.entities, expired.last
            await pace.rest()
    return count


def _cause(source: DataSource, health: SourceHealth | None, now: int) -> str | None:
    """The reason why values may have expired; None if runs of the source take care of them."""
    if source.cadence is None or source.draft or health is None:
        return None
    last = health.last
    if last is None or health.running or now <= expiry(source, last.started_at):
        return None
    return last.error or f"{UPSTREAM_ERROR}: no run since {iso(last.started_at)}"


def _expire(
    transaction: Transaction, *, source: DataSource, reason: str, after: int, now: int
) -> _Expired:
    """Expire the values of the next entities."""
    rows = transaction.all(_KNOWN, (source.id, after, _AT_ONCE))
    old = [id_ for id_, written_at in rows if now > expiry(source, written_at)]
    lost = [Observation(id_, {}, {"": reason}, frozenset({""})) for id_ in old]
    if lost:
        store.record(transaction, source, lost, now)
    return _Expired(len(old), rows[-1][0] if len(rows) == _AT_ONCE else None)


_KNOWN = """
SELECT entity_id, written_at FROM facts_latest
WHERE source_id = ? AND entity_id > ? AND facts <> '{}' ORDER BY entity_id LIMIT ?
"""

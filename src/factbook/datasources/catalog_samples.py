"""Samples of the catalog's own facts, appended to history daily and on request."""

from collections.abc import Sequence
from functools import partial

import msgspec

from factbook.catalog.store import by_ref
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.integrations import catalog
from factbook.scheduling import lease, schedule
from factbook.storage import Database, Transaction

_LEASE = "catalog-sample"
_AT_ONCE = 1_000


def sample_some(
    transaction: Transaction, sources: Sequence[DataSource], ids: list[int], now: int
) -> None:
    """Append the facts of the catalog's own sources about these entities to history."""
    rows = by_ref.compliance_of(transaction, ids)
    for source in sources:
        if catalog.is_catalog_source(source.id):
            _sample(transaction, source=source, rows=rows, now=now)


async def sample_catalog(database: Database, sources: Sequence[DataSource], now: int) -> int:
    """Append the facts of the catalog's own sources to history where they have changed.

    Returns the number of entities examined; 0 if none is due by the sources' cadence.
    """
    own = [source for source in sources if catalog.is_catalog_source(source.id) and source.cadence]
    nexts = [
        schedule.find_next_time(schedule.parse_cadence(source.cadence or ""), now) for source in own
    ]
    holder = f"sample-{now}"
    if not own or not await lease.claim_lease(database, _LEASE, holder, now, min(nexts) - now):
        return 0
    try:
        return await _sample_all(database, own, now)
    except BaseException:
        # What is missing is sampled in the next round, not only when samples are due again.
        await lease.release_lease(database, _LEASE, holder)
        raise


async def _sample_all(database: Database, own: list[DataSource], now: int) -> int:
    seen, last = 0, 0
    while rows := await by_ref.compliance_by_id(database, last, _AT_ONCE):
        for source in own:
            await database.write(partial(_sample, source=source, rows=rows, now=now))
        seen, last = seen + len(rows), rows[-1][0]
    return seen


def _sample(
    transaction: Transaction, *, source: DataSource, rows: list[tuple[int, int]], now: int
) -> None:
    facts = [
        (id_, msgspec.json.decode(catalog.encode_catalog_facts(source.id, bits)))
        for id_, bits in rows
    ]
    store.append_samples(transaction, source.id, facts, now, source.version)

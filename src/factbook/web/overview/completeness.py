"""Completeness of entities, counted at most twice a minute while nothing changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from factbook.catalog.store import filter_choices, overview
from factbook.clock import SECOND
from factbook.web.site.page_context import PageContext

_KEPT: Final = 30 * SECOND


class _KeptCompleteness(NamedTuple):
    """Counts at a revision of the catalog, with the time they were made."""

    revision: tuple[int, int]
    at: int
    counts: Mapping[int, int]


@dataclass
class _RememberedCompleteness:
    """Cache of the last counts by kind: all entities of it are looked at for them."""

    kept: dict[str | None, _KeptCompleteness] = field(default_factory=dict)


async def counts(visit: PageContext, kind: str | None) -> Mapping[int, int]:
    """The number of entities of a kind that exists, None for all, by the points they meet."""
    database, now = visit.state.database, visit.now
    revision = await filter_choices.revision(database)
    remembered = database.remembered.of(_RememberedCompleteness)
    found = remembered.kept.get(kind)
    if found is None or found.revision != revision or not 0 <= now - found.at < _KEPT:
        counted = await overview.compliance(database, kind)
        found = remembered.kept[kind] = _KeptCompleteness(revision, now, counted)
    return found.counts

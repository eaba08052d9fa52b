"""Changes from data sources and from revisions of sets, as pages in one order of time."""

from operator import itemgetter
from typing import NamedTuple

from factbook.catalog.store.changes import Past, PastChanges, PastPlace, all_since
from factbook.facts import history_queries
from factbook.facts.history_queries import ChangePosition, FactChange
from factbook.integrations import catalog
from factbook.tools import catalog_changes
from factbook.tools.pages import place
from factbook.tools.tool import Context, encode

# Between the two places of a cursor.
_APART = "~"


class ChangeQuery(NamedTuple):
    """A query for changes: the start time, and the data source and kind, if restricted."""

    since: int
    source_id: str | None
    kind: str | None

    @property
    def is_of_catalog(self) -> bool:
        """True if the query includes changes of the catalog."""
        return self.source_id in (None, catalog_changes.ID)


class ChangeCursor(NamedTuple):
    """Position of a page: in the writes of data sources, and in the revisions of sets."""

    facts: ChangePosition
    catalog: PastPlace


Found = FactChange | Past


def start(since: int) -> ChangeCursor:
    """The positions before all changes since a time."""
    # Before every id of a source and of an entity, and in the form of these.
    return ChangeCursor(ChangePosition(since, "0", 0), catalog_changes.start(since))


def places_of(text: str) -> ChangeCursor:
    """The positions encoded in a cursor; one of an earlier release has only the first."""
    facts, _, revisions = text.partition(_APART)
    first = ChangePosition(*place(facts, 3))
    start = catalog_changes.start(first.written_at)
    return ChangeCursor(first, catalog_changes.place_of(revisions) if revisions else start)


def written(places: ChangeCursor | None, asked: ChangeQuery) -> str:
    """The result member that names the next page; empty if there is none."""
    if places is None:
        return ""
    text = "/".join(map(str, places.facts))
    if asked.is_of_catalog:
        text += _APART + catalog_changes.written(places.catalog)
    return f',"nextCursor":{encode(text)}'


async def of_both(
    asked: ChangeQuery, places: ChangeCursor, wanted: int, context: Context
) -> tuple[history_queries.FactChangePage, PastChanges]:
    """Further changes of data sources and of the catalog, as far as they are requested."""
    database, past = context.database, PastChanges([], None)
    changed = await history_queries.changes_page(database, *asked, places.facts, wanted)
    if asked.is_of_catalog:
        past = await all_since(database, places.catalog, asked.kind, wanted)
        own = [
            await catalog_changes.without_told(database, one)
            if catalog.answers(one.source_id)
            else one
            for one in changed.changes
        ]
        changed = changed._replace(changes=own)
    return changed, past


def in_order(changed: history_queries.FactChangePage, past: PastChanges) -> list[tuple[int, Found]]:
    """Both kinds of changes, each with its time, oldest first."""
    found: list[tuple[int, Found]] = [(one.written_at, one) for one in changed.changes]
    found += [(one.place.created_at, one) for one in past.changes]
    return sorted(found, key=itemgetter(0))

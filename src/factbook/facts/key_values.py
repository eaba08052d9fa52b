"""Single facts about the entities of a page."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from factbook.facts import latest_rows
from factbook.facts.freshness import Latest
from factbook.storage import Database


class KeyValue(NamedTuple):
    """A value and its source; None if the source tells of the entity and has no value."""

    source: str
    value: Any
    stale: bool = False


async def of_entities(
    database: Database, wanted: Mapping[str, Sequence[str]], entity_ids: Sequence[int]
) -> dict[str, dict[int, KeyValue]]:
    """The values by fact and entity id: of the first source of a fact that knows it.

    `wanted` has the sources of each fact.
    """
    sources = sorted({source for some in wanted.values() for source in some})
    if not sources or not entity_ids:
        return {name: {} for name in wanted}
    rows = await database.all(*latest_rows.among(sources, entity_ids))
    latest = latest_rows.marked(database, latest_rows.by_entity(rows))
    return {
        name: {id_: found for id_, own in latest.items() if (found := _first(own, name, some))}
        for name, some in wanted.items()
    }


async def latest_of_entities(
    database: Database, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> Mapping[int, Mapping[str, Latest]]:
    """The latest facts of sources by entity id and source id, in one statement."""
    if not source_ids or not entity_ids:
        return {}
    rows = await database.all(*latest_rows.among(source_ids, entity_ids))
    return latest_rows.marked(database, latest_rows.by_entity(rows))


def _first(own: Mapping[str, Latest], name: str, sources: Sequence[str]) -> KeyValue | None:
    telling = [source for source in sources if source in own]
    for source in telling:
        if name in own[source].facts:
            return KeyValue(source, own[source].facts[name], name in own[source].kept)
    return KeyValue(telling[0], None) if telling else None

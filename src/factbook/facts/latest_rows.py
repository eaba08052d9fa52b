"""The latest facts of several sources about many entities, by entity and source.

Their values alone are read in half of the time: without reasons, versions and times.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

import msgspec

from factbook.catalog.store.conditions import SQL
from factbook.facts import freshness
from factbook.facts.freshness import Latest
from factbook.storage import Database, Row

# By entity id and source id.
FactValues = dict[int, dict[str, dict[str, Any]]]

_NOTHING: Mapping[str, Any] = {}
_read: Final = msgspec.json.Decoder(dict[str, Any]).decode


def among(source_ids: Sequence[str], entity_ids: Sequence[int]) -> SQL:
    """The statement for the rows about these entities."""
    return _AMONG, [list(source_ids), list(entity_ids)]


def between(source_ids: Sequence[str], first: int, last: int) -> SQL:
    """The statement for the rows about the entities from one id to another."""
    return _BETWEEN, [list(source_ids), first, last]


def by_entity(rows: Iterable[Row]) -> dict[int, dict[str, Latest]]:
    """The latest facts by entity id and source id, from rows of such a statement."""
    found: dict[int, dict[str, Latest]] = {}
    for entity_id, source_id, facts, reasons, version, written_at, kept in rows:
        latest = Latest(
            _read(facts),
            {} if reasons == "{}" else _read(reasons),
            version,
            written_at,
            _NOTHING if kept == "{}" else _read(kept),
        )
        found.setdefault(entity_id, {})[source_id] = latest
    return found


def marked(database: Database, found: dict[int, dict[str, Latest]]) -> dict[int, dict[str, Latest]]:
    """The same facts, with stale values among the kept ones, for those who read."""
    mark = freshness.of(database).marked
    return {
        id_: {source: mark(source, latest) for source, latest in own.items()}
        for id_, own in found.items()
    }


async def stale_of(
    database: Database, reads: Mapping[str, Set[str]], entity_ids: Sequence[int]
) -> set[int]:
    """Those of the entities for which one of these facts, by source, is stale."""
    known = freshness.of(database)
    moments = {source_id: known.stale_before(source_id) for source_id in reads}
    rows: list[Row] = []
    if reads and entity_ids:
        asked = list(reads), list(entity_ids), max(moments.values())
        rows = await database.all(_STALE_AMONG, asked)
    return {
        entity_id
        for entity_id, source_id, written_at, kept in rows
        if written_at < moments[source_id]
        or any(
            name in reads[source_id] and time < known.kept_before(source_id)
            for name, time in _read(kept).items()
        )
    }


def values_among(source_ids: Sequence[str], entity_ids: Sequence[int]) -> SQL:
    """The statement for the values about these entities."""
    return _VALUES_AMONG, [list(source_ids), list(entity_ids)]


def values_between(source_ids: Sequence[str], first: int, last: int) -> SQL:
    """The statement for the values about the entities from one id to another."""
    return _VALUES_BETWEEN, [list(source_ids), first, last]


def values_by_entity(rows: Iterable[Row]) -> FactValues:
    """The values by entity id and source id, from rows of such a statement."""
    found: FactValues = {}
    for entity_id, source_id, facts in rows:
        found.setdefault(entity_id, {})[source_id] = _read(facts)
    return found


_AMONG = """
SELECT entity_id, source_id, facts, reasons, version, written_at, kept FROM facts_latest
WHERE source_id IN LIST(?) AND entity_id IN LIST(?)
"""

_STALE_AMONG = """
SELECT entity_id, source_id, written_at, kept FROM facts_latest
WHERE source_id IN LIST(?) AND entity_id IN LIST(?) AND facts <> '{}'
    AND (kept <> '{}' OR written_at < ?)
"""

_BETWEEN = _AMONG.replace("entity_id IN LIST(?)", "entity_id BETWEEN ? AND ?")

_VALUES_AMONG = _AMONG.replace("facts, reasons, version, written_at, kept FROM", "facts FROM")

_VALUES_BETWEEN = _VALUES_AMONG.replace("entity_id IN LIST(?)", "entity_id BETWEEN ? AND ?")

"""Latest facts as checks read them: those collected, and the catalog's own, kept as bits."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from factbook.catalog.store import collectable
from factbook.facts import latest_rows
from factbook.facts.freshness import Latest
from factbook.facts.latest_rows import FactValues
from factbook.integrations import catalog
from factbook.storage import Database, Transaction

FactsOfEntities = dict[int, dict[str, Latest]]


def among(
    transaction: Transaction, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> FactsOfEntities:
    """The latest facts of these sources about these entities."""
    if not source_ids:
        return {}
    rows = transaction.all(*latest_rows.among(source_ids, entity_ids))
    found, own = latest_rows.by_entity(rows), _own(source_ids)
    if own:
        _add(found, own, collectable.bits_of(transaction, list(entity_ids), owners=_owners(own)))
    return found


async def between(
    database: Database, source_ids: Sequence[str], first: int, last: int
) -> FactsOfEntities:
    """The same about the entities from one id to another."""
    if not source_ids:
        return {}
    rows = await database.search(*latest_rows.between(source_ids, first, last))
    found, own = latest_rows.by_entity(rows), _own(source_ids)
    if own:
        _add(found, own, await collectable.bits_between(database, first, last, owners=_owners(own)))
    return found


def values_among(
    transaction: Transaction, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> FactValues:
    """The values of the latest facts of these sources about these entities."""
    if not source_ids:
        return {}
    rows = transaction.all(*latest_rows.values_among(source_ids, entity_ids))
    found, own = latest_rows.values_by_entity(rows), _own(source_ids)
    if own:
        bits = collectable.bits_of(transaction, list(entity_ids), owners=_owners(own))
        for id_, source, facts, _ in _own_facts(own, bits):
            found.setdefault(id_, {})[source] = facts
    return found


async def values_between(
    database: Database, source_ids: Sequence[str], first: int, last: int
) -> FactValues:
    """The same about the entities from one id to another."""
    if not source_ids:
        return {}
    rows = await database.search(*latest_rows.values_between(source_ids, first, last))
    found, own = latest_rows.values_by_entity(rows), _own(source_ids)
    if own:
        bits = await collectable.bits_between(database, first, last, owners=_owners(own))
        for id_, source, facts, _ in _own_facts(own, bits):
            found.setdefault(id_, {})[source] = facts
    return found


async def of_entities(
    database: Database, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> FactsOfEntities:
    """The same about some entities, for those who read."""
    if not (source_ids and entity_ids):
        return {}
    rows = await database.all(*latest_rows.among(source_ids, entity_ids))
    found, own = latest_rows.marked(database, latest_rows.by_entity(rows)), _own(source_ids)
    if own:
        rows = await collectable.bits_of_ids(database, list(entity_ids), owners=_owners(own))
        _add(found, own, rows)
    return found


async def own_of(database: Database, entity_id: int) -> dict[str, Latest]:
    """The catalog's own facts about an entity, by source."""
    found: FactsOfEntities = {}
    own = [source.id for source in catalog.SOURCES]
    _add(found, own, await collectable.bits_between(database, entity_id, entity_id, owners=True))
    return found.get(entity_id, {})


def _own(source_ids: Iterable[str]) -> list[str]:
    return [id_ for id_ in source_ids if catalog.answers(id_)]


def _owners(source_ids: Iterable[str]) -> bool:
    return any(map(catalog.looks_for_owners, source_ids))


def _add(
    found: FactsOfEntities, own: Collection[str], rows: Iterable[tuple[int, int, int]]
) -> None:
    for id_, source, facts, updated_at in _own_facts(own, rows):
        found.setdefault(id_, {})[source] = Latest(facts, {}, "", updated_at)


def _own_facts(
    own: Collection[str], rows: Iterable[tuple[int, int, int]]
) -> Iterator[tuple[int, str, dict[str, object], int]]:
    """(entity id, source id, facts, time) of the catalog's own sources from (id, bits, time)."""
    for id_, bits, updated_at in rows:
        for source in own:
            facts = msgspec.json.decode(catalog.facts(source, bits), type=dict[str, object])
            yield id_, source, facts, updated_at

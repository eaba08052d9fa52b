"""Full evaluation of every check for every entity, to compare with what is stored."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from factbook.catalog.filters import Matcher
from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions import publications
from factbook.checks.results.entity_evaluation import CheckCache, CheckSet
from factbook.checks.results.level_store import find_owner
from factbook.checks.results.state_store import PLACES, StateCounts
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.facts import store
from factbook.facts.freshness import Latest
from factbook.storage import Database, Transaction


class StoredStates(NamedTuple):
    """What is stored of one entity: its owner, and its states by check."""

    owner: str
    states: dict[str, int]


async def verify(database: Database, now: int) -> dict[str, StoredStates]:
    """Compare all that is stored with a full evaluation; returns it by reference."""
    known = await database.write(current)
    entities = stored_entities.decode_collectable(
        await database.all(
            *stored_entities.entity_page_sql(stored_entities.EVERY_ENTITY, 0, 100_000)
        )
    )
    stored = {row[0]: row[1:] for row in await database.all(_STATES)}
    found: dict[str, StoredStates] = {}
    refs = {ref for _, ref, _ in entities}
    for id_, ref, document in entities:
        facts = {**await store.list_latest(database, id_), **ownership(document, refs)}
        wanted, due = evaluated(known, ref, document, facts, now)
        owner, states, due_at = stored.pop(id_, ("", b"", None))
        has = {check: byte(states, slot) for check, slot in known.slots.items()}
        assert has == wanted, (ref, has, wanted)
        if wanted:
            assert owner == find_owner(document), ref
        assert due is None or (due_at is not None and due_at <= due), (ref, due, due_at)
        found[ref] = StoredStates(owner, has)
    assert not stored, "states of entities that are not there"
    assert await counts(database) == recounted(known, found.values())
    return found


def ownership(document: Mapping[str, Any], refs: Collection[str]) -> dict[str, Latest]:
    """What the catalog itself knows of an entity's owner, where these entities are there."""
    relations = document.get("relations", ())
    owners = [one["targetRef"] for one in relations if one["type"] == "ownedBy"]
    facts = {"hasOwner": bool(owners), "ownerExists": any(owner in refs for owner in owners)}
    return {"entity-ownership": Latest(facts, {}, "", 0)}


def current(transaction: Transaction) -> CheckSet:
    """The checks in effect, without what any process has in memory."""
    transaction.lock(publications.DEFINITIONS_LOCK, shared=True)
    return CheckCache().current(transaction)


def evaluated(
    known: CheckSet, ref: str, document: dict[str, Any], facts: Mapping[str, Any], now: int
) -> tuple[dict[str, int], int | None]:
    """The state of every check in effect for an entity, and when the first of them is due."""
    states: dict[str, int] = {}
    dues: list[int] = []
    matcher = Matcher(document)
    for one in known.checks:
        if one.is_pending:
            continue
        if not one.compiled.applies(matcher):
            states[one.id] = state.OUT
            continue
        outcome = one.compiled.evaluate(CheckedEntity(ref, document, facts, states), now)
        states[one.id] = outcome.state
        dues += [] if outcome.due is None else [outcome.due]
    return states, min(dues, default=None)


async def counts(database: Database) -> dict[tuple[str, str], StateCounts]:
    """The stored counts that are not zero, by check and owner."""
    rows = await database.all(_COUNTS)
    found = {(check, owner): StateCounts(*numbers) for check, owner, *numbers in rows}
    return {key: numbers for key, numbers in found.items() if any(numbers)}


def recounted(known: CheckSet, every: Any) -> dict[tuple[str, str], StateCounts]:
    """The same, counted anew."""
    numbers: dict[tuple[str, str], Counter[int]] = {}
    for one in every:
        for check, value in one.states.items():
            if PLACES[value] >= 0:
                numbers.setdefault((check, one.owner), Counter())[PLACES[value]] += 1
    return {
        key: StateCounts(*(count[place] for place in range(5))) for key, count in numbers.items()
    }


def byte(states: bytes, slot: int) -> int:
    """The state in a slot."""
    return states[slot - 1] if slot <= len(states) else state.NONE


_STATES = "SELECT entity_id, owner, states, due_at FROM check_states"

_COUNTS = """
SELECT c.id, n.owner, n.passing, n.failing, n.undecided, n.exempt, n.inapplicable
FROM check_counts n LEFT JOIN checks c ON c.slot = n.slot
"""

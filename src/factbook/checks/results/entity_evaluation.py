"""Evaluation of checks for entities: their documents and latest facts, and their next states.

Facts are those collected, and the catalog's own, kept as bits. Documents and facts are read for
many entities at a time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from factbook.catalog.store import stored_entities
from factbook.checks.results.check_set import (
    CheckSelection,
    CheckSet,
    EvaluatedCheck,
    MatchingChecks,
)
from factbook.checks.results.level_store import EntityPlace, place_entity
from factbook.checks.results.state_store import EntityStates
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CheckOutcome, CompiledCheck
from factbook.checks.state import EXEMPT, FAIL, NONE, OUT, PASS, UNKNOWN
from factbook.errors import UnavailableError
from factbook.facts import entity_filter, store
from factbook.facts.entity_filter import EntityFilter, Matcher
from factbook.facts.freshness import Latest
from factbook.facts.store import FactValues
from factbook.integrations import catalog
from factbook.storage import Database, Transaction
from factbook.storage.database import RestartError

log = structlog.get_logger("factbook.checks")
_NO_FACTS_READ: Mapping[str, Any] = {}
# Without the flag of an exemption.
_STATE_BITS: Final = EXEMPT - 1
# What an exemption is from.
EXEMPTED_STATES: Final = frozenset({PASS, FAIL, UNKNOWN})


FactsOfEntities = dict[int, dict[str, Latest]]


def read_facts_among(
    transaction: Transaction, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> FactsOfEntities:
    """The latest facts of these sources about these entities."""
    if not source_ids:
        return {}
    rows = transaction.all(*store.latest_among(source_ids, entity_ids))
    found, own = store.group_latest(rows), _select_own_sources(source_ids)
    if own:
        _add_own_facts(
            found,
            own,
            stored_entities.read_bits_within(
                transaction, list(entity_ids), owners=_reads_owners(own)
            ),
        )
    return found


async def read_facts_between(
    database: Database, source_ids: Sequence[str], first: int, last: int
) -> FactsOfEntities:
    """The same about the entities from one id to another."""
    if not source_ids:
        return {}
    rows = await database.search(*store.latest_between(source_ids, first, last))
    found, own = store.group_latest(rows), _select_own_sources(source_ids)
    if own:
        _add_own_facts(
            found,
            own,
            await stored_entities.read_bits_between(
                database, first, last, owners=_reads_owners(own)
            ),
        )
    return found


def read_values_among(
    transaction: Transaction, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> FactValues:
    """The values of the latest facts of these sources about these entities."""
    if not source_ids:
        return {}
    rows = transaction.all(*store.values_among(source_ids, entity_ids))
    found, own = store.group_values(rows), _select_own_sources(source_ids)
    if own:
        bits = stored_entities.read_bits_within(
            transaction, list(entity_ids), owners=_reads_owners(own)
        )
        for id_, source, facts, _ in _decode_own_facts(own, bits):
            found.setdefault(id_, {})[source] = facts
    return found


async def read_values_between(
    database: Database, source_ids: Sequence[str], first: int, last: int
) -> FactValues:
    """The same about the entities from one id to another."""
    if not source_ids:
        return {}
    rows = await database.search(*store.values_between(source_ids, first, last))
    found, own = store.group_values(rows), _select_own_sources(source_ids)
    if own:
        bits = await stored_entities.read_bits_between(
            database, first, last, owners=_reads_owners(own)
        )
        for id_, source, facts, _ in _decode_own_facts(own, bits):
            found.setdefault(id_, {})[source] = facts
    return found


async def read_facts_of(
    database: Database, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> FactsOfEntities:
    """The same about some entities, for those who read."""
    if not (source_ids and entity_ids):
        return {}
    rows = await database.all(*store.latest_among(source_ids, entity_ids))
    found, own = (
        store.mark_stale(database, store.group_latest(rows)),
        _select_own_sources(source_ids),
    )
    if own:
        rows = await stored_entities.read_bits(
            database, list(entity_ids), owners=_reads_owners(own)
        )
        _add_own_facts(found, own, rows)
    return found


async def read_own_facts(database: Database, entity_id: int) -> dict[str, Latest]:
    """The catalog's own facts about an entity, by source."""
    found: FactsOfEntities = {}
    own = [source.id for source in catalog.SOURCES]
    _add_own_facts(
        found,
        own,
        await stored_entities.read_bits_between(database, entity_id, entity_id, owners=True),
    )
    return found.get(entity_id, {})


def _select_own_sources(source_ids: Iterable[str]) -> list[str]:
    return [id_ for id_ in source_ids if catalog.is_catalog_source(id_)]


def _reads_owners(source_ids: Iterable[str]) -> bool:
    return any(map(catalog.needs_owner_bit, source_ids))


def _add_own_facts(
    found: FactsOfEntities, own: Collection[str], rows: Iterable[tuple[int, int, int]]
) -> None:
    for id_, source, facts, updated_at in _decode_own_facts(own, rows):
        found.setdefault(id_, {})[source] = Latest(facts, {}, "", updated_at)


def _decode_own_facts(
    own: Collection[str], rows: Iterable[tuple[int, int, int]]
) -> Iterator[tuple[int, str, dict[str, object], int]]:
    """(entity id, source id, facts, time) of the catalog's own sources from (id, bits, time)."""
    for id_, bits, updated_at in rows:
        for source in own:
            facts = msgspec.json.decode(
                catalog.encode_catalog_facts(source, bits), type=dict[str, object]
            )
            yield id_, source, facts, updated_at


class Subject(NamedTuple):
    """An entity with what a selection of checks reads; `matching` are those that are about it.

    `matching` and `owner` are None where the document was not read, and `place` unless all of it
    was.
    """

    entity: CheckedEntity
    owner: str | None
    matching: MatchingChecks | None
    place: EntityPlace | None = None


Stored = Mapping[int, EntityStates]


_NONE_STORED: Stored = {}


# Brings those of the entities that exist, given the states that are stored of them.
Read = Callable[[Transaction, CheckSelection, Sequence[int], Stored], dict[int, Subject]]


def read_subjects_with_documents(
    transaction: Transaction,
    selection: CheckSelection,
    entity_ids: Sequence[int],
    stored: Stored = _NONE_STORED,
) -> dict[int, Subject]:
    """Those of the entities that exist, by id, whatever is known of them so far."""
    rows = transaction.all(
        *stored_entities.entities_among_sql(stored_entities.EVERY_ENTITY, list(entity_ids))
    )
    facts = read_facts_among(transaction, selection.sources, entity_ids)
    return {
        id_: _make_subject(selection, ref, document, facts.get(id_, {}))
        for id_, ref, document in stored_entities.decode_collectable(rows)
    }


def read_subjects_without_documents(
    transaction: Transaction, selection: CheckSelection, entity_ids: Sequence[int]
) -> dict[int, Subject]:
    """Entities of which the documents are as they were when their states were written.

    Documents are read where checks of the selection read more than which entities they are about.
    """
    facts = read_facts_among(transaction, selection.sources, entity_ids)
    documents: Mapping[int, Mapping[str, Any]] = {}
    if selection.reads_entity:
        rows = transaction.all(
            *stored_entities.entities_among_sql(stored_entities.EVERY_ENTITY, list(entity_ids))
        )
        documents = {id_: document for id_, _, document in stored_entities.decode_collectable(rows)}
    return {
        id_: Subject(
            CheckedEntity("", documents.get(id_, _NO_FACTS_READ), facts.get(id_, {})), None, None
        )
        for id_ in entity_ids
    }


def read_subjects_by_filters(
    transaction: Transaction, selection: CheckSelection, entity_ids: Sequence[int], stored: Stored
) -> dict[int, Subject]:
    """Those of the entities that exist, without a look at their documents.

    The catalog's index tells which checks are about which: quicker where few filters do.
    """
    ids = list(entity_ids)
    # States are removed with their entity, and those that are stored are locked.
    known = {id_ for id_ in ids if id_ in stored and stored[id_].states}
    new = [id_ for id_ in ids if id_ not in known]
    owners: dict[int, str | None] = dict.fromkeys(known)
    if new:
        owners |= stored_entities.read_owner_refs(transaction, new)
    ids = list(owners)
    matching = [list_meeting_ids(transaction, one, ids) for one in selection.filters.values()]
    facts = read_facts_among(transaction, selection.sources, ids)
    return {
        id_: Subject(
            CheckedEntity("", _NO_FACTS_READ, facts.get(id_, {})),
            owner,
            selection.by_matches(tuple(id_ in found for found in matching)),
        )
        for id_, owner in owners.items()
    }


def list_meeting_ids(
    transaction: Transaction, filter_: EntityFilter | None, ids: list[int]
) -> Collection[int]:
    """Those of the entities that a filter lets through; without one all of them."""
    if filter_ is None:
        return frozenset(ids)
    return stored_entities.filter_ids_meeting(
        transaction, entity_filter.filter_condition(filter_), ids
    )


def _make_subject(
    selection: CheckSelection,
    ref: str,
    document: dict[str, Any],
    facts: Mapping[str, Latest],
) -> Subject:
    matcher = Matcher(document)
    place = place_entity(ref, document, matcher)
    entity = CheckedEntity(ref, document, facts)
    return Subject(entity, place.owner, selection.matching(matcher), place)


class SlotStates(Mapping[str, int]):
    """The states of an entity by the id of a check, as an evaluation reads them."""

    __slots__ = ("_slots", "_states")

    def __init__(self, slots: Mapping[str, int], states: bytearray) -> None:
        self._slots = slots
        self._states = states

    def __getitem__(self, check_id: str) -> int:
        slot = self._slots[check_id]
        # A slot beyond the end has no state.
        return self._states[slot] if slot < len(self._states) else NONE

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)


class ActiveExemptions(NamedTuple):
    """The checks from which an entity is exempt now; `due` is when that may change by itself."""

    checks: frozenset[str]
    due: int | None


NO_EXEMPTIONS: Final = ActiveExemptions(frozenset(), None)


class Evaluated(NamedTuple):
    """The next states of an entity; `due` is when the first of them may change without a write."""

    states: bytearray
    due: int | None


def evaluate_selection(
    known: CheckSet,
    selection: CheckSelection,
    subject: Subject,
    before: bytearray,
    now: int,
    exempt: ActiveExemptions = NO_EXEMPTIONS,
    *,
    leaves_costly: bool = False,
) -> Evaluated:
    """Evaluate the selection for an entity with these states.

    A check that raises an exception is unknown, so that what was written is kept. With
    `leaves_costly` the costly checks keep their states, or are unknown, and are due at once.
    """
    states, due = bytearray(before), exempt.due
    inside = _make_checked_entity(selection, subject, states)
    entity = subject.entity
    entity.most_steps = known.steps_per_check
    entity.states = SlotStates(known.slots, states)
    pending = SlotStates(known.slots_pending, states)
    exempted = exempt.checks
    for id_, slot, compiled, is_pending, _, _ in inside:
        if leaves_costly and compiled.is_costly:
            if states[slot] & _STATE_BITS in (NONE, OUT):
                states[slot] = UNKNOWN
            due = now
            continue
        if is_pending:
            entity.states = pending
        # Inline: a function would be one call more for each of very many.
        try:
            if (rule := compiled.rule) is not None:
                state, later = rule(entity, now), None
            else:
                state, later = compiled.evaluate(entity, now)
        except (RestartError, UnavailableError):
            raise
        except Exception:
            state, later = UNKNOWN, None
            if not compiled.has_failed:
                compiled.has_failed = True
                log.exception("check.failed", check=id_, slot=slot)
        if exempted and id_ in exempted and state in EXEMPTED_STATES:
            state |= EXEMPT
        states[slot] = state
        if later is not None and (due is None or later < due):
            due = later
    return Evaluated(states, due)


def _make_checked_entity(
    selection: CheckSelection, subject: Subject, states: bytearray
) -> Sequence[EvaluatedCheck]:
    """The checks that are about the entity; the states of the others are set."""
    if subject.matching is None:
        return [one for one in selection.checks if states[one.slot] & _STATE_BITS != OUT]
    for one in subject.matching.outside:
        states[one.slot] = OUT
    return subject.matching.inside


def evaluate_compiled(
    check_id: str, compiled: CompiledCheck, entity: CheckedEntity, now: int
) -> CheckOutcome:
    """Evaluate one check for an entity that it applies to, unknown if it raises an exception."""
    try:
        return compiled.evaluate(entity, now)
    except (RestartError, UnavailableError):
        raise
    except Exception:
        if not compiled.has_failed:
            compiled.has_failed = True
            log.exception("check.failed", check=check_id, slot=compiled.slot)
        return CheckOutcome(UNKNOWN)

"""Evaluation of checks for entities: check order, documents, facts and next states.

Checks in effect and pending are compiled once per revision. Facts are collected or the catalog's
own, which are stored as bits. Documents and facts are read for many entities at a time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from factbook.catalog import filters
from factbook.catalog.filters import EntityFilter, Matcher
from factbook.catalog.store import stored_entities
from factbook.checks.definitions import definition_versions, publications
from factbook.checks.definitions.definition_versions import StoredCheck, check_store
from factbook.checks.results.level_store import EntityPlace, Grading, place_entity
from factbook.checks.results.state_store import EntityStates
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import (
    Check,
    find_refused_check_patterns,
    parse_stored_check,
)
from factbook.checks.rules.checked_entity import CHECK_STEPS, CheckedEntity
from factbook.checks.rules.rule_evaluation import (
    CheckOutcome,
    CompiledCheck,
    Explainer,
    order_checks,
)
from factbook.checks.state import EXEMPT, FAIL, NONE, OUT, PASS, UNKNOWN
from factbook.errors import FactbookError, UnavailableError
from factbook.facts import store
from factbook.facts.freshness import Latest
from factbook.facts.store import FactValues
from factbook.integrations import catalog
from factbook.storage import Database, Transaction
from factbook.storage.database import RestartError, fetch_counter_cached, select_counter

log = structlog.get_logger("factbook.checks")
# Operators whose result changes over time, and those that read collection times.
_TIMED: Final = frozenset({"olderThan", "newerThan", "freshWithin", "before", "after"})
_FRESH: Final = frozenset({"freshWithin"})
# Steps for all checks with patterns and paths on one entity, half a second at most, and the minimum
# for each of these checks.
_ENTITY_STEPS: Final = 25_000_000
_LEAST_STEPS: Final = 25_000


class EvaluatedCheck(NamedTuple):
    """A compiled version of a check, with the triggers of its evaluation.

    `fresh` are the sources whose collection times it reads. A pending version has no readers yet:
    its states are neither counted nor announced.
    """

    id: str
    slot: int
    compiled: CompiledCheck
    is_pending: bool
    is_timed: bool
    fresh: frozenset[str]


class CheckSelection:
    """Some checks of a set, each after the checks that it reads."""

    def __init__(self, checks: Iterable[EvaluatedCheck]) -> None:
        self.checks = tuple(checks)
        every = [one.compiled for one in self.checks]
        self.sources = sorted(set[str]().union(*(one.sources for one in every)))
        self.reads_entity = any(one.reads_entity for one in every)
        self.has_pending = any(one.is_pending for one in self.checks)
        # Checks in effect: their states are counted and announced.
        self.in_effect = tuple((one.slot, one.id) for one in self.checks if not one.is_pending)
        # Picks all states in one call; slot 0 (unused) twice, so the result is always a tuple.
        self._pick = itemgetter(0, 0, *(slot for slot, _ in self.in_effect))
        self._texts = [_json(one.check.applies_to) for one in every]
        # Many checks share a filter.
        self.filters: dict[bytes, EntityFilter | None] = {
            text: one.check.applies_to for text, one in zip(self._texts, every, strict=True)
        }
        self._by_matches: dict[tuple[bool, ...], MatchingChecks] = {}

    def states(self, states: bytearray) -> tuple[int, ...]:
        """The states of the checks in effect, after two unused ones."""
        found: tuple[int, ...] = self._pick(states)
        return found

    def differing(self, old: bytearray, new: bytearray) -> list[tuple[int, str]]:
        """(slot, id) of the checks in effect whose states differ."""
        if self.states(old) == self.states(new):
            return []
        return [(slot, id_) for slot, id_ in self.in_effect if old[slot] != new[slot]]

    def matching(self, matcher: Matcher) -> "MatchingChecks":
        """The checks that apply to an entity, and the others."""
        found = self.filters.values()
        return self.by_matches(tuple(matcher.lets_through(one) for one in found))

    def by_matches(self, matches: tuple[bool, ...]) -> "MatchingChecks":
        """The same by `matches`: for each filter, whether it matches the entity."""
        known = self._by_matches.get(matches)
        if known is None:
            holds = dict(zip(self.filters, matches, strict=True))
            chosen = [holds[text] for text in self._texts]
            pairs = list(zip(self.checks, chosen, strict=True))
            known = MatchingChecks(
                tuple(one for one, is_in in pairs if is_in),
                tuple(one for one, is_in in pairs if not is_in),
            )
            self._by_matches[matches] = known
        return known


class MatchingChecks(NamedTuple):
    """Checks that apply to an entity, and checks that don't."""

    inside: tuple[EvaluatedCheck, ...]
    outside: tuple[EvaluatedCheck, ...]


class CheckSet:
    """All checks of a revision.

    `counted` are the slots of versions in effect, including versions that this release can't
    evaluate. `is_empty`: no entity has states or levels.
    """

    def __init__(
        self,
        revision: int,
        checks: Iterable[EvaluatedCheck],
        counted: Sequence[int],
        *,
        is_needed: bool = False,
        in_effect_at: Mapping[str, int | None] = MappingProxyType({}),
    ) -> None:
        found = list(checks)
        # When each version came into effect, if known.
        self.in_effect_at = in_effect_at
        self._explainers: dict[str, Explainer] = {}
        self.is_empty = not found and not counted and not is_needed
        self.revision = revision
        published = [one for one in found if not one.is_pending]
        pending = [one for one in found if one.is_pending]
        self.checks = (*_order_evaluated(published), *_order_evaluated(pending))
        self.width = max((*(one.slot for one in found), *counted), default=0)
        self.counted = tuple(sorted(counted))
        self.by_slot: Mapping[int, EvaluatedCheck] = {one.slot: one for one in found}
        self.slots: Mapping[str, int] = {one.id: one.slot for one in published}
        # Pending versions read the versions that come into effect with them.
        self.slots_pending = {**self.slots, **{one.id: one.slot for one in pending}}
        self.sources = frozenset[str]().union(*(one.compiled.sources for one in found))
        self.fresh = frozenset[str]().union(*(one.fresh for one in found))
        costly = sum(one.compiled.is_costly for one in found)
        self.steps_per_check = max(_LEAST_STEPS, min(CHECK_STEPS, _ENTITY_STEPS // max(1, costly)))
        self.reads_owners = any(one.compiled.reads_owner for one in found)
        # Set by the first transaction that grades entities (checks/results/incremental.py).
        self.grading: Grading | None = None
        self._pending: dict[frozenset[str], CheckSelection] = {}
        self._selections: dict[tuple[frozenset[str], frozenset[str]], CheckSelection] = {}

    def explainer(self, one: EvaluatedCheck) -> Explainer:
        """The explainer of a check in effect; made once per revision."""
        found = self._explainers.get(one.id)
        if found is None:
            found = self._explainers[one.id] = Explainer(one.compiled.check, one.compiled)
        return found

    def sources_of(self, ids: Iterable[str] | None = None) -> set[str]:
        """The sources that these checks in effect read, directly or through other checks."""
        found, left = set[str](), set(self.slots if ids is None else self.slots.keys() & ids)
        seen = set[str]()
        while left:
            seen |= left
            read = [self.by_slot[self.slots[id_]].compiled for id_ in left]
            found = found.union(*(one.sources for one in read))
            left = set[str]().union(*(one.checks for one in read)) & self.slots.keys() - seen
        return found

    @cached_property
    def everything(self) -> CheckSelection:
        """Every check."""
        return CheckSelection(self.checks)

    def pending_of(self, ids: frozenset[str]) -> CheckSelection:
        """The pending versions of some checks."""
        found = self._pending.get(ids)
        if found is None:
            chosen = [one for one in self.checks if one.is_pending and one.id in ids]
            found = self._pending[ids] = CheckSelection(chosen)
        return found

    @cached_property
    def due(self) -> CheckSelection:
        """The checks whose states change over time, and their readers.

        Costly checks are included: a write may have postponed them.
        """
        return self._with_readers(
            one for one in self.checks if one.is_timed or one.compiled.is_costly
        )

    def reading(self, sources: frozenset[str], confirmed: frozenset[str]) -> CheckSelection:
        """The checks that read these sources or the times of those `confirmed`, and their readers.

        Selections are cached, since the same sources are written repeatedly.
        """
        key = sources, confirmed
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = self._with_readers(
                one
                for one in self.checks
                if one.compiled.sources & sources or one.fresh & confirmed
            )
        return found

    def _with_readers(self, checks: Iterable[EvaluatedCheck]) -> CheckSelection:
        chosen = {one.id for one in checks}
        size = -1
        while size < len(chosen):
            size = len(chosen)
            chosen |= {one.id for one in self.checks if one.compiled.checks & chosen}
        return CheckSelection(one for one in self.checks if one.id in chosen)


class CheckCache:
    """The compiled checks of the newest revision that this process has read."""

    def __init__(self) -> None:
        self.known = CheckSet(-1, (), ())
        self._made: dict[tuple[int, bytes], EvaluatedCheck] = {}

    def current(self, transaction: Transaction) -> CheckSet:
        """The checks in effect and pending; the transaction holds the definitions lock."""
        revision = select_counter(transaction, publications.DEFINITIONS_REVISION)
        known = self.known
        if known.revision != revision:
            stored = check_store.all_within(transaction)
            # States wait to be cleared, or a scorecard has levels although its checks are drafts.
            is_needed = bool(
                publications.list_retired_slots(transaction)
            ) or definition_versions.are_levels_used(transaction)
            known = self._made_of(revision, stored, is_needed=is_needed)
        return known

    async def last_loaded(self, database: Database) -> CheckSet:
        """The checks by the cached revision counter, for very frequent small answers."""
        revision = await fetch_counter_cached(database, publications.DEFINITIONS_REVISION)
        known = self.known
        return known if known.revision == revision else await self.loaded(database)

    async def loaded(self, database: Database) -> CheckSet:
        """The checks in effect and pending, at least as new as this call."""
        revision = await check_store.revision(database)
        known = self.known
        if known.revision != revision:
            known = self._made_of(revision, await check_store.everything(database))
        return known

    def _made_of(
        self, revision: int, stored: Sequence[StoredCheck], *, is_needed: bool = True
    ) -> CheckSet:
        counted = [one.slot for one in stored if one.slot is not None]
        checks = self._compiled(stored)
        times = {one.id: one.in_effect_at for one in stored}
        self.known = found = CheckSet(
            revision, checks, counted, is_needed=is_needed, in_effect_at=times
        )
        return found

    def _compiled(self, stored: Iterable[StoredCheck]) -> Iterator[EvaluatedCheck]:
        before, self._made = self._made, {}
        for one in stored:
            for slot, document, is_pending in (
                (one.slot, one.published, False),
                (one.pending_slot, one.pending, True),
            ):
                if slot is None or document is None:
                    continue
                key = slot, _json([document, is_pending])
                found = before.get(key) or parse_evaluated_check(
                    document, slot, is_pending=is_pending
                )
                if found is not None:
                    self._made[key] = found
                    yield found


def parse_evaluated_check(
    document: object, slot: int, *, is_pending: bool
) -> EvaluatedCheck | None:
    """The check in a stored document; None if this release can't read it."""
    try:
        check = parse_stored_check(document)
    except FactbookError as error:
        log.error("check.unusable", slot=slot, reason=error.message)
        return None
    for path, reason in find_refused_check_patterns(check):
        log.error("check.pattern-refused", check=check.id, path=path, reason=reason)
    return make_evaluated_check(check, slot, is_pending=is_pending)


def make_evaluated_check(check: Check, slot: int, *, is_pending: bool) -> EvaluatedCheck:
    """Compile a check for evaluation."""
    rules = [check.rule, *([check.applicable_when] if check.applicable_when else [])]
    leaves = [leaf for rule in rules for _, leaf in language.walk_leaves(rule)]
    return EvaluatedCheck(
        check.id,
        slot,
        CompiledCheck(check, slot),
        is_pending,
        any(leaf.operator in _TIMED for leaf in leaves),
        frozenset(leaf.fact.source for leaf in leaves if leaf.operator in _FRESH),
    )


def _order_evaluated(checks: list[EvaluatedCheck]) -> list[EvaluatedCheck]:
    by_id = {one.id: one for one in checks}
    return [by_id[one.check.id] for one in order_checks(one.compiled for one in checks)]


_json = msgspec.json.Encoder(order="deterministic").encode


_NO_FACTS_READ: Mapping[str, Any] = {}
# All bits except the exemption flag.
_STATE_BITS: Final = EXEMPT - 1
# The states that an exemption applies to.
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
    """The latest facts of these sources about the entities in a range of ids."""
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
    """The values of the latest facts about the entities in a range of ids."""
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
    """The latest facts about some entities, with stale ones marked, for readers."""
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
    """An entity with everything that a selection of checks reads.

    `matching` are the checks that apply to it. `matching` and `owner` are None if the document was
    not read, `place` unless the whole document was.
    """

    entity: CheckedEntity
    owner: str | None
    matching: MatchingChecks | None
    place: EntityPlace | None = None


Stored = Mapping[int, EntityStates]


_NONE_STORED: Stored = {}


# Reads the entities that exist, given their stored states.
Read = Callable[[Transaction, CheckSelection, Sequence[int], Stored], dict[int, Subject]]


def read_subjects_with_documents(
    transaction: Transaction,
    selection: CheckSelection,
    entity_ids: Sequence[int],
    stored: Stored = _NONE_STORED,
) -> dict[int, Subject]:
    """The entities that exist, by id, with documents and facts."""
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
    """Entities whose documents haven't changed since their states were written.

    Documents are read only if checks of the selection read more than `appliesTo` does.
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
    """The entities that exist, without reading their documents.

    The catalog index finds the checks that apply: faster if there are few filters.
    """
    ids = list(entity_ids)
    # States are deleted with their entity, and stored states are locked here.
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
    """The entities that match a filter; all of them without a filter."""
    if filter_ is None:
        return frozenset(ids)
    return stored_entities.filter_ids_meeting(
        transaction, filters.make_filter_condition(filter_), ids
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
    """The states of an entity by check id, for an evaluation."""

    __slots__ = ("_slots", "_states")

    def __init__(self, slots: Mapping[str, int], states: bytearray) -> None:
        self._slots = slots
        self._states = states

    def __getitem__(self, check_id: str) -> int:
        slot = self._slots[check_id]
        # Slots beyond the end have no state.
        return self._states[slot] if slot < len(self._states) else NONE

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)


class ActiveExemptions(NamedTuple):
    """The checks that an entity is exempt from now; `due` is when time may change them."""

    checks: frozenset[str]
    due: int | None


NO_EXEMPTIONS: Final = ActiveExemptions(frozenset(), None)


class Evaluated(NamedTuple):
    """The next states of an entity; `due` is when time may first change one of them."""

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

    If a check raises an exception, its state is unknown, and the write succeeds. With
    `leaves_costly`, costly checks keep their states (unknown if they have none) and are due at
    once.
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
        # Inline: this loop is hot, and a function would add a call per check.
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
    """The checks that apply to the entity; sets the states of the others."""
    if subject.matching is None:
        return [one for one in selection.checks if states[one.slot] & _STATE_BITS != OUT]
    for one in subject.matching.outside:
        states[one.slot] = OUT
    return subject.matching.inside


def evaluate_compiled(
    check_id: str, compiled: CompiledCheck, entity: CheckedEntity, now: int
) -> CheckOutcome:
    """Evaluate a check for an entity that it applies to; unknown if the check raises."""
    try:
        return compiled.evaluate(entity, now)
    except (RestartError, UnavailableError):
        raise
    except Exception:
        if not compiled.has_failed:
            compiled.has_failed = True
            log.exception("check.failed", check=check_id, slot=compiled.slot)
        return CheckOutcome(UNKNOWN)

"""Queries for check results: of an entity, of checks, and their age."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import entity_evaluation, state_store
from factbook.checks.results.entity_evaluation import (
    CheckCache,
    CheckSet,
    SlotStates,
)
from factbook.checks.results.state_store import find_flap_start, is_flapping
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import CHECKS, ENTITY
from factbook.checks.rules.rule_evaluation import Explainer, Explanation
from factbook.clock import iso
from factbook.facts import freshness, store
from factbook.storage import Database
from factbook.storage.database import render_counter

# States of checks that apply to the entity.
ABOUT_ENTITY: Final = frozenset({state.PASS, state.FAIL, state.UNKNOWN, state.INAPPLICABLE})
# Up to this many matches are all read and sorted; more are read in order of references.
_FEW: Final = 2_000
_SLOTS_READ: Final = 3  # attempts, if states move to another slot meanwhile
_READS: Final = 3  # attempts, if slots move meanwhile
_NO_FACTS_EXPLAINED: Final[Mapping[str, Any]] = {}
# Checks read per page: with a selective filter, a page may hold few results.
_MOST_CHECKS: Final = 20
_PAGE_PORTION: Final = 1_000


class ResultAge(NamedTuple):
    """The time that figures are from; `stale_sources` are down or overdue."""

    as_of: int
    stale_sources: list[str]

    def render(self) -> dict[str, Any]:
        """The age as shown."""
        shown: dict[str, Any] = {"asOf": iso(self.as_of)}
        return shown | ({"staleSources": self.stale_sources} if self.stale_sources else {})


class ResultAges(NamedTuple):
    """The ages of figures of any checks, from one read."""

    evaluated_at: int
    known: CheckSet
    database: Database

    def of(self, check_ids: Iterable[str] | None = None) -> ResultAge:
        """The age of figures for these checks, or for all checks."""
        return self.of_sources(self.known.sources_of(check_ids))

    def of_sources(self, sources: Iterable[str]) -> ResultAge:
        """The age of results based on these sources."""
        return read_age_of_facts(self.database, sources, self.evaluated_at)


def read_age_of_facts(database: Database, sources: Iterable[str], now: int) -> ResultAge:
    """The age of figures based on facts of these sources; runs no query."""
    since = freshness.freshness_of(database).not_renewed_since
    times = {source: at for source in sources if (at := since(source)) is not None}
    return ResultAge(min([now, *times.values()]), sorted(times))


async def read_result_age(database: Database, now: int) -> ResultAges:
    """The current ages; reads one row through an index."""
    known = await database.remembered.of(CheckCache).last_loaded(database)
    due_at = await state_store.find_oldest_due(database, now)
    return ResultAges(now if due_at is None else due_at, known, database)


async def read_age_of_checks(
    database: Database, check_ids: Iterable[str] | None, now: int
) -> ResultAge:
    """The age of figures for these checks, or for all checks."""
    return (await read_result_age(database, now)).of(check_ids)


# The stored states for each state word.
_STATES: Final[Mapping[str, Sequence[int]]] = {
    "pass": (state.PASS,),
    "fail": (state.FAIL,),
    "unknown": (state.UNKNOWN,),
    "exempt": tuple(one | state.EXEMPT for one in (state.PASS, state.FAIL, state.UNKNOWN)),
    "not-applicable": (state.OUT, state.INAPPLICABLE),
}


class CheckResult(NamedTuple):
    """The result of a check for an entity.

    `since` is None if unknown; `explanation` is None if the check doesn't apply to the entity.
    `is_stale`: the result is based on a value that could not be renewed.
    """

    check: Check
    state: int
    since: int | None
    is_flapping: bool
    explanation: Explanation | None
    is_stale: bool


class EntityResults(NamedTuple):
    """All check results of an entity; `owner` is '' without one."""

    entity_id: int
    ref: str
    owner: str
    results: list[CheckResult]


class ResultFilter(NamedTuple):
    """A filter of a check's entities; an empty member matches everything.

    `states` are state words, `owners` references ('' for entities without an owner);
    `changed_since` is the earliest time of a change.
    """

    states: Sequence[str] = ()
    owners: Sequence[str] = ()
    kind: str | None = None
    namespace: str | None = None
    changed_since: int | None = None


class CheckedRow(NamedTuple):
    """The state of a check for an entity; `stale` if based on outdated values."""

    ref: str
    entity_id: int
    owner: str
    state: int
    stale: bool = False


async def read_entity_results(
    database: Database,
    ref: str,
    now: int,
    *,
    only: Collection[str] = (),
    explained: Collection[int] = ABOUT_ENTITY,
) -> EntityResults | None:
    """The check results of the entity with this canonical reference; None if it doesn't exist.

    `only` limits the results to these check ids unless empty. `explained` are the states whose
    results are explained.
    """
    entity_id = await stored_entities.read_entity_id(database, ref)
    document = await stored_entities.read_collectable(database, ref)
    if entity_id is None or document is None:
        return None
    known, owner, states = await _read_stored_states(database, entity_id)
    own = await entity_evaluation.read_own_facts(database, entity_id)
    facts = {**await store.list_latest_by_ref(database, ref), **own}
    by_id = {id_: states[slot] for id_, slot in known.slots.items()}
    entity = CheckedEntity(ref, document, facts, by_id)
    entity.most_steps = known.steps_per_check
    times = await state_store.list_change_times(database, entity_id)
    has_stale = any(latest.kept for latest in facts.values())
    selected = [one for one in known.checks if not one.is_pending and (not only or one.id in only)]
    results = []
    for one in sorted(selected, key=lambda one: one.id):
        check, number, flips = one.compiled.check, by_id[one.id], times.get(one.id, [])
        recent = [at for at in flips if at >= find_flap_start(now)]
        is_about = number & ~state.EXEMPT in explained
        results.append(
            CheckResult(
                check,
                number,
                max(flips) if flips else known.in_effect_at.get(one.id),
                is_flapping(recent, now),
                known.explainer(one).explained(entity, now) if is_about else None,
                has_stale
                and number != state.OUT
                and any(
                    entity.is_kept(fact)
                    for _, rule in check.rules()
                    for fact in language.walk_references(rule)
                ),
            )
        )
    return EntityResults(entity_id, ref, owner, results)


async def list_check_rows(
    database: Database,
    check_id: str,
    wanted: ResultFilter,
    limit: int,
    after: str = "",
    last: str | None = None,
) -> list[CheckedRow]:
    """Up to `limit` entities of a check in effect, by reference, from one reference to another.

    Entities that the check is not about come only where `wanted.states` has "not-applicable".
    """
    condition, values = _make_state_condition(wanted)
    conditions, parameters = [condition], [check_id, after, *values]
    if last is not None:
        conditions.append("e.ref <= ?")
        parameters.append(last)
    for column, value in (("kind", wanted.kind), ("namespace", wanted.namespace)):
        if value is not None:
            conditions.append(f"e.{column} = ?")
            parameters.append(value.lower())
    if wanted.changed_since is not None:
        conditions.append(_CHANGED_SINCE)
        parameters.append(wanted.changed_since)
    sql = _OF_CHECK.replace("{}", " AND ".join(conditions))
    rows = await database.search(sql, (*parameters, limit))
    return [CheckedRow(ref, id_, owner, byte[0]) for ref, id_, owner, byte in rows]


async def count_check_rows(
    database: Database,
    check_id: str,
    wanted: ResultFilter,
    limit: int,
    after: str,
    number: int,
) -> list[CheckedRow]:
    """The rows of `list_check_rows`, given the `number` of entities with these states and owners.

    A few entities are found by state, many by reference: neither query reads the whole catalog.
    """
    if number <= _FEW:
        return await _list_few_rows(database, check_id, wanted, limit, after)
    found: list[CheckedRow] = []
    place: str | None = after
    while place is not None and len(found) < limit:
        last = await stored_entities.read_ref_further(database, place, _FEW)
        found += await list_check_rows(database, check_id, wanted, limit - len(found), place, last)
        place = last
    return found


async def _list_few_rows(
    database: Database, check_id: str, wanted: ResultFilter, limit: int, after: str
) -> list[CheckedRow]:
    condition, values = _make_state_condition(wanted)
    rows = await database.search(_BY_STATE.replace("{}", condition), (check_id, *values))
    refs = await stored_entities.read_refs_of_ids(database, [id_ for id_, _, _ in rows])
    found = [
        CheckedRow(refs[id_], id_, owner, byte[0])
        for id_, owner, byte in rows
        if refs.get(id_, "") > after
    ]
    return sorted(found)[:limit]


def _make_state_condition(wanted: ResultFilter) -> tuple[str, list[Any]]:
    words = wanted.states or ("pass", "fail", "unknown", "exempt")
    values: list[Any] = [bytes([one]) for word in words for one in _STATES[word]]
    places = ", ".join("?" * len(values))
    condition = f"SUBSTR(s.states, CAST(c.slot AS INTEGER), 1) IN ({places})"
    if wanted.owners:
        return f"{condition} AND s.owner IN LIST(?)", [*values, list(wanted.owners)]
    return condition, values


async def _read_stored_states(
    database: Database, entity_id: int
) -> tuple[CheckSet, str, bytearray]:
    """The checks, and the owner and states of an entity, at the same revision."""
    cache = database.remembered.of(CheckCache)
    known = await cache.loaded(database)
    for _ in range(_SLOTS_READ):
        row = await database.one(_OF_ENTITY, (entity_id,))
        revision, owner, states = row or (known.revision, "", b"")
        if revision == known.revision:
            break
        known = await cache.loaded(database)
    return known, owner, bytearray(b"\0" + states).ljust(known.width + 1, b"\0")


class FailingCounts(NamedTuple):
    """Numbers of an entity's checks that pass, fail and are unknown."""

    passing: int
    failing: int
    unknown: int


async def count_failing(database: Database, entity_ids: Sequence[int]) -> dict[int, FailingCounts]:
    """The counts of the entities that have check states."""
    cache = database.remembered.of(CheckCache)
    counts: dict[int, FailingCounts] = {}
    for _ in range(_READS):
        known = await cache.loaded(database)
        if known.is_empty:
            return {}
        stored = await state_store.read_states_of(database, entity_ids)
        slots = tuple(known.slots.values())
        counts = {}
        for id_, row in stored.items():
            padded = row.padded(known.width)
            states = bytes(padded[slot] for slot in slots)
            passing, failing, unknown = map(states.count, (state.PASS, state.FAIL, state.UNKNOWN))
            counts[id_] = FailingCounts(passing, failing, unknown)
        if await check_store.revision(database) == known.revision:
            break
    return counts


class ExplainedRow(NamedTuple):
    """A result with the title of its entity, '' without one.

    `since` is None if the state never changed; `explanation` is None if the check doesn't apply to
    the entity.
    """

    row: CheckedRow
    title: str
    since: int | None
    explanation: Explanation | None


async def explain_rows(
    database: Database, check: Check, rows: Sequence[CheckedRow], now: int
) -> list[ExplainedRow]:
    """Explain rows, in their order; facts and documents are read together."""
    ids = [row.entity_id for row in rows]
    found = stored_entities.decode_collectable(
        await database.all(*stored_entities.entities_among_sql(stored_entities.EVERY_ENTITY, ids))
    )
    documents = {id_: document for id_, _, document in found}
    facts = await entity_evaluation.read_facts_of(database, _list_read_sources(check), ids)
    known = await database.remembered.of(CheckCache).loaded(database)
    states = await state_store.read_states_of(database, ids)
    times = await state_store.find_last_changes_of(database, check.id, ids)
    explained, explainer = [], Explainer(check)
    for row in rows:
        id_, document = row.entity_id, documents.get(row.entity_id, _NO_FACTS_EXPLAINED)
        entity = CheckedEntity(row.ref, document, facts.get(id_, {}))
        entity.most_steps = known.steps_per_check
        if id_ in states:
            entity.states = SlotStates(known.slots, states[id_].padded(known.width))
        is_about = row.state & ~state.EXEMPT not in (state.NONE, state.OUT)
        explanation = explainer.explained(entity, now) if is_about and document else None
        title = document.get("metadata", _NO_FACTS_EXPLAINED).get("title")
        title = title if isinstance(title, str) else ""
        explained.append(ExplainedRow(row, title, times.get(id_), explanation))
    return explained


def _list_read_sources(check: Check) -> list[str]:
    """The data sources that the rules and message templates of a check read."""
    facts = [one for _, rule in check.rules() for one in language.walk_references(rule)]
    facts += [
        one
        for _, text in check.templates()
        for one in check_definition.parse_template(text).facts()
    ]
    return sorted({one.source for one in facts} - {ENTITY, CHECKS})


class ResultPlace(NamedTuple):
    """A position among results: a check, and the reference of the last entity read."""

    check_id: str = ""
    ref: str = ""


class CheckResultPage(NamedTuple):
    """Results with their check ids, and the next position; None at the end."""

    rows: list[tuple[str, CheckedRow]]
    next: ResultPlace | None


async def read_result_page(
    database: Database, only: Sequence[str], wanted: ResultFilter, place: ResultPlace, limit: int
) -> CheckResultPage:
    """Up to `limit` results from a position on, of all checks in effect if `only` is empty."""
    ids = [
        one.id
        for one in await check_store.everything(database)
        if one.slot is not None and (not only or one.id in only) and one.id >= place.check_id
    ]
    rows: list[tuple[str, CheckedRow]] = []
    for looked, id_ in enumerate(ids):
        if looked == _MOST_CHECKS or len(rows) == limit:
            return CheckResultPage(rows, ResultPlace(id_))
        after = place.ref if id_ == place.check_id else ""
        room = limit - len(rows)
        found = await list_check_rows(database, id_, wanted, room + 1, after)
        rows += [(id_, row) for row in await _mark_rows(database, id_, found[:room])]
        if len(found) > room:
            return CheckResultPage(rows, ResultPlace(id_, found[room - 1].ref))
    return CheckResultPage(rows, None)


async def read_result_pages(
    database: Database, only: Sequence[str], wanted: ResultFilter
) -> AsyncIterator[list[tuple[str, CheckedRow]]]:
    """All results, in batches."""
    place: ResultPlace | None = ResultPlace()
    while place is not None:
        rows, place = await read_result_page(database, only, wanted, place, _PAGE_PORTION)
        yield rows


async def _mark_rows(
    database: Database, check_id: str, rows: Sequence[CheckedRow]
) -> list[CheckedRow]:
    """The rows, marked stale if the check reads a value that could not be renewed."""
    known = await database.remembered.of(CheckCache).loaded(database)
    compiled = next((one.compiled for one in known.checks if one.id == check_id), None)
    reads = defaultdict[str, set[str]](set)
    for _, rule in compiled.check.rules() if compiled else ():
        for fact in language.walk_references(rule):
            reads[fact.source].add(fact.fact)
    ids = [row.entity_id for row in rows]
    stale = await store.find_stale_entities(database, reads, ids)
    return [row._replace(stale=True) if row.entity_id in stale else row for row in rows]


_OF_ENTITY = """
SELECT {revision}, s.owner, s.states FROM check_states s WHERE s.entity_id = ?
""".replace("{revision}", render_counter(publications.DEFINITIONS_REVISION))

_OF_CHECK = """
SELECT e.ref, e.id, s.owner, SUBSTR(s.states, CAST(c.slot AS INTEGER), 1)
FROM checks c, check_states s, entities e
WHERE c.id = ? AND e.ref > ? AND s.entity_id = e.id AND {} ORDER BY e.ref LIMIT ?
"""

_BY_STATE = """
SELECT s.entity_id, s.owner, SUBSTR(s.states, CAST(c.slot AS INTEGER), 1)
FROM checks c, check_states s WHERE c.id = ? AND {}
"""

_CHANGED_SINCE = """EXISTS (
    SELECT 1 FROM check_changes g WHERE g.entity_id = e.id AND g.check_id = c.id AND g.at >= ?
)"""

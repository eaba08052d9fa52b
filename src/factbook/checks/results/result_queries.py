"""Results of checks as interfaces read them: of one entity, of one check, and their changes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.definitions import definition_lock
from factbook.checks.maintenance import latest_facts
from factbook.checks.maintenance.check_set import CheckCache, CheckSet, EvaluatedCheck
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.explanation import Explanation
from factbook.checks.states import change_store
from factbook.checks.states.flaps import is_flapping, looks_back_to
from factbook.facts import store
from factbook.storage import Database, counters

# The stored states that a word of an interface stands for.
_STATES: Final[Mapping[str, Sequence[int]]] = {
    "pass": (state.PASS,),
    "fail": (state.FAIL,),
    "unknown": (state.UNKNOWN,),
    "exempt": tuple(one | state.EXEMPT for one in (state.PASS, state.FAIL, state.UNKNOWN)),
    "not-applicable": (state.OUT, state.INAPPLICABLE),
}
# The states of a check that is about the entity.
ABOUT_ENTITY: Final = frozenset({state.PASS, state.FAIL, state.UNKNOWN, state.INAPPLICABLE})
# Of fewer entities every one is read to find the first of them; of more, those in their order.
_FEW: Final = 2_000
_SLOTS_READ: Final = 3  # times, of states that were moved to another slot meanwhile


class CheckResult(NamedTuple):
    """The result of a check for an entity.

    `since` is None if nobody knows; `explanation` is None if the check is not about the entity. It
    `is_stale` if it rests on a value that could not be renewed.
    """

    check: Check
    state: int
    since: int | None
    is_flapping: bool
    explanation: Explanation | None
    is_stale: bool


class EntityResults(NamedTuple):
    """The results of all checks for one entity; `owner` is '' without one."""

    entity_id: int
    ref: str
    owner: str
    results: list[CheckResult]


class ResultFilter(NamedTuple):
    """A filter of the entities of a check; an empty part matches everything.

    `states` are words of interfaces, `owners` references, '' for entities without an owner;
    `changed_since` is the earliest time of a change.
    """

    states: Sequence[str] = ()
    owners: Sequence[str] = ()
    kind: str | None = None
    namespace: str | None = None
    changed_since: int | None = None


class CheckedRow(NamedTuple):
    """The state of a check for one entity; `stale` if it rests on values that are old."""

    ref: str
    entity_id: int
    owner: str
    state: int
    stale: bool = False


async def of_entity(
    database: Database,
    ref: str,
    now: int,
    *,
    only: Collection[str] = (),
    explained: Collection[int] = ABOUT_ENTITY,
) -> EntityResults | None:
    """The results of checks for the entity with this canonical reference; None without entity.

    `only` are the ids of the wanted checks, all if it is empty. `explained` are the states whose
    results are explained.
    """
    entity_id = await collectable.id_of(database, ref)
    document = await collectable.entity(database, ref)
    if entity_id is None or document is None:
        return None
    known, owner, states = await _states(database, entity_id)
    own = await latest_facts.own_of(database, entity_id)
    facts = {**await store.latest_of_ref(database, ref), **own}
    by_id = {id_: states[slot] for id_, slot in known.slots.items()}
    entity = CheckedEntity(ref, document, facts, by_id)
    entity.most_steps = known.steps_per_check
    times = await change_store.times(database, entity_id)
    has_stale = any(latest.kept for latest in facts.values())
    results = []
    for one in _wanted(known, only):
        found, flips = by_id[one.id], times.get(one.id, [])
        recent = [at for at in flips if at >= looks_back_to(now)]
        is_about = found & ~state.EXEMPT in explained
        results.append(
            CheckResult(
                one.compiled.check,
                found,
                max(flips) if flips else known.in_effect_at.get(one.id),
                is_flapping(recent, now),
                known.explainer(one).explained(entity, now) if is_about else None,
                has_stale and found != state.OUT and _reads_stale(one.compiled.check, entity),
            )
        )
    return EntityResults(entity_id, ref, owner, results)


def _reads_stale(check: Check, entity: CheckedEntity) -> bool:
    facts = (fact for _, rule in check.rules() for fact in language.walk_references(rule))
    return any(map(entity.is_kept, facts))


async def of_check(
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
    condition, values = _in_states(wanted)
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


async def counted_of_check(
    database: Database,
    check_id: str,
    wanted: ResultFilter,
    limit: int,
    after: str,
    number: int,
) -> list[CheckedRow]:
    """The same where it is known that `number` entities have the wanted states and owners.

    Few are found by their states, and of many the first ones by their references: neither reads
    the whole catalog in the order of the other.
    """
    if number <= _FEW:
        return await _few(database, check_id, wanted, limit, after)
    found: list[CheckedRow] = []
    place: str | None = after
    while place is not None and len(found) < limit:
        last = await collectable.ref_further(database, place, _FEW)
        found += await of_check(database, check_id, wanted, limit - len(found), place, last)
        place = last
    return found


async def _few(
    database: Database, check_id: str, wanted: ResultFilter, limit: int, after: str
) -> list[CheckedRow]:
    condition, values = _in_states(wanted)
    rows = await database.search(_BY_STATE.replace("{}", condition), (check_id, *values))
    refs = await collectable.refs_of_ids(database, [id_ for id_, _, _ in rows])
    found = [
        CheckedRow(refs[id_], id_, owner, byte[0])
        for id_, owner, byte in rows
        if refs.get(id_, "") > after
    ]
    return sorted(found)[:limit]


def _in_states(wanted: ResultFilter) -> tuple[str, list[Any]]:
    """The condition for the wanted states and owners."""
    words = wanted.states or ("pass", "fail", "unknown", "exempt")
    values: list[Any] = [bytes([one]) for word in words for one in _STATES[word]]
    condition = f"SUBSTR(s.states, CAST(c.slot AS INTEGER), 1) IN ({_places(values)})"
    if wanted.owners:
        return f"{condition} AND s.owner IN LIST(?)", [*values, list(wanted.owners)]
    return condition, values


async def _states(database: Database, entity_id: int) -> tuple[CheckSet, str, bytearray]:
    """The checks, and the owner and states of an entity, of one moment."""
    cache = database.remembered.of(CheckCache)
    known = await cache.loaded(database)
    for _ in range(_SLOTS_READ):
        row = await database.one(_OF_ENTITY, (entity_id,))
        revision, owner, states = row or (known.revision, "", b"")
        if revision == known.revision:
            break
        known = await cache.loaded(database)
    return known, owner, bytearray(b"\0" + states).ljust(known.width + 1, b"\0")


def _wanted(known: CheckSet, only: Collection[str]) -> list[EvaluatedCheck]:
    found = [one for one in known.checks if not one.is_pending and (not only or one.id in only)]
    return sorted(found, key=lambda one: one.id)


def _places(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


_OF_ENTITY = """
SELECT {revision}, s.owner, s.states FROM check_states s WHERE s.entity_id = ?
""".replace("{revision}", counters.expression(definition_lock.REVISION))

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

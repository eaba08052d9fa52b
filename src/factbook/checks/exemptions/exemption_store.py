"""The store of exemptions: requests, decisions, and ends that pass.

Each step is told as an event in its own transaction, and touches the entity, which is evaluated
with it.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from factbook.catalog.store import by_ref, collectable
from factbook.checks.definitions import definition_lock
from factbook.checks.definitions.scorecard import DEFAULT_DAYS, ExemptionRules
from factbook.checks.exemptions import exemption
from factbook.checks.exemptions.exemption import (
    Decision,
    Exemption,
    ExemptionActor,
    ExemptionRequest,
)
from factbook.clock import DAY
from factbook.errors import ConflictError, NotFoundError
from factbook.events import event
from factbook.events import store as events
from factbook.storage import Database, Row, Transaction

# The topic of the entities that an exemption is about.
TOUCHED: Final = ("exemptions",)
# Held alone by who lets exemptions follow entities to other references, and shared by who asks.
MOVES: Final = "moves of exemptions"
# How long before its end an exemption is announced to end.
ANNOUNCED: Final = 7 * DAY
_AT_ONCE: Final = 500


class EntityExemptions(NamedTuple):
    """Checks and scorecards that an entity is exempt from."""

    checks: frozenset[str] = frozenset()
    scorecards: frozenset[str] = frozenset()


NOT_EXEMPT: Final = EntityExemptions()


class ExemptionFilter(NamedTuple):
    """A filter of exemptions; None matches everything."""

    state: str | None = None
    entity: str | None = None
    check: str | None = None
    scorecard: str | None = None


def request(
    transaction: Transaction,
    wanted: ExemptionRequest,
    rules: Iterable[ExemptionRules],
    actor: ExemptionActor,
    now: int,
    usual_days: int = DEFAULT_DAYS,
) -> Exemption:
    """Store a request; `rules` are those of the scorecards with the check.

    Raises InvalidItemsError if a rule forbids it, NotFoundError for an unknown entity, and
    ConflictError if there is an open exemption of the same.
    """
    exemption.check_rules(wanted, rules, usual_days)
    transaction.lock(MOVES, shared=True)
    transaction.lock(f"exemptions of {wanted.entity}")
    if not collectable.ids_of(transaction, [wanted.entity]):
        raise by_ref.unknown_within(transaction, wanted.entity)
    for other in _read(transaction.all(_OPEN, (wanted.entity,))):
        if (other.check, other.scorecard) == (wanted.check, wanted.scorecard):
            raise ConflictError(
                f"There is already an exemption of {wanted.entity} from {wanted.subject}, "
                f"{other.state}: {other.id}."
            )
    made = Exemption(
        f"{now:012x}{secrets.token_hex(4)}",
        *wanted[:4],
        wanted.link,
        wanted.starts_at,
        wanted.until,
        "requested",
        actor.ref,
        now,
    )
    transaction.run(_ADD, made[:11])
    _tell(transaction, "requested", [made], now)
    return made


def decide(
    transaction: Transaction,
    exemption_id: str,
    decision: Decision,
    rules: Iterable[ExemptionRules],
    actor: ExemptionActor,
    now: int,
    *,
    comment: str | None = None,
    own: bool = False,
) -> Exemption:
    """Decide on an exemption; raises NotFoundError, and the errors of `exemption.decided`."""
    transaction.lock(f"exemption {exemption_id}")
    before = within(transaction, exemption_id)
    after = exemption.decided(before, decision, actor, rules, now, comment=comment, own=own)
    decided = (after.state, after.decided_by, after.decided_at, after.comment, after.id)
    transaction.run(_DECIDE, decided)
    _touch(transaction, [after])
    _tell(transaction, "decided", [after], now)
    return after


def begin(transaction: Transaction, now: int) -> list[Exemption]:
    """Have entities evaluated for some of the exemptions that have begun; returns these."""
    definition_lock.share(transaction)
    found = _read(transaction.all(_BEGUN, (now, _AT_ONCE)))
    rows = _locked(transaction, _NOTE_BEGUN, found, now)
    begun = [one for one in found if one.id in rows]
    _touch(transaction, begun)
    return begun


def expire(transaction: Transaction, now: int) -> list[Exemption]:
    """Expire some of the exemptions and requests whose end has passed; returns them."""
    definition_lock.share(transaction)
    found = _read(transaction.all(_ENDED, (now, _AT_ONCE)))
    expired = _locked(transaction, _EXPIRE, found)
    gone = [one._replace(state="expired") for one in found if one.id in expired]
    _touch(transaction, gone)
    _tell(transaction, "expired", gone, now)
    return gone


def announce(transaction: Transaction, now: int) -> list[Exemption]:
    """Tell of some of the exemptions that end within a week, each once; returns them."""
    found = _read(transaction.all(_ENDING, (now + ANNOUNCED, now, _AT_ONCE)))
    if found:
        transaction.run(_ANNOUNCED, (now, [one.id for one in found]))
        _tell(transaction, "expiring", found, now)
    return found


def delete_of(
    transaction: Transaction, what: Literal["check", "scorecard"], subject_id: str
) -> None:
    """Delete the exemptions of a check or a scorecard that is deleted."""
    transaction.run(_DELETE[what], (subject_id,))


def holding(
    transaction: Transaction, entity_ids: Sequence[int], now: int
) -> dict[int, EntityExemptions]:
    """Exemptions of entities that hold now; entities without one are left out."""
    found: dict[int, list[Exemption]] = {}
    for entity_id, *row in transaction.all(_APPROVED, (list(entity_ids),)):
        one = Exemption(*row)
        if one.holds(now):
            found.setdefault(entity_id, []).append(one)
    return {id_: _together(exemptions) for id_, exemptions in found.items()}


def within(transaction: Transaction, exemption_id: str) -> Exemption:
    """The exemption with this id; raises NotFoundError."""
    row = transaction.one(_ONE, (exemption_id,))
    if row is None:
        raise _missing(exemption_id)
    return Exemption(*row)


async def one(database: Database, exemption_id: str) -> Exemption:
    """The exemption with this id; raises NotFoundError."""
    row = await database.one(_ONE, (exemption_id,))
    if row is None:
        raise _missing(exemption_id)
    return Exemption(*row)


async def page(
    database: Database, wanted: ExemptionFilter, limit: int, after: tuple[int, str] | None = None
) -> list[Exemption]:
    """Up to `limit` exemptions, newest first; `after` is the request and id of the last before."""
    conditions, values = [], list[object]()
    columns = ("state", "entity_ref", "check_id", "scorecard_id")
    for column, value in zip(columns, wanted, strict=True):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if after is not None:
        conditions.append("(requested_at, id) < (?, ?)")
        values += after
    where = " AND ".join(conditions) or "1 = 1"
    return _read(await database.search(_PAGE.replace("{}", where), (*values, limit)))


def _locked(
    transaction: Transaction, statement: str, found: Iterable[Exemption], *values: object
) -> set[str]:
    """The ids of the exemptions that a statement changes, once nobody else decides on them."""
    ids = sorted(one.id for one in found)
    for id_ in ids:
        transaction.lock(f"exemption {id_}")
    return {id_ for (id_,) in transaction.all(statement, (*values, ids))} if ids else set()


def _together(held: Sequence[Exemption]) -> EntityExemptions:
    checks = frozenset(one.check for one in held if one.check)
    return EntityExemptions(checks, frozenset(one.scorecard for one in held if one.scorecard))


def _touch(transaction: Transaction, exemptions: Iterable[Exemption]) -> None:
    # By the references of now: an entity may have moved since the exemptions were read.
    rows = transaction.all(_ENTITIES, ([one.id for one in exemptions],))
    transaction.touch(TOUCHED, (id_ for (id_,) in rows))


def _tell(
    transaction: Transaction,
    what: event.ExemptionStep,
    exemptions: Iterable[Exemption],
    now: int,
) -> None:
    told = [event.of_exemption(what, one.entity, one.render()) for one in exemptions]
    events.append(transaction, told, now)


def _missing(exemption_id: str) -> NotFoundError:
    return NotFoundError(f'There is no exemption "{exemption_id}".')


def _read(rows: Iterable[Row]) -> list[Exemption]:
    return [Exemption(*row) for row in rows]


_PAGE: Final = """
SELECT id, check_id, scorecard_id, entity_ref, reason, link, starts_at, ends_at, state,
    requested_by, requested_at, decided_by, decided_at, comment, began_at
FROM exemptions WHERE {} ORDER BY requested_at DESC, id DESC LIMIT ?
"""

_EVERY: Final = _PAGE.partition(" WHERE")[0]

_ONE: Final = _EVERY + " WHERE id = ?"

_OPEN: Final = _EVERY + " WHERE entity_ref = ? AND state IN ('requested', 'approved')"

_ENDED: Final = f"""{_EVERY}
WHERE state IN ('requested', 'approved') AND ends_at <= ? ORDER BY ends_at LIMIT ?
"""

_BEGUN: Final = f"""{_EVERY}
WHERE state = 'approved' AND began_at IS NULL AND starts_at <= ? ORDER BY starts_at LIMIT ?
"""

# The first condition makes the index serve.
_ENDING: Final = f"""{_EVERY}
WHERE state IN ('requested', 'approved') AND state = 'approved' AND ends_at <= ? AND ends_at > ?
    AND warned_at IS NULL ORDER BY ends_at LIMIT ?
"""

_APPROVED: Final = """
SELECT e.id, x.id, x.check_id, x.scorecard_id, x.entity_ref, x.reason, x.link, x.starts_at,
    x.ends_at, x.state, x.requested_by, x.requested_at, x.decided_by, x.decided_at, x.comment,
    x.began_at
FROM entities e JOIN exemptions x ON x.entity_ref = e.ref AND x.state = 'approved'
WHERE e.id IN LIST(?)
"""

_ENTITIES: Final = """
SELECT e.id FROM exemptions x JOIN entities e ON e.ref = x.entity_ref WHERE x.id IN LIST(?)
"""

_ADD: Final = """
INSERT INTO exemptions (id, check_id, scorecard_id, entity_ref, reason, link, starts_at, ends_at,
    state, requested_by, requested_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_DECIDE: Final = """
UPDATE exemptions SET state = ?, decided_by = ?, decided_at = ?, comment = ? WHERE id = ?
"""

_EXPIRE: Final = """
UPDATE exemptions SET state = 'expired'
WHERE id IN LIST(?) AND state IN ('requested', 'approved') RETURNING id
"""

_NOTE_BEGUN: Final = """
UPDATE exemptions SET began_at = ?
WHERE id IN LIST(?) AND state = 'approved' AND began_at IS NULL RETURNING id
"""

_ANNOUNCED: Final = "UPDATE exemptions SET warned_at = ? WHERE id IN LIST(?)"

_DELETE: Final[Mapping[str, str]] = {
    "check": "DELETE FROM exemptions WHERE check_id = ?",
    "scorecard": "DELETE FROM exemptions WHERE scorecard_id = ?",
}

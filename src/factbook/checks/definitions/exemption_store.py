"""Exemptions of entities from checks and scorecards: rules and store.

Each step touches the entity, which is evaluated in the same transaction. All but the beginning
append an event.
Exemptions follow an entity to a new reference.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

from factbook import clock
from factbook.auth.permissions import EXEMPTION_DECIDE
from factbook.catalog.store import revisions, stored_entities
from factbook.checks import document_readers
from factbook.checks.definitions import publications
from factbook.checks.definitions.scorecard import DEFAULT_DAYS, NO_RULES, ExemptionRules
from factbook.checks.document_readers import DocumentMember
from factbook.clock import DAY, iso_or_none
from factbook.errors import (
    ConflictError,
    InputError,
    InvalidItemsError,
    NotAllowedError,
    NotFoundError,
    problem,
)
from factbook.events.store import ExemptionStep, append_events, make_exemption_row
from factbook.facts.datasource import Report
from factbook.storage import Database, Row, Transaction

_LONGEST_COMMENT: Final = 2_000
# The touched topic for entities whose exemptions changed.
EXEMPTIONS_TOPIC: Final = ("exemptions",)
# Held exclusively when exemptions follow renamed entities, shared by requests.
MOVES_LOCK: Final = "moves of exemptions"
# How long before its end an exemption is announced as ending.
ANNOUNCED_AHEAD: Final = 7 * DAY
_AT_ONCE: Final = 500


ExemptionState = Literal["requested", "approved", "denied", "revoked", "expired"]


Decision = Literal["approve", "deny", "revoke"]


EXEMPTION_STATES: Final[tuple[ExemptionState, ...]] = get_args(ExemptionState)


# The next state of an exemption, by current state and decision.
_STATE_AFTER: Final[Mapping[tuple[str, str], ExemptionState]] = {
    ("requested", "approve"): "approved",
    ("requested", "deny"): "denied",
    ("approved", "revoke"): "revoked",
}


class ExemptionRequest(NamedTuple):
    """A request to exempt an entity; times in milliseconds, `until` None without an end."""

    check: str | None
    scorecard: str | None
    entity: str
    reason: str
    starts_at: int
    until: int | None
    link: str | None = None

    @property
    def subject(self) -> str:
        """The check or scorecard, in words."""
        return f"check {self.check}" if self.check else f"scorecard {self.scorecard}"


class Exemption(NamedTuple):
    """A stored exemption."""

    id: str
    check: str | None
    scorecard: str | None
    entity: str
    reason: str
    link: str | None
    starts_at: int
    until: int | None
    state: ExemptionState
    requested_by: str
    requested_at: int
    decided_by: str | None = None
    decided_at: int | None = None
    comment: str | None = None
    began_at: int | None = None

    def holds(self, now: int) -> bool:
        """Return true if the exemption is active at `now`."""
        if self.state != "approved" or not self._has_begun(now):
            return False
        return self.until is None or now < self.until

    def due(self, now: int) -> int | None:
        """The next time at which `holds` changes; None if never."""
        if self.state != "approved":
            return None
        return self.until if self._has_begun(now) else self.starts_at

    def _has_begun(self, now: int) -> bool:
        # Begun stays begun, even if another process began it and the clock here is behind.
        return self.began_at is not None or self.starts_at <= now

    def render(self) -> dict[str, Any]:
        """The exemption as every interface shows it, without empty members."""
        shown = {
            "id": self.id,
            "check": self.check,
            "scorecard": self.scorecard,
            "entity": self.entity,
            "reason": self.reason,
            "link": self.link,
            "from": iso_or_none(self.starts_at),
            "until": iso_or_none(self.until),
            "state": self.state,
            "requestedBy": self.requested_by,
            "requestedAt": iso_or_none(self.requested_at),
            "decidedBy": self.decided_by,
            "decidedAt": iso_or_none(self.decided_at),
            "comment": self.comment,
        }
        return {name: value for name, value in shown.items() if value is not None}


class ExemptionActor(NamedTuple):
    """An actor: a user reference, its groups, and what its permissions allow.

    `owns_subject`: one of the groups owns the check or scorecard, and the actor may write the
    definitions of its groups.
    """

    ref: str
    groups: frozenset[str] = frozenset()
    may_request: bool = False
    may_decide: bool = False
    owns_subject: bool = False


def parse_exemption_request(document: object, now: int) -> ExemptionRequest:
    """Parse a request; `from` and `until` are times or days, both days inclusive.

    Raises InvalidItemsError with every problem and its path.
    """

    def further(values: Mapping[str, Any], report: Report) -> None:
        if len(values.keys() & {"check", "scorecard"}) != 1:
            report("check", "has to be given, or `scorecard`, and not both")
        until = values.get("until")
        if until is None and isinstance(document, dict) and "until" in document:
            report("until", document_readers.EMPTY_GUARD)
        if until is not None and until <= max(now, values.get("starts_at", 0)):
            report("until", "has to be in the future, and after the start")

    values = document_readers.read_document(document, _EXEMPTION_MEMBERS, "exemption", further)
    blank = {"check": None, "scorecard": None, "starts_at": now, "until": None}
    return ExemptionRequest(**{**blank, **values})


def check_exemption_rules(
    request: ExemptionRequest, rules: Iterable[ExemptionRules], usual_days: int = DEFAULT_DAYS
) -> None:
    """Raise InvalidItemsError unless every scorecard with the check allows the request."""
    problems = [
        problem(path, message)
        for one in tuple(rules) or (NO_RULES,)
        for path, message in _list_broken_rules(request, one, usual_days)
    ]
    if problems:
        raise InvalidItemsError(
            [one for place, one in enumerate(problems) if one not in problems[:place]]
        )


def may_request_exemption(actor: ExemptionActor, owners: Collection[str]) -> bool:
    """Return true if the person may request exemptions for entities of `owners`."""
    return actor.may_request or actor.ref in owners or not actor.groups.isdisjoint(owners)


def check_requester(actor: ExemptionActor, owners: Collection[str]) -> None:
    """Raise NotAllowedError unless the person may request exemptions for these owners."""
    if not may_request_exemption(actor, owners):
        raise NotAllowedError(
            "Asking for an exemption needs the permission to request exemptions, or to be a "
            "member of the group that owns the entity."
        )


def may_decide_exemption(actor: ExemptionActor, rules: Iterable[ExemptionRules]) -> bool:
    """Return true if the rules that count let the person decide."""
    try:
        _check_approver(actor, rules)
    except NotAllowedError:
        return False
    return True


def apply_decision(
    exemption: Exemption,
    decision: Decision,
    actor: ExemptionActor,
    rules: Iterable[ExemptionRules],
    now: int,
    *,
    comment: str | None = None,
    own: bool = False,
) -> Exemption:
    """The exemption after a decision; `own` lets people approve their own requests.

    Raises ConflictError if the exemption's state no longer allows the decision, NotAllowedError
    unless the person is an approver, and InputError if the comment is too long.
    """
    if comment is not None and len(comment) > _LONGEST_COMMENT:
        raise InputError(f"comment: can have {_LONGEST_COMMENT} characters at most.")
    _check_approver(actor, rules)
    if decision == "approve" and not own and actor.ref == exemption.requested_by:
        raise NotAllowedError("Somebody other than the requester has to approve an exemption.")
    after = _STATE_AFTER.get((exemption.state, decision))
    if after is None:
        raise ConflictError(
            f"This exemption is {exemption.state}; it is too late to {decision} it."
            if exemption.state != "requested"
            else f"This exemption is not decided yet; deny it rather than {decision} it."
        )
    if decision == "approve" and exemption.until is not None and exemption.until <= now:
        raise ConflictError("The end of this exemption has passed; ask for a new one.")
    return exemption._replace(
        state=after, decided_by=actor.ref, decided_at=now, comment=comment or None
    )


def _list_broken_rules(
    request: ExemptionRequest, rules: ExemptionRules, usual_days: int
) -> Iterable[tuple[str, str]]:
    """(member, problem) of each rule that the request breaks."""
    most_days = rules.most_days(usual_days)
    if not rules.enabled:
        yield "check", "can't be exempt: a scorecard allows no exemptions"
    if request.until is None:
        if not rules.permanent:
            yield "until", "is required; an exemption without an end is not allowed here"
    elif most_days and request.until - request.starts_at > most_days * DAY:
        yield "until", f"can be at most {most_days} days after the start"


def _check_approver(actor: ExemptionActor, rules: Iterable[ExemptionRules]) -> None:
    """Raise NotAllowedError unless the person has the permission or every scorecard accepts it."""
    if actor.may_decide:
        return
    for one in tuple(rules) or (NO_RULES,):
        if one.approvers and not actor.groups & set(one.approvers):
            names = ", ".join(one.approvers)
            raise NotAllowedError(
                f"Members of {names} decide on exemptions here, or anyone with the permission "
                f"{EXEMPTION_DECIDE}."
            )
        if not one.approvers and not actor.owns_subject:
            raise NotAllowedError(
                f"Deciding on exemptions needs the permission {EXEMPTION_DECIDE}, or a group of "
                "yours that owns the check or scorecard."
            )


def _read_start(value: object, path: str, report: Report) -> int:
    """A time, or the start of a day."""
    found = _read_time(value)
    return document_readers.read_day(value, path, report) if found is None else found


def _read_end(value: object, path: str, report: Report) -> int | None:
    """A time, or the end of a day; None for an empty one, which is refused."""
    if value == "":
        return None
    found = _read_time(value)
    return document_readers.read_day(value, path, report) + DAY if found is None else found


def _read_time(value: object) -> int | None:
    return clock.milliseconds(value) if isinstance(value, str) else None


_EXEMPTION_MEMBERS: Final = (
    DocumentMember("check", "check", document_readers.read_identifier),
    DocumentMember("scorecard", "scorecard", document_readers.read_identifier),
    DocumentMember("entity", "entity", document_readers.read_entity_reference, required=True),
    DocumentMember("reason", "reason", document_readers.read_words, required=True),
    DocumentMember("link", "link", document_readers.read_address),
    DocumentMember("from", "starts_at", _read_start),
    DocumentMember("until", "until", _read_end),
)


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


def store_request(
    transaction: Transaction,
    wanted: ExemptionRequest,
    rules: Iterable[ExemptionRules],
    actor: ExemptionActor,
    now: int,
    usual_days: int = DEFAULT_DAYS,
) -> Exemption:
    """Store a request; `rules` are those of the scorecards with the check.

    Raises InvalidItemsError if a rule forbids the request, NotFoundError for an unknown entity, and
    ConflictError if an exemption for the same subject is open.
    """
    check_exemption_rules(wanted, rules, usual_days)
    transaction.lock(MOVES_LOCK, shared=True)
    transaction.lock(f"exemptions of {wanted.entity}")
    if not stored_entities.read_ids_of_refs(transaction, [wanted.entity]):
        raise stored_entities.make_unknown_error_within(transaction, wanted.entity)
    for other in _read_exemptions(transaction.all(_OPEN, (wanted.entity,))):
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
    transaction.run(_ADD_EXEMPTION, made[:11])
    _append_steps(transaction, "requested", [made], now)
    return made


def store_decision(
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
    """Decide on an exemption; raises NotFoundError, and the errors of `apply_decision`."""
    transaction.lock(f"exemption {exemption_id}")
    before = get_exemption_within(transaction, exemption_id)
    after = apply_decision(before, decision, actor, rules, now, comment=comment, own=own)
    decided = (after.state, after.decided_by, after.decided_at, after.comment, after.id)
    transaction.run(_DECIDE, decided)
    _touch_entities(transaction, [after])
    _append_steps(transaction, "decided", [after], now)
    return after


def begin_exemptions(transaction: Transaction, now: int) -> list[Exemption]:
    """Touch the entities of some exemptions that have begun; returns these exemptions."""
    publications.share_definitions(transaction)
    found = _read_exemptions(transaction.all(_BEGUN, (now, _AT_ONCE)))
    rows = _change_locked(transaction, _NOTE_BEGUN, found, now)
    begun = [one for one in found if one.id in rows]
    _touch_entities(transaction, begun)
    return begun


def expire_exemptions(transaction: Transaction, now: int) -> list[Exemption]:
    """Expire some of the exemptions and requests whose end has passed; returns them."""
    publications.share_definitions(transaction)
    found = _read_exemptions(transaction.all(_ENDED, (now, _AT_ONCE)))
    expired = _change_locked(transaction, _EXPIRE, found)
    gone = [one._replace(state="expired") for one in found if one.id in expired]
    _touch_entities(transaction, gone)
    _append_steps(transaction, "expired", gone, now)
    return gone


def announce_endings(transaction: Transaction, now: int) -> list[Exemption]:
    """Append events for some exemptions that end within a week, each once; returns them."""
    found = _read_exemptions(transaction.all(_ENDING, (now + ANNOUNCED_AHEAD, now, _AT_ONCE)))
    if found:
        transaction.run(_ANNOUNCED, (now, [one.id for one in found]))
        _append_steps(transaction, "expiring", found, now)
    return found


def delete_exemptions(
    transaction: Transaction, what: Literal["check", "scorecard"], subject_id: str
) -> None:
    """Delete the exemptions of a deleted check or scorecard."""
    transaction.run(_DELETE[what], (subject_id,))


def list_holding_exemptions(
    transaction: Transaction, entity_ids: Sequence[int], now: int
) -> dict[int, EntityExemptions]:
    """Active exemptions by entity; entities without any are left out."""
    holding: dict[int, list[Exemption]] = {}
    for entity_id, *row in transaction.all(_APPROVED, (list(entity_ids),)):
        exemption = Exemption(*row)
        if exemption.holds(now):
            holding.setdefault(entity_id, []).append(exemption)
    return {
        id_: EntityExemptions(
            frozenset(one.check for one in exemptions if one.check),
            frozenset(one.scorecard for one in exemptions if one.scorecard),
        )
        for id_, exemptions in holding.items()
    }


def get_exemption_within(transaction: Transaction, exemption_id: str) -> Exemption:
    """The exemption with this id; raises NotFoundError."""
    row = transaction.one(_ONE, (exemption_id,))
    if row is None:
        raise _no_exemption(exemption_id)
    return Exemption(*row)


async def get_exemption(database: Database, exemption_id: str) -> Exemption:
    """The exemption with this id; raises NotFoundError."""
    row = await database.one(_ONE, (exemption_id,))
    if row is None:
        raise _no_exemption(exemption_id)
    return Exemption(*row)


async def list_exemptions(
    database: Database, wanted: ExemptionFilter, limit: int, after: tuple[int, str] | None = None
) -> list[Exemption]:
    """Up to `limit` exemptions, newest first; `after` is (request time, id) of the previous one."""
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
    return _read_exemptions(
        await database.search(_PAGE_OF_EXEMPTIONS.replace("{}", where), (*values, limit))
    )


def _change_locked(
    transaction: Transaction, statement: str, found: Iterable[Exemption], *values: object
) -> set[str]:
    """Lock the exemptions, run the statement, and return the ids that it changed."""
    ids = sorted(one.id for one in found)
    for id_ in ids:
        transaction.lock(f"exemption {id_}")
    return {id_ for (id_,) in transaction.all(statement, (*values, ids))} if ids else set()


def _touch_entities(transaction: Transaction, exemptions: Iterable[Exemption]) -> None:
    # By current references: an entity may have been renamed since the exemptions were read.
    rows = transaction.all(_ENTITIES, ([one.id for one in exemptions],))
    transaction.touch(EXEMPTIONS_TOPIC, (id_ for (id_,) in rows))


def _append_steps(
    transaction: Transaction,
    what: ExemptionStep,
    exemptions: Iterable[Exemption],
    now: int,
) -> None:
    told = [make_exemption_row(what, one.entity, one.render()) for one in exemptions]
    append_events(transaction, told, now)


def _no_exemption(exemption_id: str) -> NotFoundError:
    return NotFoundError(f'There is no exemption "{exemption_id}".')


def _read_exemptions(rows: Iterable[Row]) -> list[Exemption]:
    return [Exemption(*row) for row in rows]


_PAGE_OF_EXEMPTIONS: Final = """
SELECT id, check_id, scorecard_id, entity_ref, reason, link, starts_at, ends_at, state,
    requested_by, requested_at, decided_by, decided_at, comment, began_at
FROM exemptions WHERE {} ORDER BY requested_at DESC, id DESC LIMIT ?
"""


_EVERY: Final = _PAGE_OF_EXEMPTIONS.partition(" WHERE")[0]


_ONE: Final = _EVERY + " WHERE id = ?"


_OPEN: Final = _EVERY + " WHERE entity_ref = ? AND state IN ('requested', 'approved')"


_ENDED: Final = f"""{_EVERY}
WHERE state IN ('requested', 'approved') AND ends_at <= ? ORDER BY ends_at LIMIT ?
"""


_BEGUN: Final = f"""{_EVERY}
WHERE state = 'approved' AND began_at IS NULL AND starts_at <= ? ORDER BY starts_at LIMIT ?
"""


# The first condition lets the index be used.
_ENDING: Final = f"""{_EVERY}
WHERE state IN ('requested', 'approved') AND state = 'approved' AND ends_at <= ? AND ends_at > ?
    AND warned_at IS NULL ORDER BY ends_at LIMIT ?
"""


def follow_moves(transaction: Transaction, moved: Mapping[str, int]) -> None:
    """Rename entities in exemptions; `moved` maps former references to entity ids.

    Exemptions of an entity that lost its reference and has no new one yet apply to nothing until
    then.
    """
    # Requests that found the entity by its former reference have committed once this is locked.
    transaction.lock(MOVES_LOCK)
    named = transaction.all(_NAMED, (list(moved),))
    now = revisions.read_removed_refs(transaction, {moved[ref] for _, ref in named})
    rows = [
        (now.get(moved[ref]) or revisions.make_aside_ref(ref, moved[ref]), id_)
        for id_, ref in named
    ]
    transaction.many(_RENAME, rows)


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

_ADD_EXEMPTION: Final = """
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

# By id, since an entity may have taken over another's reference; sorted to avoid deadlocks.
_NAMED: Final = "SELECT id, entity_ref FROM exemptions WHERE entity_ref IN LIST(?) ORDER BY id"

_RENAME: Final = "UPDATE exemptions SET entity_ref = ? WHERE id = ?"

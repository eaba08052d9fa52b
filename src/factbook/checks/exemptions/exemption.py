"""Exemptions of an entity from a check or a scorecard: what may be asked, and by whom decided.

requested ──→ approved ──→ revoked
    │             └──────→ expired
    ├──→ denied
    └──→ expired, where its end passes undecided
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from factbook import clock
from factbook.auth.permissions import EXEMPTION_DECIDE
from factbook.checks import document_readers
from factbook.checks.definitions.scorecard import DEFAULT_DAYS, NO_RULES, ExemptionRules
from factbook.checks.document_readers import DocumentMember
from factbook.clock import DAY, iso_or_none
from factbook.errors import ConflictError, InputError, InvalidItemsError, NotAllowedError, problem
from factbook.facts.members import Report

ExemptionState = Literal["requested", "approved", "denied", "revoked", "expired"]
Decision = Literal["approve", "deny", "revoke"]

STATES: Final[tuple[ExemptionState, ...]] = get_args(ExemptionState)
# What becomes of an exemption, by its state and the decision.
_AFTER: Final[Mapping[tuple[str, str], ExemptionState]] = {
    ("requested", "approve"): "approved",
    ("requested", "deny"): "denied",
    ("approved", "revoke"): "revoked",
}
_LONGEST_COMMENT: Final = 2_000


class ExemptionRequest(NamedTuple):
    """A wish to exempt an entity; times are milliseconds, `until` None of one without an end."""

    check: str | None
    scorecard: str | None
    entity: str
    reason: str
    starts_at: int
    until: int | None
    link: str | None = None

    @property
    def subject(self) -> str:
        """The check or scorecard that it is about, in words."""
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
        """Return true if it exempts the entity by now."""
        if self.state != "approved" or not self._has_begun(now):
            return False
        return self.until is None or now < self.until

    def due(self, now: int) -> int | None:
        """The next time at which `holds` answers otherwise; None if never."""
        if self.state != "approved":
            return None
        return self.until if self._has_begun(now) else self.starts_at

    def _has_begun(self, now: int) -> bool:
        # What another process has let begin stays so, though the clock here may be behind.
        return self.began_at is not None or self.starts_at <= now

    def render(self) -> dict[str, Any]:
        """The exemption as every interface shows it, without what is not given."""
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
    """An actor: a user reference, the groups it is a member of, and what its permissions allow.

    `owns_subject` if one of the groups owns the check or scorecard, and the actor may write what
    its groups own.
    """

    ref: str
    groups: frozenset[str] = frozenset()
    may_request: bool = False
    may_decide: bool = False
    owns_subject: bool = False


def parse(document: object, now: int) -> ExemptionRequest:
    """The request in a document; `from` and `until` are times, or days that are part of it.

    Raises InvalidItemsError with every problem and its path.
    """

    def further(values: Mapping[str, Any], report: Report) -> None:
        if len(values.keys() & {"check", "scorecard"}) != 1:
            report("check", "has to be given, or `scorecard`, and not both")
        until = values.get("until")
        if until is None and isinstance(document, dict) and "until" in document:
            report("until", document_readers.EMPTY_GUARD)
        if until is not None and until <= max(now, values.get("starts_at", 0)):
            report("until", "has to be after the start, and not over")

    values = document_readers.read_document(document, _MEMBERS, "exemption", further)
    blank = {"check": None, "scorecard": None, "starts_at": now, "until": None}
    return ExemptionRequest(**{**blank, **values})


def check_rules(
    request: ExemptionRequest, rules: Iterable[ExemptionRules], usual_days: int = DEFAULT_DAYS
) -> None:
    """Raise InvalidItemsError unless each of the scorecards with the check allows the request."""
    problems = [
        problem(path, message)
        for one in tuple(rules) or (NO_RULES,)
        for path, message in _broken(request, one, usual_days)
    ]
    if problems:
        raise InvalidItemsError(_distinct(problems))


def may_request(actor: ExemptionActor, owners: Collection[str]) -> bool:
    """Return true if the person may ask for an exemption of an entity of `owners`."""
    return actor.may_request or actor.ref in owners or not actor.groups.isdisjoint(owners)


def check_requester(actor: ExemptionActor, owners: Collection[str]) -> None:
    """Raise NotAllowedError unless the person may ask for an exemption of an entity of `owners`."""
    if not may_request(actor, owners):
        raise NotAllowedError(
            "Asking for an exemption needs the permission to request exemptions, or to be a "
            "member of the group that owns the entity."
        )


def may_decide(actor: ExemptionActor, rules: Iterable[ExemptionRules]) -> bool:
    """Return true if the person may decide, by rules that count for the check or scorecard."""
    try:
        _check_approver(actor, rules)
    except NotAllowedError:
        return False
    return True


def decided(
    exemption: Exemption,
    decision: Decision,
    actor: ExemptionActor,
    rules: Iterable[ExemptionRules],
    now: int,
    *,
    comment: str | None = None,
    own: bool = False,
) -> Exemption:
    """The exemption after a decision; with `own` people may approve what they asked for.

    Raises ConflictError if it is not to be decided so any more, NotAllowedError unless the person
    is an approver, and InputError for a comment that is too long.
    """
    if comment is not None and len(comment) > _LONGEST_COMMENT:
        raise InputError(f"comment: can have {_LONGEST_COMMENT} characters at most.")
    _check_approver(actor, rules)
    if decision == "approve" and not own and actor.ref == exemption.requested_by:
        raise NotAllowedError("An exemption is approved by somebody else than who asked for it.")
    after = _AFTER.get((exemption.state, decision))
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


def _broken(
    request: ExemptionRequest, rules: ExemptionRules, usual_days: int
) -> Iterable[tuple[str, str]]:
    """The rules that a request does not keep."""
    most_days = rules.most_days(usual_days)
    if not rules.enabled:
        yield "check", "a scorecard of it allows no exemptions"
    if request.until is None:
        if not rules.permanent:
            yield "until", "is required; an exemption without an end is not allowed here"
    elif most_days and request.until - request.starts_at > most_days * DAY:
        yield "until", f"can be {most_days} days after the start at most"


def _check_approver(actor: ExemptionActor, rules: Iterable[ExemptionRules]) -> None:
    """Raise NotAllowedError unless the person has the permission, or each scorecard accepts it."""
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


def _distinct(problems: list[dict[str, str]]) -> list[dict[str, str]]:
    return [one for place, one in enumerate(problems) if one not in problems[:place]]


def _start(value: object, path: str, report: Report) -> int:
    """A time, or the start of a day."""
    found = _time(value)
    return document_readers.read_day(value, path, report) if found is None else found


def _end(value: object, path: str, report: Report) -> int | None:
    """A time, or the end of a day; None for an empty one, which is refused."""
    if value == "":
        return None
    found = _time(value)
    return document_readers.read_day(value, path, report) + DAY if found is None else found


def _time(value: object) -> int | None:
    return clock.milliseconds(value) if isinstance(value, str) else None


_MEMBERS: Final = (
    DocumentMember("check", "check", document_readers.read_identifier),
    DocumentMember("scorecard", "scorecard", document_readers.read_identifier),
    DocumentMember("entity", "entity", document_readers.read_entity_reference, required=True),
    DocumentMember("reason", "reason", document_readers.read_words, required=True),
    DocumentMember("link", "link", document_readers.read_address),
    DocumentMember("from", "starts_at", _start),
    DocumentMember("until", "until", _end),
)

"""Requests and decisions on exemptions, with who asks and the rules that hold at that moment."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth import users
from factbook.auth.permissions import EXEMPTION_DECIDE, EXEMPTION_REQUEST, OWN_WRITE
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import membership
from factbook.checks.definitions import definition_lock, scorecard
from factbook.checks.definitions.scorecard import DEFAULT_DAYS, ExemptionRules
from factbook.checks.exemptions import exemption, exemption_store
from factbook.checks.exemptions.exemption import (
    Decision,
    Exemption,
    ExemptionActor,
    ExemptionRequest,
)
from factbook.checks.versions import grade_slots
from factbook.checks.versions.check_store import check_store
from factbook.checks.versions.grade_slots import StoredScorecard
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.checks.versions.staged_store import StagedDefinition
from factbook.definitions.owners import owner_of
from factbook.errors import ConflictError, InvalidItemsError
from factbook.storage import Transaction


class ExemptionCaller(NamedTuple):
    """A person as it calls: its reference, its permissions, and the sets that name its groups."""

    ref: str
    permissions: Collection[str]
    trust: PeopleTrust


def audited(action: str) -> Callable[[Exemption], AuditEntry]:
    """Entry of the audit for an exemption that was asked for or decided on."""

    def about(found: Exemption) -> AuditEntry:
        subject = {"check": found.check} if found.check else {"scorecard": found.scorecard}
        return AuditEntry(action, found.id, {"entity": found.entity, **subject})

    return about


def ask(
    transaction: Transaction,
    wanted: ExemptionRequest,
    caller: ExemptionCaller,
    now: int,
    usual_days: int = DEFAULT_DAYS,
) -> Exemption:
    """Store a request; raises the errors of `exemption_store.request`.

    It lasts `usual_days` at most unless a scorecard says otherwise.

    Raises NotAllowedError unless the caller may ask, and NotFoundError for an unknown check,
    scorecard or entity.
    """
    definition_lock.share(transaction)
    groups = membership.groups_of(transaction, caller.ref, caller.trust)
    subject, cards = _subject(transaction, wanted.check, wanted.scorecard)
    actor = actor_of(caller, groups, subject)
    owners = membership.owners_of(transaction, wanted.entity)
    if users.is_unproven(transaction, caller.ref):
        owners -= {caller.ref}
    exemption.check_requester(actor, owners)
    rules = counting_rules(subject, cards)
    return exemption_store.request(transaction, wanted, rules, actor, now, usual_days)


def decide(
    transaction: Transaction,
    exemption_id: str,
    decision: Decision,
    caller: ExemptionCaller,
    now: int,
    comment: str | None = None,
    own: bool = False,
    usual_days: int = DEFAULT_DAYS,
) -> Exemption:
    """Store a decision, with `own` also on what the caller asked for.

    What is approved is by the rules of that moment, which may be others than when it was asked for.
    Raises the errors of `exemption_store.decide`, and ConflictError for what they forbid by now.
    """
    definition_lock.share(transaction)
    found = exemption_store.within(transaction, exemption_id)
    subject, cards = _subject(transaction, found.check, found.scorecard)
    rules = counting_rules(subject, cards)
    actor = actor_of(caller, membership.groups_of(transaction, caller.ref, caller.trust), subject)
    decided = exemption_store.decide(
        transaction, exemption_id, decision, rules, actor, now, comment=comment, own=own
    )
    if decision == "approve":
        _check_still_allowed(found, rules, usual_days)
    return decided


def _check_still_allowed(
    found: Exemption, rules: Collection[ExemptionRules], usual_days: int
) -> None:
    """Raise ConflictError if the rules forbid by now what they allowed to ask for."""
    asked = (found.check, found.scorecard, found.entity, found.reason, found.starts_at)
    try:
        exemption.check_rules(ExemptionRequest(*asked, found.until), rules, usual_days)
    except InvalidItemsError as error:
        told = "; ".join(f"{one['path']} {one['message']}" for one in error.problem_list)
        raise ConflictError(f"The rules have changed since it was asked for: {told}.") from None


def actor_of(
    caller: ExemptionCaller, groups: frozenset[str], subject: StagedDefinition
) -> ExemptionActor:
    """The actor towards a check or scorecard that exemptions are about."""
    return ExemptionActor(
        caller.ref,
        groups,
        may_request=EXEMPTION_REQUEST in caller.permissions,
        may_decide=EXEMPTION_DECIDE in caller.permissions,
        owns_subject=OWN_WRITE in caller.permissions and _owner(subject) in groups,
    )


def counting_rules(
    subject: StagedDefinition, cards: Iterable[StoredScorecard]
) -> list[ExemptionRules]:
    """The exemption rules that count for a check or scorecard, of the scorecards that are about it.

    All of them, for a scorecard itself.
    """
    return [
        scorecard.parse(card.newest or card.current).exemptions
        for card in cards
        if isinstance(subject, StoredScorecard) or rules_count(card, subject)
    ]


def rules_count(card: StoredScorecard, check: StagedDefinition) -> bool:
    """Return true if the exemption rules of a scorecard count for one of its checks.

    The owner of the check has to own the scorecard, or the rules were published with the permission
    to write scorecards: else anyone who owns a scorecard could decide on the checks of others.
    """
    owner = _owner(check)
    return check.id in card.ruled_checks or (owner != "" and owner == _owner(card))


def _subject(
    transaction: Transaction, check: str | None, scorecard_id: str | None
) -> tuple[StagedDefinition, list[StoredScorecard]]:
    """The check with the scorecards that name it, or the scorecard; raises NotFoundError."""
    if check is None:
        card = scorecard_store.existing_within(transaction, scorecard_id or "")
        return card, [card]
    found = check_store.existing_within(transaction, check)
    stored = scorecard_store.all_within(transaction)
    named = set(grade_slots.naming(stored, [check]))
    return found, [card for card in stored if card.id in named]


def _owner(stored: StagedDefinition) -> str:
    """The owner that was published last, or that of a first draft; empty without one."""
    return owner_of(stored.newest or stored.current)
